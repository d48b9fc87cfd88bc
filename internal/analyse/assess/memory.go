package assess

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

const (
	// spread is the share by which the memory peak of one run may differ from the peaks of equal runs: the greatest deviation
	// from the mean of five (docs/reading-results.md). Each step is done once.
	spread = 0.09
	// roundTo is the step to which a limit is rounded up.
	roundTo = 64 << 20
	// chartRequest is the memory that the chart of istiod requests by itself (manifests/charts/istio-control/istio-discovery/values.yaml).
	chartRequest = 2 << 30
)

// Moment is the usage of one istiod in one phase of a run.
type Moment struct {
	Step    string `json:"step"`  // from, to or upgrade
	Phase   string `json:"phase"` // or the fault, or the stage of the upgrade
	Stage   bool   `json:"stage,omitempty"`
	Version string `json:"version"`
	// MemoryBytes is its peak, Low and High the interval that contains those of runs like it.
	MemoryBytes float64 `json:"memoryBytes"`
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
	// Cores are the mean, and PeakCores the greatest of a second, of the replica with the greatest mean: of the nodes of production where their
	// speed is known ([Assessment.OfNodes]), else of this machine.
	Cores     *float64 `json:"cores,omitempty"`
	PeakCores *float64 `json:"peakCores,omitempty"`
}

// Setting is a value of the istiod chart to set.
type Setting struct {
	Path  string `json:"path"` // as in resources.limits.memory
	Value string `json:"value"`
	Why   string `json:"why"` // with the figure
}

// text describes a moment by its memory.
func (m *Moment) text() string {
	return fmt.Sprintf("%s (%s to %s) of memory, istiod %s in %s", output.Bytes(m.MemoryBytes), output.Bytes(m.Low), output.Bytes(m.High), m.Version, m.where())
}

// where names the phase of a moment.
func (m *Moment) where() string {
	switch {
	case m.Stage:
		return "stage " + m.Phase + " of the upgrade"
	case m.Step == "upgrade":
		return m.Phase + " before the upgrade"
	case m.Step == "to":
		return m.Phase + " with the new version"
	default:
		return m.Phase + " with the captured version"
	}
}

// level returns the memory of a usage; empty where it was not measured.
func level(u *record.Usage) record.Level {
	if u == nil || u.MemoryBytes == nil {
		return record.Level{}
	}
	return *u.MemoryBytes
}

// phases are the phases that a run may have usage of, in their order.
var phases = []record.PhaseName{
	record.PhaseBaseline, record.PhaseRollout, record.PhaseSteady, record.PhaseProbe, record.PhaseChange, record.PhaseCycle, record.PhaseStorm, record.PhaseChurn,
}

// moments returns the moments of all steps.
func (f Facts) moments() (all []Moment) {
	for _, s := range f.steps() {
		add := func(phase, version string, stage bool, u *record.Usage) {
			peak := level(u).Peak
			if peak == nil {
				return
			}
			m := Moment{Step: s.name, Phase: phase, Stage: stage, Version: version, MemoryBytes: *peak, Low: *peak * (1 - spread), High: *peak * (1 + spread)}
			if u.Cores != nil {
				m.Cores, m.PeakCores = u.Cores.Mean, u.Cores.Peak
			}
			all = append(all, m)
		}
		version := s.run.Environment.ControlPlane.Version
		for _, p := range phases {
			if s.run.Replicas == nil {
				if s.run.ControlPlane != nil {
					if of := s.run.ControlPlane.At(p); of != nil {
						add(string(p), version, false, *of)
					}
				}
				continue
			}
			var most *record.Usage
			var cores *record.Level // of the replica that used the most
			for _, r := range s.run.Replicas.Each {
				of := *r.Usage.At(p)
				if level(of).Peak == nil {
					continue
				}
				if most == nil || *level(of).Peak > *level(most).Peak {
					most = of
				}
				if of.Cores != nil && of.Cores.Mean != nil && (cores == nil || *of.Cores.Mean > *cores.Mean) {
					cores = of.Cores
				}
			}
			if most != nil {
				most = new(*most)
				most.Cores = cores
			}
			add(string(p), version, false, most)
		}
		if s.run.Replicas == nil { // else a fault has what all replicas used together
			for _, fault := range s.run.Faults {
				add(fault.Name, version, false, fault.ControlPlane)
			}
		}
		if u := s.run.Upgrade; u != nil {
			for _, stage := range s.run.UpgradeStages() {
				if side := u.Stages[stage].From; side != nil {
					add(stage, u.From.Version, true, side.ControlPlane)
				}
				if side := u.Stages[stage].To; side != nil {
					add(stage, u.To.Version, true, side.ControlPlane)
				}
			}
		}
	}
	return all
}

// worst returns the moment of the greatest memory; nil of none.
func worst(all []Moment) *Moment {
	var most *Moment
	for i := range all {
		if most == nil || all[i].MemoryBytes > most.MemoryBytes {
			most = &all[i]
		}
	}
	return most
}

// memory compares the worst moment with the memory limit, and states what to set.
func (f Facts) memory(worst *Moment, model agreement) (Check, []Setting) {
	c := Check{Name: "memory"}
	limit := float64(f.Onto.Run.Environment.ControlPlane.MemoryLimitBytes)
	if f.From.OutOfMemory || f.Onto.OutOfMemory || f.Upgrade.OutOfMemory {
		c.Outcome, c.Text = Broken, fmt.Sprintf("istiod exceeds its limit of %s; how much it needs is not known, as it was killed: --control-plane-memory tries another limit", output.Bytes(limit))
		if model == above {
			c.Outcome = Unknown
			c.Text += "; the replay needs more than production"
		}
		return c, nil
	}
	switch {
	case worst == nil:
		c.Outcome, c.Text = Unknown, "it was not measured"
		return c, nil
	case limit > 0 && f.share() > 0 && worst.Low <= limit:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("%s %s; with all of them it needs more, and has a limit of %s. Rehearse it on a machine with more memory", f.needs(), worst.text(), output.Bytes(limit))
		return c, nil
	case limit == 0 && !f.Captured.Installed:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("%s %s; the memory that it has is not known (--control-plane-memory states it)", f.needs(), worst.text())
		return c, nil
	case limit == 0:
		c.Outcome, c.Text = Holds, fmt.Sprintf("%s %s, and has no limit", f.needs(), worst.text())
		if model == below {
			c.Outcome = Unknown
		}
		return c, nil
	}
	if f.share() > 0 { // it is above the limit as it is; what all pods need is not known
		c.Outcome, c.Text = Broken, fmt.Sprintf("%s %s, and has a limit of %s", f.needs(), worst.text(), output.Bytes(limit))
		return c, nil
	}
	set := f.limitTo(math.Ceil(worst.High*(1+capacity.DefaultHeadroom)/roundTo)*roundTo, fmt.Sprintf("%s; the upper end with %s of headroom; it is %s", worst.text(), output.Percent(capacity.DefaultHeadroom), output.Bytes(limit)))
	need := fmt.Sprintf("istiod needs %s", worst.text())
	switch {
	case worst.High <= limit && model == below, worst.Low > limit && model == above:
		c.Outcome, c.Text = Unknown, fmt.Sprintf("%s, with a limit of %s, but the replay does not agree with production", need, output.Bytes(limit))
		return c, nil
	case worst.High <= limit:
		c.Outcome, c.Text = Holds, fmt.Sprintf("%s, and has a limit of %s", need, output.Bytes(limit))
		return c, nil
	case worst.Low > limit:
		c.Outcome, c.Text = Broken, fmt.Sprintf("%s, and has a limit of %s", need, output.Bytes(limit))
		return c, set
	}
	c.Outcome, c.Text = Needs, fmt.Sprintf("%s, and its limit of %s is within that interval", need, output.Bytes(limit))
	return c, set
}

// needs begins a sentence about what istiod needs: with a share of the pods that is less than with all.
func (f Facts) needs() string {
	if share := f.share(); share > 0 {
		return fmt.Sprintf("with %s of the pods istiod needs", share)
	}
	return "istiod needs"
}

// limitTo sets the memory limit, and a request below it: the API server refuses pods that request more than their limit.
func (f Facts) limitTo(limit float64, why string) []Setting {
	text := func(v float64) string { return fmt.Sprintf("%.0fMi", v/(1<<20)) }
	set := []Setting{{Path: "resources.limits.memory", Value: text(limit), Why: why}}
	if limit >= chartRequest {
		return set
	}
	request := Setting{
		Path: "resources.requests.memory", Value: text(limit),
		Why: fmt.Sprintf("no more than the limit; the chart has %s where it is not set, and pods that request more than their limit are refused", output.Bytes(chartRequest)),
	}
	if q, err := resource.ParseQuantity(f.Captured.Requests["memory"]); err == nil && q.AsApproximateFloat64() <= limit {
		request.Value, request.Why = f.Captured.Requests["memory"], "as it is; "+request.Why
	}
	return append(set, request)
}
