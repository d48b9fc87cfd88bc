package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
)

const cpuSeconds = "controlPlane.rollout.cpuSeconds"

// planned is a plan for 40 pods, and a run that it was made from.
func planned() (*capacity.Plan, *record.Run) {
	p := &capacity.Plan{
		Target: capacity.Target{Pods: 40, Services: 4, ControlPlane: "istiod"},
		Figures: []capacity.Figure{
			{Name: cpuSeconds, Unit: "s", Forecast: 10, Low: new(9.0), High: new(11.0)},
			{Name: rolloutTime, Unit: "s", Forecast: 20, Low: new(18.0), High: new(22.0)},
		},
		Request: capacity.Request{Replicas: 1, Resources: capacity.Resources{Limits: capacity.Amounts{CPU: "2", Memory: "256Mi"}}},
	}
	like := &record.Run{
		Spec: record.Spec{Pods: 20, Services: 2, Namespaces: 1, Topology: "layers", FanOut: 3, Seed: 7, Burst: "10/2s", Mode: "strict", XDS: "delta", BaselineSeconds: 1, SettleSeconds: 1, SteadySeconds: 5,
			ProfileName: "typical", ProfileSet: map[string]float64{"zones": 5}},
		Environment: record.Environment{Priority: &record.Priority{}},
	}
	return p, like
}

// measured is a run in which everything is as the plan has it.
func measured() record.Run {
	latency := record.Latency{Count: 40}
	return record.Run{
		Spec: record.Spec{Pods: 40}, Pods: &record.Pods{Requested: 40, Converged: new(40)},
		ControlPlane: &record.ByPhase[*record.Usage]{Rollout: &record.Usage{CPUSeconds: new(10.5)}},
		Faults:       []record.Fault{{Name: "kill-control-plane", Phase: record.PhaseSteady, Seconds: new(3.0)}},
		Change:       &record.Change{Changes: new(1), Push: &latency},
		Phases:       []record.Phase{{Name: record.PhaseRollout, Seconds: new(20.0), EndedBy: record.EndedByConverged}},
	}
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*record.Run)
		err    error
		failed string // the only check that is not passed; "" = none
		want   capacity.Verdict
	}{
		"as planned":      {func(*record.Run) {}, nil, "", capacity.Passed},
		"more CPU":        {func(r *record.Run) { r.ControlPlane.Rollout.CPUSeconds = new(11.5) }, nil, cpuSeconds, capacity.Failed},
		"less CPU":        {func(r *record.Run) { r.ControlPlane.Rollout.CPUSeconds = new(8.5) }, nil, cpuSeconds, capacity.Failed},
		"CPU not known":   {func(r *record.Run) { r.ControlPlane = nil }, nil, cpuSeconds, capacity.Unknown},
		"slower":          {func(r *record.Run) { r.Phases[0].Seconds = new(22.5) }, nil, rolloutTime, capacity.Failed},
		"faster":          {func(r *record.Run) { r.Phases[0].Seconds = new(15.0) }, nil, "", ""},
		"killed":          {func(*record.Run) {}, &process.OutOfMemoryError{}, "not killed for its memory", capacity.Failed},
		"not converged":   {func(r *record.Run) { r.Pods.Converged = new(39) }, experiment.ErrUnconverged, "converged", capacity.Failed},
		"no second time":  {func(r *record.Run) { r.Faults[0].Seconds = nil }, experiment.ErrUnconverged, "converged again after a kill", capacity.Failed},
		"no kill":         {func(r *record.Run) { r.Faults = nil }, nil, "converged again after a kill", capacity.Unknown},
		"a lost change":   {func(r *record.Run) { r.Change.Push.Count, r.Change.Push.Lost = 39, 1 }, nil, "a change reached every sidecar", capacity.Failed},
		"a missed change": {func(r *record.Run) { r.Change.Push.Count = 39 }, nil, "a change reached every sidecar", capacity.Failed},
		"no change":       {func(r *record.Run) { r.Change = nil }, nil, "a change reached every sidecar", capacity.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			p, like := planned()
			var spec run.Spec
			err := Run(t.Context(), Options{Plan: p, Like: like, Processors: 2, Spec: run.DefaultSpec(), Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
				spec = s
				run := measured()
				tc.change(&run)
				return run, tc.err
			}})
			if err != nil {
				t.Fatal(err)
			}
			if p := spec.topology().Resolved(); p.Zones != 5 || p.VirtualServices != 4 {
				t.Errorf("its profile is %s", p.Text())
			}
			v := p.Verification
			if v.Passed != (tc.failed == "") {
				t.Errorf("passed: %v", v.Passed)
			}
			for _, c := range v.Checks {
				want := capacity.Passed
				if c.Name == tc.failed {
					want = tc.want
				}
				if c.Verdict != want {
					t.Errorf("%s: %s (%s), want %s", c.Name, c.Verdict, c.Why, want)
				}
			}
			if spec.Pods() != 40 || spec.topology().Services != 4 || spec.Mesh.Seed != 7 || spec.Load.Arrival != "10/2s" || spec.Mode() != "strict" ||
				spec.ControlPlane.CPUs != 0 || spec.ControlPlane.Memory != 256<<20 || time.Duration(spec.Phases.Settle) != time.Second || time.Duration(spec.Phases.Steady) != 5*time.Second || !spec.Instrument.Priority {
				t.Errorf("it ran %+v", spec)
			}
		})
	}
}

// Where nodes have proxies, the run has as many, and a service is changed, which reaches each.
func TestProxiesOfNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		push *record.Latency
		want capacity.Verdict
	}{
		"all":     {&record.Latency{Count: 2}, capacity.Passed},
		"lost":    {&record.Latency{Count: 1, Lost: 1}, capacity.Failed},
		"missed":  {&record.Latency{Count: 1}, capacity.Failed},
		"unknown": {nil, capacity.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			p, like := planned()
			p.Target.Dataplane, p.Target.PodsPerNode, p.Target.Nodes, p.Target.Proxy = "ambient", 20, 2, "ztunnel"
			like.Spec.ProfileName, like.Spec.ProfileSet = "", nil
			var spec run.Spec
			err := Run(t.Context(), Options{Plan: p, Like: like, Processors: 2, Spec: run.DefaultSpec(), Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
				spec = s
				run := measured()
				run.Spec.Probes, run.Change = s.Load.Probes, nil
				run.Latencies.Push = map[record.ChangeKind]*record.Latency{record.ServiceChange: tc.push}
				return run, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if spec.Dataplane() != "ambient" || spec.Mesh.PodsPerNode != 20 || spec.Load.Probes != 1 || spec.Load.Changes.PerSecond != 0 {
				t.Errorf("it ran %+v", spec)
			}
			checks := p.Verification.Checks
			if last := checks[len(checks)-1]; last.Name != "a change reached every ztunnel" || last.Verdict != tc.want {
				t.Errorf("%+v, want %s", last, tc.want)
			}
		})
	}
}

// A plan of several replicas runs as many, each with its limits, and one of them is killed.
func TestReplicas(t *testing.T) {
	p, like := planned()
	p.Request.Replicas, p.Request.Resources.Limits.CPU = 2, "1"
	var spec run.Spec
	err := Run(t.Context(), Options{Plan: p, Like: like, Processors: 3, Spec: run.DefaultSpec(), Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
		spec = s
		run := measured()
		run.Faults[0].Name = "kill-replica"
		return run, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if spec.ControlPlane.Replicas != 2 || spec.ControlPlane.CPUs != 2 || spec.ControlPlane.Memory != 256<<20 || spec.Load.Faults[0].String() != "kill-replica@steady" {
		t.Errorf("it ran %+v", spec)
	}
	if v := p.Verification; !v.Passed || v.Replicas != 2 || v.Processors != 1 {
		t.Errorf("verification %+v, want it passed with 2 replicas of 1 processor", v)
	}
}

// What cannot be carried out is refused before anything is started, and a run that failed
// for a reason of its own is an error.
func TestRefusals(t *testing.T) {
	broken := errors.New("no space left on device")
	for name, tc := range map[string]struct {
		change func(*capacity.Plan)
		want   string
	}{
		"replicas":   {func(p *capacity.Plan) { p.Request.Replicas = 3 }, "--replicas-max 2"},
		"of each":    {func(p *capacity.Plan) { p.Request.Replicas = 2 }, "2 x 2 processors on a machine that has 2: want --control-plane-cpus 1"},
		"processors": {func(p *capacity.Plan) { p.Request.Resources.Limits.CPU = "3" }, "--control-plane-cpus 2"},
		"memory":     {func(p *capacity.Plan) { p.Request.Resources.Limits.Memory = "" }, "--control-plane-memory"},
		"run":        {func(*capacity.Plan) {}, broken.Error()},
	} {
		p, like := planned()
		tc.change(p)
		err := Run(t.Context(), Options{Plan: p, Like: like, Processors: 2, Spec: run.DefaultSpec(), Run: func(context.Context, run.Spec, run.Progress) (record.Run, error) {
			return record.Run{}, broken
		}})
		if err == nil || !strings.Contains(err.Error(), tc.want) || p.Verification != nil {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}
