package run

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
)

// endpoints returns the endpoints of each program of the control plane: of each replica that serves, or of the
// only one.
func (r *run) endpoints() []controlplane.Endpoints {
	if r.replicas == nil {
		return []controlplane.Endpoints{r.adapter.Server.Endpoints()}
	}
	return r.replicas.Endpoints()
}

// usageKnown reports whether it is known what the programs of the control plane use: they run on this machine, or
// report it themselves.
func (r *run) usageKnown() bool {
	return r.adapter.Program != nil || r.adapter.Replicas != nil || r.adapter.Instances != nil
}

// sources returns a source of the usage of each program of the control plane, by name. If there are several, it makes them a group
// of the sampler under the control plane's name.
func (r *run) sources() map[string]measure.Source {
	sources, name := map[string]measure.Source{}, r.controlPlaneName()
	switch elsewhere := r.adapter.Instances; {
	case r.adapter.Program != nil:
		sources[name] = r.adapter.Program.Life().Usage()
	case r.replicas != nil:
		for _, one := range r.replicas.All() {
			r.sampler.Join(name, one.Name())
			if one.Started() {
				sources[one.Name()] = one.Life().Usage()
			}
		}
	case len(elsewhere) == 1:
		sources[name] = elsewhere[0].Usage
	default:
		for _, one := range elsewhere {
			r.sampler.Join(name, one.Name)
			sources[one.Name] = one.Usage
		}
	}
	return sources
}

// targets returns the programs of the control plane as targets of scrapes.
func (r *run) targets() []measure.Target {
	var targets []measure.Target
	name := r.controlPlaneName()
	switch {
	case len(r.adapter.Instances) > 0:
		for _, one := range r.adapter.Instances {
			targets = append(targets, measure.Target{Job: name, Instance: one.Name, URL: one.Metrics})
		}
	case r.replicas != nil:
		for _, one := range r.replicas.All() {
			targets = append(targets, measure.Target{Job: name, Instance: one.Name(), URL: one.Endpoints().Metrics, Later: !one.Started()})
		}
	default:
		if url := r.adapter.Server.Endpoints().Metrics; url != "" {
			targets = append(targets, measure.Target{Job: name, URL: url})
		}
	}
	return targets
}

// localPrograms returns the names of the programs of the control plane that run on this machine.
func (r *run) localPrograms() []string {
	switch {
	case r.adapter.Instances != nil:
		return nil
	case r.adapter.Replicas == nil:
		return []string{r.controlPlaneName()}
	}
	var names []string
	for _, one := range r.adapter.Replicas.All() {
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
