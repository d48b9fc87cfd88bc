package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// maxReplicas is more istiods than a mesh has use for.
const maxReplicas = 16

// measureReplicas computes the usage and the streams of each replica over one phase.
func (m measurement) measureReplicas(ctx context.Context, w phases.Window) error {
	if m.replicas == nil {
		return nil
	}
	document := m.document.Replicas
	if document == nil {
		document = &record.Replicas{Each: map[string]*record.Replica{}}
		m.document.Replicas = document
	}
	streams := m.replicas.At(w.End)
	*document.Balance.At(w.Name) = faults.Balance(streams)
	for _, r := range m.replicas.All() {
		if !r.Started() {
			continue
		}
		usage, err := m.recorder.InstanceFigures(ctx, m.sampler, m.controlPlaneName(), r.Name(), w.Begin, w.End)
		if err != nil {
			return err
		}
		if usage.Ran == 0 {
			continue
		}
		one := document.Each[r.Name()]
		if one == nil {
			one = &record.Replica{}
			document.Each[r.Name()] = one
		}
		*one.Usage.At(w.Name) = experiment.UsageOf(usage)
		if streams[r.Name()] == nil {
			continue // it was added later
		}
		if err := m.measureStreams(ctx, w, r.Name(), one, streams[r.Name()].After); err != nil {
			return err
		}
	}
	return nil
}

// measureStreams compares the streams to one replica with its own count. In steady state
// they must be equal.
func (m measurement) measureStreams(ctx context.Context, w phases.Window, name string, one *record.Replica, ours int) error {
	*one.Streams.At(w.Name) = &ours
	expr := m.driver.Metrics.Counters.ReplicaConnected
	if expr == "" {
		return nil
	}
	expr = strings.ReplaceAll(expr, "$instance", name)
	theirs, ok, err := m.recorder.Value(ctx, expr, w.End)
	if err != nil {
		return err
	}
	if ok {
		*one.OwnStreams.At(w.Name) = &theirs
	}
	if w.Name == record.PhaseSteady && int(theirs) != ours && m.spec.RealSidecars == 0 {
		m.journal.Warn(record.Warning{
			About: "replicas.streams", Reason: record.ReasonCountsDiffer, Component: name, Phase: w.Name, Detail: expr,
			Values: map[string]float64{"theirs": theirs, "ours": float64(ours)},
		})
	}
	return nil
}

// programsOf are the programs of a run's control plane, one or several.
type programsOf struct{ *run }

// endpoints are where the programs of a control plane are asked about themselves: each
// replica that serves, or the only one.
func (r programsOf) endpoints() []controlplane.Endpoints {
	if r.replicas == nil {
		return []controlplane.Endpoints{r.adapter.Server.Endpoints()}
	}
	return r.replicas.Endpoints()
}

// usageKnown reports whether it is known what the programs of a control plane use: they run
// on this machine, or report it themselves.
func usageKnown(c *controlplane.ControlPlane) bool {
	return c.Program != nil || c.Replicas != nil || c.Instances != nil
}

// replicated reports whether the control plane is started as several programs.
func (s Spec) replicated() bool { return s.Replicas > 1 || s.spareReplicas() > 0 }

// spareReplicas is how many are added while the run goes on.
func (s Spec) spareReplicas() int {
	n := 0
	for _, f := range s.Faults {
		if f.Kind == faults.AddReplica {
			n++
		}
	}
	return n
}

// sources are what the programs of the control plane use, by name.
func (r programsOf) sources() map[string]measure.Source {
	sources := map[string]measure.Source{}
	switch {
	case r.adapter.Program != nil:
		sources[r.controlPlaneName()] = r.adapter.Program.Life().Usage()
	case r.replicas != nil:
		for _, one := range r.replicas.All() {
			r.sampler.Join(r.controlPlaneName(), one.Name())
			if one.Started() {
				sources[one.Name()] = one.Life().Usage()
			}
		}
	default:
		addInstances(r.run, sources)
	}
	return sources
}

// targets are where the programs of the control plane are scraped.
func (r programsOf) targets() []measure.Target {
	job := r.controlPlaneName()
	if len(r.adapter.Instances) > 0 {
		return instanceTargets(job, r.adapter.Instances)
	}
	if r.replicas == nil {
		if url := r.adapter.Server.Endpoints().Metrics; url != "" {
			return []measure.Target{{Job: job, URL: url}}
		}
		return nil
	}
	var targets []measure.Target
	for _, one := range r.replicas.All() {
		targets = append(targets, measure.Target{Job: job, Instance: one.Name(), URL: one.Endpoints().Metrics, Later: !one.Started()})
	}
	return targets
}

// names are those of the programs of the control plane that run on this machine.
func (r programsOf) names() []string {
	if r.adapter.Instances != nil {
		return nil
	}
	if r.adapter.Replicas == nil {
		return []string{r.controlPlaneName()}
	}
	var names []string
	for _, one := range r.adapter.Replicas.All() {
		names = append(names, one.Name())
	}
	return names
}

// checkReplicas checks how many programs the control plane is to run as, and the faults that
// end or add some.
func (s Spec) checkReplicas(d controlplane.Driver) error {
	if s.Replicas < 0 || s.Replicas > maxReplicas {
		return fmt.Errorf("parsing --replicas %d: want 1 to %d", s.Replicas, maxReplicas)
	}
	if s.Upgrade != nil && s.replicated() {
		return fmt.Errorf("parsing --replicas %d: want 1 with an upgrade, which has one of each version", s.Replicas)
	}
	if !d.Replicas {
		if s.Replicas > 1 {
			return fmt.Errorf("parsing --replicas %d: want 1 with --control-plane %s, which is one program", s.Replicas, s.ControlPlane)
		}
		for _, f := range s.Faults {
			if f.OfReplicas() {
				return fmt.Errorf("parsing --fault %q: want none of replicas with --control-plane %s, which is one program", f, s.ControlPlane)
			}
		}
	}
	if total := s.Replicas + s.spareReplicas(); total > maxReplicas {
		return fmt.Errorf("parsing --replicas %d: want %d at most, with those that --fault adds", s.Replicas, maxReplicas)
	}
	return faults.CheckReplicas(s.Faults, max(1, s.Replicas))
}

// edge reads the counters of all processes, and counts streams: the edge of a phase.
func edge(r *run) (time.Time, error) {
	at, err := r.workers.edge(r.sampler)
	if err == nil && r.replicas != nil {
		r.replicas.Edge(at)
	}
	return at, err
}
