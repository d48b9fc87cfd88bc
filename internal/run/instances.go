package run

import (
	"context"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// addInstances adds what programs of the control plane use that run elsewhere: one has the
// control plane's name, several are together what has it.
func addInstances(r *run, sources map[string]measure.Source) {
	all := r.adapter.Instances
	for _, one := range all {
		if len(all) == 1 {
			sources[r.controlPlaneName()] = one.Usage
			return
		}
		r.sampler.Join(r.controlPlaneName(), one.Name)
		sources[one.Name] = one.Usage
	}
}

// instanceTargets are where they are scraped.
func instanceTargets(job string, all []controlplane.Instance) []measure.Target {
	var targets []measure.Target
	for _, one := range all {
		targets = append(targets, measure.Target{Job: job, Instance: one.Name, URL: one.Metrics})
	}
	return targets
}

// measureInstances computes the usage of each of several programs that run elsewhere.
func (m measurement) measureInstances(ctx context.Context, w phases.Window) error {
	if len(m.adapter.Instances) < 2 {
		return nil
	}
	if m.document.Replicas == nil {
		m.document.Replicas = &record.Replicas{Each: map[string]*record.Replica{}}
	}
	for _, one := range m.adapter.Instances {
		usage, err := m.recorder.InstanceFigures(ctx, m.sampler, m.controlPlaneName(), one.Name, w.Begin, w.End)
		if err != nil {
			return err
		}
		each := m.document.Replicas.Each[one.Name]
		if each == nil {
			each = &record.Replica{}
			m.document.Replicas.Each[one.Name] = each
		}
		*each.Usage.At(w.Name) = experiment.UsageOf(usage)
	}
	return nil
}

// components are the programs of the cluster, and those that help the control plane.
func components(r *run) []place.Component {
	all := r.env.Components()
	for _, h := range r.adapter.Helpers {
		all = append(all, place.Component{Name: h.Name, Target: &measure.Target{Job: h.Name, URL: h.Metrics}, Usage: h.Program.Life().Usage()})
	}
	return all
}

// programNames are those of components.
func programNames(r *run) []string {
	var names []string
	for _, c := range r.env.Components() {
		names = append(names, c.Name)
	}
	for _, h := range r.adapter.Helpers {
		names = append(names, h.Name)
	}
	return names
}
