package run

import (
	"context"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/controlplane"
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
	streams := m.replicas.At(w.End)
	*m.recordedReplicas().Balance.At(w.Name) = faults.Balance(streams)
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
		one := m.recordedReplica(r.Name())
		*one.Usage.At(w.Name) = measure.UsageOf(usage)
		if streams[r.Name()] == nil {
			continue // it was added later
		}
		if err := m.measureStreams(ctx, w, r.Name(), one, streams[r.Name()].After); err != nil {
			return err
		}
	}
	return nil
}

// measureInstances computes the usage of each of several programs that run elsewhere.
func (m measurement) measureInstances(ctx context.Context, w phases.Window) error {
	if len(m.adapter.Instances) < 2 {
		return nil
	}
	for _, one := range m.adapter.Instances {
		usage, err := m.recorder.InstanceFigures(ctx, m.sampler, m.controlPlaneName(), one.Name, w.Begin, w.End)
		if err != nil {
			return err
		}
		*m.recordedReplica(one.Name).Usage.At(w.Name) = measure.UsageOf(usage)
	}
	return nil
}

// recordedReplicas returns the record's section of a control plane that runs as several programs. It makes the section
// where there is none.
func (m measurement) recordedReplicas() *record.Replicas {
	if m.document.Replicas == nil {
		m.document.Replicas = &record.Replicas{Each: map[string]*record.Replica{}}
	}
	return m.document.Replicas
}

// recordedReplica returns the section of one of these programs. It makes the section where there is none.
func (m measurement) recordedReplica(name string) *record.Replica {
	each := m.recordedReplicas().Each
	if each[name] == nil {
		each[name] = &record.Replica{}
	}
	return each[name]
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
	if w.Name == record.PhaseSteady && int(theirs) != ours && m.spec.Mesh.Sidecars.Real == 0 {
		m.journal.Warn(record.Warning{
			About: "replicas.streams", Reason: record.ReasonCountsDiffer, Component: name, Phase: w.Name, Detail: expr,
			Values: map[string]float64{"theirs": theirs, "ours": float64(ours)},
		})
	}
	return nil
}

// replicated reports whether the control plane is started as several programs.
func (s Spec) replicated() bool { return s.ControlPlane.Replicas > 1 || s.spareReplicas() > 0 }

// spareReplicas returns the number of replicas that are added while the run goes on.
func (s Spec) spareReplicas() int {
	n := 0
	for _, f := range s.Load.Faults {
		n += max(0, f.Described().Adds)
	}
	return n
}

// checkReplicas checks how many programs the control plane is to run as, and the faults that
// end or add some.
func (s Spec) checkReplicas(d controlplane.Driver) error {
	if s.upgrade() != nil && s.replicated() {
		return scenario.Refuse("controlPlane.replicas", s.ControlPlane.Replicas, "1 with an upgrade, which has one of each version")
	}
	if !d.Replicas {
		if s.ControlPlane.Replicas > 1 {
			return scenario.Refuse("controlPlane.replicas", s.ControlPlane.Replicas, "1 with controlPlane.name %s, which is one program", s.ControlPlane.Name)
		}
		for _, f := range s.Load.Faults {
			if f.Described().On == scenario.OnReplicas {
				return scenario.Refuse("load.faults", f, "none of replicas with controlPlane.name %s, which is one program", s.ControlPlane.Name)
			}
		}
	}
	if total := s.ControlPlane.Replicas + s.spareReplicas(); total > maxReplicas {
		return scenario.Refuse("controlPlane.replicas", s.ControlPlane.Replicas, "%d at most, with those that load.faults adds", maxReplicas)
	}
	return faults.CheckReplicas(s.Load.Faults, max(1, s.ControlPlane.Replicas))
}
