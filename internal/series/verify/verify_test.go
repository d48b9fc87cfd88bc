package verify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

const cpuSeconds = "controlPlane.rollout.cpuSeconds"

func seconds(n int) scenario.Duration { return scenario.Duration(time.Duration(n) * time.Second) }

// planned returns a plan for 40 pods, and a run that it was made from.
func planned() (*capacity.Plan, *record.Run) {
	p := &capacity.Plan{
		Target: capacity.Target{Pods: 40, Services: 4, ControlPlane: "istiod"},
		Figures: []capacity.Figure{
			{Name: cpuSeconds, Unit: "s", Forecast: 10, Low: new(9.0), High: new(11.0)},
			{Name: rolloutTime, Unit: "s", Forecast: 20, Low: new(18.0), High: new(22.0)},
		},
		Request: capacity.Request{Replicas: 1, Processors: 2, Resources: capacity.Resources{Limits: capacity.Amounts{Memory: "256Mi"}}},
	}
	s := run.DefaultSpec().Scenario
	s.Repeats, s.Place.Context = 3, "staging"
	s.Mesh.Pods, s.Mesh.Services, s.Mesh.Namespaces, s.Mesh.Seed = []int{20}, 2, 1, 7
	s.Mesh.Mode, s.Mesh.Profile, s.Mesh.Parts.Zones = []string{"strict"}, "typical", new(5)
	s.ControlPlane.Version, s.ControlPlane.Env = "1.29.1", []string{"A=b", "TOKEN=(masked)"}
	s.Load.Arrival, s.Load.Churn, s.Load.CertificateStorm = scenario.Arrival{Size: 10, Interval: 2 * time.Second}, 2, true
	s.Phases.Baseline, s.Phases.Settle, s.Phases.Steady, s.Phases.Cycle = seconds(1), seconds(1), seconds(5), seconds(30)
	return p, &record.Run{Scenario: s, Environment: record.Environment{Priority: &record.Priority{}}}
}

// measured returns a run in which everything is as the plan has it.
func measured() record.Run {
	latency := record.Latency{Count: 40}
	return record.Run{
		Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{40}}}, Pods: &record.Pods{Requested: 40, Converged: new(40)},
		ControlPlane: &record.ByPhase[*record.Usage]{Rollout: &record.Usage{CPUSeconds: new(10.5)}},
		Faults:       []record.Fault{{Name: "kill-control-plane", Phase: record.PhaseSteady, Seconds: new(3.0)}},
		Change:       &record.Change{Changes: new(1), Push: &latency},
		Phases:       []record.Phase{{Name: record.PhaseRollout, Seconds: new(20.0), EndedBy: record.EndedByConverged}},
		Environment:  record.Environment{ControlPlane: record.ControlPlaneSource{MemoryLimitBytes: 256 << 20, MemoryLimitEnforced: true}},
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
		"not enforced":    {func(r *record.Run) { r.Environment.ControlPlane.MemoryLimitEnforced = false }, nil, "not killed for its memory", capacity.NotEnforced},
		"killed":          {func(*record.Run) {}, &process.OutOfMemoryError{}, "not killed for its memory", capacity.Failed},
		"not converged":   {func(r *record.Run) { r.Pods.Converged = new(39) }, phases.ErrUnconverged, "converged", capacity.Failed},
		"no second time":  {func(r *record.Run) { r.Faults[0].Seconds = nil }, phases.ErrUnconverged, "converged again after a kill", capacity.Failed},
		"no kill":         {func(r *record.Run) { r.Faults = nil }, nil, "converged again after a kill", capacity.Unknown},
		"a lost change":   {func(r *record.Run) { r.Change.Push.Count, r.Change.Push.Lost = 39, 1 }, nil, "a change reached every sidecar", capacity.Failed},
		"a missed change": {func(r *record.Run) { r.Change.Push.Count = 39 }, nil, "a change reached every sidecar", capacity.Failed},
		"no change":       {func(r *record.Run) { r.Change = nil }, nil, "a change reached every sidecar", capacity.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			p, like := planned()
			var spec run.Spec
			base := run.DefaultSpec()
			base.Programs.Istio = "1.31.0"
			err := Run(t.Context(), Options{Plan: p, Like: like, Spec: base, Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
				spec = s
				run := measured()
				tc.change(&run)
				return run, tc.err
			}})
			if err != nil {
				t.Fatal(err)
			}
			if p := spec.Profile(); topology.Value(p.Zones) != 5 || topology.Value(p.VirtualServices) != 4 {
				t.Errorf("its profile is %s", p)
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
			if spec.Pods() != 40 || spec.Mesh.Services != 4 || spec.Mesh.Namespaces != 0 || spec.Mesh.Seed != 7 || spec.Load.Arrival.String() != "10/2s" || spec.Mode() != "strict" ||
				spec.ControlPlane.Processors != 2 || spec.ControlPlane.Memory != 256<<20 || spec.Phases.Settle != seconds(1) || spec.Phases.Steady != seconds(5) || !spec.Instrument.Priority || spec.Instrument.Calibrate {
				t.Errorf("it ran %+v", spec)
			}
			if spec.Repeats != 1 || spec.Place.Context != "" || spec.ControlPlane.Version != "1.31.0" || !slices.Equal(spec.ControlPlane.Env, []string{"A=b"}) ||
				spec.Load.Probes != 0 || spec.Load.Churn != 0 || spec.Load.CertificateStorm || spec.Phases.Cycle != 0 {
				t.Errorf("it ran more than was planned: %+v", spec.Scenario)
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
			like.Scenario.Mesh.Dataplane, like.Scenario.Mesh.Profile, like.Scenario.Mesh.Parts = []string{"ambient"}, "plain", scenario.Parts{}
			var spec run.Spec
			err := Run(t.Context(), Options{Plan: p, Like: like, Spec: run.DefaultSpec(), Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
				spec = s
				run := measured()
				run.Scenario.Load.Probes, run.Change = s.Load.Probes, nil
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

// A plan for slower processors is verified with reference processors all the same, which is named.
func TestNotReproducedSpeed(t *testing.T) {
	p, like := planned()
	like.Scenario.ControlPlane.Env = nil
	p.Processor, like.Environment.ControlPlane = &record.Speed{Speed: 0.5}, record.ControlPlaneSource{GOMAXPROCS: 2, ReferenceProcessors: true}
	got := Options{Plan: p, Like: like}.notReproduced()
	if len(got) != 1 || got[0].What != "speed of the processors" || got[0].Value != "0.5" {
		t.Errorf("got %+v", got)
	}
}

// A plan of several replicas runs as many, each with its limits, and one of them is killed.
// What the runs had and the verification does not is named, and figures that miss an interval for it state whose it is.
func TestNotReproduced(t *testing.T) {
	for name, tc := range map[string]struct {
		had  record.ControlPlaneSource
		env  []string
		want []string // what is named, and its value
		why  string
	}{
		"nothing":               {record.ControlPlaneSource{GOMAXPROCS: 2}, []string{"A=b"}, nil, "above the interval"},
		"other processors":      {record.ControlPlaneSource{GOMAXPROCS: 8}, nil, []string{"processors 8"}, "above the interval of runs with 8 processors"},
		"those of the machine":  {record.ControlPlaneSource{}, nil, []string{"processors 4"}, "above the interval of runs with 4 processors"},
		"values that were kept": {record.ControlPlaneSource{GOMAXPROCS: 2}, []string{"TOKEN=(masked)", "A=b", "OTHER_KEY=(masked)"}, []string{"setting TOKEN", "setting OTHER_KEY"}, "above the interval"},
	} {
		p, like := planned()
		like.Environment.CPUs, like.Environment.ControlPlane, like.Scenario.ControlPlane.Env = 4, tc.had, tc.env
		err := Run(t.Context(), Options{Plan: p, Like: like, Spec: run.DefaultSpec(), Run: func(context.Context, run.Spec, run.Progress) (record.Run, error) {
			run := measured()
			run.ControlPlane.Rollout.CPUSeconds = new(11.5)
			return run, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		var named []string
		for _, n := range p.Verification.NotReproduced {
			named = append(named, strings.TrimSpace(n.What+" "+n.Value))
		}
		if !slices.Equal(named, tc.want) {
			t.Errorf("%s: named %q, want %q", name, named, tc.want)
		}
		for _, c := range p.Verification.Checks {
			if c.Name == cpuSeconds && (c.Verdict != capacity.Failed || c.Why != tc.why) {
				t.Errorf("%s: %s, %q, want %q", name, c.Verdict, c.Why, tc.why)
			}
		}
		var answer strings.Builder
		if err := capacity.Print(&answer, "wide", p); err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.want {
			if !strings.Contains(answer.String(), "Not as in the runs: "+want+" (") {
				t.Errorf("%s: the answer does not name %s:\n%s", name, want, answer.String())
			}
		}
	}
}

func TestReplicas(t *testing.T) {
	p, like := planned()
	p.Request.Replicas, p.Request.Processors = 2, 1
	var spec run.Spec
	err := Run(t.Context(), Options{Plan: p, Like: like, Spec: run.DefaultSpec(), Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
		spec = s
		run := measured()
		run.Faults[0].Name = "kill-replica"
		return run, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if spec.ControlPlane.Replicas != 2 || spec.ControlPlane.Processors != 1 || spec.ControlPlane.Memory != 256<<20 || spec.Load.Faults[0].String() != "kill-replica@steady" {
		t.Errorf("it ran %+v", spec)
	}
	if v := p.Verification; !v.Passed || v.Replicas != 2 || v.Processors != 1 {
		t.Errorf("verification %+v, want it passed with 2 replicas of 1 processor", v)
	}
}

// The run has the planned processors whatever this machine has and however much time is slowed down.
func TestProcessors(t *testing.T) {
	for processors := 1; processors <= 9; processors++ {
		p, like := planned()
		p.Request.Processors = processors
		like.Scenario.Instrument.Dilation = scenario.Dilation{Factor: 4}
		o := Options{Plan: p, Like: like, Spec: run.DefaultSpec(), Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
			if s.ControlPlane.Processors != processors {
				t.Errorf("it ran %d processors, want %d", s.ControlPlane.Processors, processors)
			}
			return measured(), nil
		}}
		if err := Run(t.Context(), o); err != nil || p.Verification.Processors != processors {
			t.Errorf("%d processors: %v, %+v", processors, err, p.Verification)
		}
	}
}

// replayed makes a plan one of three copies of a sample.
func replayed(p *capacity.Plan, like *record.Run, digest string) {
	p.Target.Pods, p.Target.Services, p.Target.Mesh = 18, 12, &capacity.Captured{File: "sample:bookinfo", Digest: digest, Scale: 3}
	like.Mesh = &record.Mesh{Digest: digest}
	like.Scenario.Mesh.File, like.Scenario.Mesh.Scale = "sample:bookinfo", []int{1}
	like.Scenario = like.Scenario.Applicable()
}

// A plan of a captured mesh runs so many copies of it, with the version of the runs.
func TestCaptured(t *testing.T) {
	m, err := run.ReadMesh("sample:bookinfo")
	if err != nil {
		t.Fatal(err)
	}
	p, like := planned()
	replayed(p, like, m.Digest)
	var spec run.Spec
	err = Run(t.Context(), Options{Plan: p, Like: like, Spec: run.DefaultSpec(), Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
		spec = s
		return measured(), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if spec.Name() != "istiod-captured-18" || spec.Captured.Scale != 3 || len(spec.Captured.Mesh.Namespaces) != 3 || spec.ControlPlane.Version != "1.29.1" || spec.Programs.Istio != "1.29.1" {
		t.Errorf("it ran %s of %+v", spec.Name(), spec.Scenario)
	}
}

// What cannot be carried out is refused before anything is started, and a run that failed
// for a reason of its own is an error.
func TestRefusals(t *testing.T) {
	broken := errors.New("no space left on device")
	for name, tc := range map[string]struct {
		change func(*capacity.Plan, *record.Run)
		want   string
	}{
		"several meshes": {func(_ *capacity.Plan, like *record.Run) {
			like.Mesh, like.Scenario.Mesh.File = &record.Mesh{}, "mesh.yaml"
		}, "mesh.file: got \"mesh.yaml\", want runs that are all of one captured mesh"},
		"another mesh": {func(p *capacity.Plan, like *record.Run) {
			replayed(p, like, "0123456789ab")
		}, "mesh.file: got \"sample:bookinfo\", want the file that the runs replayed, whose SHA-256 begins with 0123456789ab, not with "},
		"little": {func(p *capacity.Plan, _ *record.Run) { p.Request.Resources.Limits.Memory = "63Mi" }, `controlPlane.memory: got "63Mi", want from 64Mi`},
		"processors": {func(p *capacity.Plan, like *record.Run) {
			p.Request.Processors, like.Scenario.Instrument.Workers = 1000, 2
		}, "controlPlane.processors: got 1000"},
		"memory": {func(p *capacity.Plan, _ *record.Run) { p.Request.Resources.Limits.Memory = "" }, "controlPlane.memory: want it, or more runs"},
		"run":    {func(*capacity.Plan, *record.Run) {}, broken.Error()},
	} {
		p, like := planned()
		tc.change(p, like)
		err := Run(t.Context(), Options{Plan: p, Like: like, Spec: run.DefaultSpec(), Run: func(context.Context, run.Spec, run.Progress) (record.Run, error) {
			return record.Run{}, broken
		}})
		if err == nil || !strings.Contains(err.Error(), tc.want) || p.Verification != nil {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

// A verification that is interrupted says nothing of the plan.
func TestInterrupted(t *testing.T) {
	p, like := planned()
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, Options{Plan: p, Like: like, Spec: run.DefaultSpec(), Run: func(context.Context, run.Spec, run.Progress) (record.Run, error) {
		cancel()
		return measured(), phases.ErrUnconverged
	}})
	if !errors.Is(err, context.Canceled) || p.Verification != nil {
		t.Errorf("%v, %+v", err, p.Verification)
	}
}
