package run

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/supervision"
)

// instances are the programs that a run's control plane runs as: one, several replicas, or
// those of an existing cluster.
type instances struct {
	name     string // of the control plane
	adapter  *controlplane.ControlPlane
	replicas *supervision.Replicas // nil where the control plane is one program
}

// instances returns the instances of the run's control plane, once it is there.
func (r *run) instances() instances {
	return instances{name: r.controlPlaneName(), adapter: r.adapter, replicas: r.replicas}
}

// endpoints returns the endpoints of each program: of each replica that serves, or of the
// only one.
func (i instances) endpoints() []controlplane.Endpoints {
	if i.replicas == nil {
		return []controlplane.Endpoints{i.adapter.Server.Endpoints()}
	}
	return i.replicas.Endpoints()
}

// usageKnown reports whether it is known what the programs use: they run on this machine, or
// report it themselves.
func (i instances) usageKnown() bool {
	return i.adapter.Program != nil || i.adapter.Replicas != nil || i.adapter.Instances != nil
}

// sources returns a source of the usage of each program, by name. If there are several, it makes them a group
// of the sampler under the control plane's name.
func (i instances) sources(sampler *measure.Sampler) map[string]measure.Source {
	sources := map[string]measure.Source{}
	switch elsewhere := i.adapter.Instances; {
	case i.adapter.Program != nil:
		sources[i.name] = i.adapter.Program.Life().Usage()
	case i.replicas != nil:
		for _, one := range i.replicas.All() {
			sampler.Join(i.name, one.Name())
			if one.Started() {
				sources[one.Name()] = one.Life().Usage()
			}
		}
	case len(elsewhere) == 1:
		sources[i.name] = elsewhere[0].Usage
	default:
		for _, one := range elsewhere {
			sampler.Join(i.name, one.Name)
			sources[one.Name] = one.Usage
		}
	}
	return sources
}

// targets returns the programs as targets of scrapes.
func (i instances) targets() []measure.Target {
	var targets []measure.Target
	switch {
	case len(i.adapter.Instances) > 0:
		for _, one := range i.adapter.Instances {
			targets = append(targets, measure.Target{Job: i.name, Instance: one.Name, URL: one.Metrics})
		}
	case i.replicas != nil:
		for _, one := range i.replicas.All() {
			targets = append(targets, measure.Target{Job: i.name, Instance: one.Name(), URL: one.Endpoints().Metrics, Later: !one.Started()})
		}
	default:
		if url := i.adapter.Server.Endpoints().Metrics; url != "" {
			targets = append(targets, measure.Target{Job: i.name, URL: url})
		}
	}
	return targets
}

// local returns the names of the programs that run on this machine.
func (i instances) local() []string {
	switch {
	case i.adapter.Instances != nil:
		return nil
	case i.adapter.Replicas == nil:
		return []string{i.name}
	}
	var names []string
	for _, one := range i.adapter.Replicas.All() {
		names = append(names, one.Name())
	}
	return names
}

// components returns the programs of the cluster, and those that help the control plane.
func (b *system) components() []place.Component {
	all := b.env.Components()
	for _, h := range b.adapter.Helpers {
		all = append(all, place.Component{Name: h.Name, Target: &measure.Target{Job: h.Name, URL: h.Metrics}, Usage: h.Program.Life().Usage()})
	}
	return all
}

// componentNames returns the names of the components.
func (b *system) componentNames() []string {
	var names []string
	for _, c := range b.components() {
		names = append(names, c.Name)
	}
	return names
}
