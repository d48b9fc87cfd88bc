package record

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func speedAt(speed float64) *Speed {
	return &Speed{Work: "1", Speed: speed, Low: speed - 0.03, High: speed + 0.03, CPUSeconds: 1}
}

func TestSpeedOfProcessor(t *testing.T) {
	p := &Processor{Before: speedAt(1), Run: speedAt(1.2)}
	if s, ok := p.Speed(); !ok || s != *speedAt(1.2) {
		t.Errorf("got %+v, %v", s, ok)
	}
	p = &Processor{Before: speedAt(1), Run: speedAt(0.8), Phases: map[PhaseName]Speed{PhaseRollout: *speedAt(0.7), PhaseSteady: *speedAt(0.9)}}
	if s, ok := p.Speed(); !ok || s.Speed != 0.7 {
		t.Errorf("sampled in the rollout: %+v, %v", s, ok)
	}
	for phase, want := range map[PhaseName]float64{PhaseSteady: 0.9, PhaseProbe: 0.7} {
		if s, ok := p.SpeedIn(phase); !ok || s.Speed != want {
			t.Errorf("in %s: %+v, %v, want %g", phase, s, ok, want)
		}
	}
	for name, p := range map[string]*Processor{"none": nil, "no speed": {}, "no samples": {Before: speedAt(1)}, "of no time": {Run: &Speed{Work: "1"}}} {
		if s, ok := p.Speed(); ok {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestSpeedsOf(t *testing.T) {
	other := *speedAt(1)
	other.Work = "2"
	for _, test := range []struct {
		speeds []Speed
		want   string
	}{
		{nil, ""}, {[]Speed{*speedAt(1)}, ""}, {[]Speed{*speedAt(1), *speedAt(1.05)}, ""},
		{[]Speed{*speedAt(1), *speedAt(1.06), *speedAt(1.02)}, "1 to 1.06 reference processors, which differ by more than 5%"},
		{[]Speed{*speedAt(1), other}, "different works, 1 and 2"},
	} {
		if got := speedsText(test.speeds); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.speeds, got, test.want)
		}
	}

	run := func(speed float64) *Run {
		r := &Run{}
		r.Environment.Processor = &Processor{Run: speedAt(speed)}
		return r
	}
	if differing, oneWork := SpeedsOf([]*Run{{}, run(1), run(1.1), run(1)}); !strings.Contains(differing, "1 to 1.1 reference processors") || !oneWork {
		t.Errorf("got %q, %v", differing, oneWork)
	}
}

// Processor time in units of the reference processor is that of this machine times its speed,
// and cores are those of the modelled machine once time is no longer slowed down.
func TestNormalize(t *testing.T) {
	made := func(p *Processor) *Usage {
		run := Run{ControlPlane: &ByPhase[*Usage]{Rollout: &Usage{CPUSeconds: new(10.0), Cores: &Level{Mean: new(0.5)}}, Probe: &Usage{}}}
		run.Environment.Processor, run.Scenario.Instrument.Dilation.Factor = p, 4
		run.Normalize()
		scaled, err := run.Undilated()
		if err != nil {
			t.Fatal(err)
		}
		return scaled.ControlPlane.Rollout
	}
	if u := made(&Processor{Run: speedAt(1.5)}); *u.ReferenceCPUSeconds != 15 || *u.ReferenceCores != 3 || *u.CPUSeconds != 10 || *u.Cores.Mean != 2 {
		t.Errorf("%g s and %g cores of %g s and %g", *u.ReferenceCPUSeconds, *u.ReferenceCores, *u.CPUSeconds, *u.Cores.Mean)
	}
	if u := made(&Processor{Phases: map[PhaseName]Speed{PhaseRollout: *speedAt(0.5)}}); *u.ReferenceCPUSeconds != 5 {
		t.Errorf("%g s by the speed in the rollout, want 5", *u.ReferenceCPUSeconds)
	}
	if u := made(&Processor{Before: speedAt(1)}); u.ReferenceCPUSeconds != nil || u.ReferenceCores != nil {
		t.Error("processor time in a unit that is not known")
	}
}

// What a control plane does at rest in the time that slowing down adds is no part of its reference processor time; the modelled machine does
// it for 1/K of the time.
func TestNormalizeAtRest(t *testing.T) {
	usage := func(seconds, cores float64) *Usage {
		return &Usage{CPUSeconds: &seconds, Cores: &Level{Mean: &cores}}
	}
	made := func(k float64, atRest map[PhaseName]float64, rollout *Usage) *Usage {
		run := Run{ControlPlane: &ByPhase[*Usage]{Baseline: usage(0.01, 0.002), Rollout: rollout, Steady: usage(0.18, 0.006), Probe: usage(9, 0.1)}}
		run.Scenario.Instrument.Dilation.Factor = k
		run.Environment.Processor = &Processor{Phases: map[PhaseName]Speed{PhaseRollout: *speedAt(0.5)}}
		run.Environment.Dilation = &Dilation{AtRest: atRest, RealTime: []PhaseName{PhaseBaseline, PhaseSteady}}
		run.Normalize()
		if known := len(atRest) == 2; run.RestKnown() != known {
			t.Errorf("K = %g with %v at rest: what is done at rest is known: %v, want %v", k, atRest, !known, known)
		} else if known && math.Abs(*run.ControlPlane.Probe.ReferenceCPUSeconds-0.5*(9-75*0.006)) > 1e-9 { // the whole mesh is there
			t.Errorf("in a phase after the rollout: %g s", *run.ControlPlane.Probe.ReferenceCPUSeconds)
		} else if *run.ControlPlane.Steady.ReferenceCPUSeconds != 0.5*0.18 {
			t.Errorf("in real time: %g s", *run.ControlPlane.Steady.ReferenceCPUSeconds)
		}
		return run.ControlPlane.Rollout
	}
	both := map[PhaseName]float64{PhaseBaseline: 0.002, PhaseSteady: 0.006}
	for name, c := range map[string]struct {
		k       float64
		atRest  map[PhaseName]float64
		rollout *Usage
		want    float64
	}{
		// 90 s here, of which 75 are added, with 0.004 cores at rest.
		"slowed down":              {6, both, usage(9, 0.1), 0.5 * (9 - 75*0.004)},
		"as it is":                 {1, nil, usage(9, 0.1), 0.5 * 9},
		"all of it slowed down":    {6, nil, usage(9, 0.1), 0.5 * 9},
		"hardly more than at rest": {6, both, usage(0.45, 0.005), 0.5 * (0.45 - 75*0.004)},
		"less than at rest":        {6, both, usage(0.3, 0.003), 0.5 * 0.3 / 6},
		"nothing":                  {6, both, usage(0, 0), 0},
		"steady alone":             {6, map[PhaseName]float64{PhaseSteady: 0.006}, usage(9, 0.1), 0.5 * 9},
	} {
		got := made(c.k, c.atRest, c.rollout)
		if math.Abs(*got.ReferenceCPUSeconds-c.want) > 1e-9 || math.Abs(*got.ReferenceCores**got.CPUSeconds-*got.ReferenceCPUSeconds**got.Cores.Mean) > 1e-9 {
			t.Errorf("%s: %g s and %g cores of %g s and %g, want %g s", name, *got.ReferenceCPUSeconds, *got.ReferenceCores, *got.CPUSeconds, *got.Cores.Mean, c.want)
		}
	}
}

// Processor time and cores of the control plane alone are those of another processor; the run stays as it was.
func TestOnProcessor(t *testing.T) {
	of := func() *Usage {
		return &Usage{
			CPUSeconds: new(3.0), Cores: &Level{Mean: new(0.3), Peak: new(0.6), Peak100ms: new(0.9)}, MemoryBytes: &Level{Peak: new(7.0)},
			ReferenceCPUSeconds: new(1.5), ReferenceCores: new(0.15),
		}
	}
	r := Run{
		ControlPlane: &ByPhase[*Usage]{Rollout: of()}, Replicas: &Replicas{Each: map[string]*Replica{"istiod-0": {}}},
		Faults: []Fault{{ControlPlane: of()}}, Cycle: &Cycle{Cores: new(0.3), CPUSeconds: new(3.0)},
		Upgrade: &Upgrade{
			Room:   &UpgradeRoom{Cores: new(0.3), MemoryBytes: new(7.0)},
			Stages: map[string]*UpgradeStage{"wave-1": {PeakCores: new(0.6), To: &UpgradeSide{ControlPlane: of()}}},
		},
		Cluster: map[string]ByPhase[*Usage]{"etcd": {Rollout: of()}},
	}
	r.Replicas.Each["istiod-0"].Usage.Rollout = of()
	text := func(r *Run) string {
		var b strings.Builder
		for _, u := range []*Usage{r.ControlPlane.Rollout, r.Replicas.Each["istiod-0"].Usage.Rollout, r.Faults[0].ControlPlane, r.Upgrade.Stages["wave-1"].To.ControlPlane, r.Cluster["etcd"].Rollout} {
			fmt.Fprintf(&b, "%g %g %g %g %g %g; ", *u.CPUSeconds, *u.Cores.Mean, *u.Cores.Peak, *u.Cores.Peak100ms, *u.MemoryBytes.Peak, *u.ReferenceCPUSeconds)
		}
		fmt.Fprintf(&b, "%g %g %g %g %g", *r.Cycle.Cores, *r.Cycle.CPUSeconds, *r.Upgrade.Room.Cores, *r.Upgrade.Room.MemoryBytes, *r.Upgrade.Stages["wave-1"].PeakCores)
		return b.String()
	}
	before := text(&r)
	r.Environment.Processor = &Processor{Run: speedAt(1), Phases: map[PhaseName]Speed{PhaseRollout: *speedAt(0.5), UpgradePhase("wave-1"): *speedAt(0.25)}}
	on := r.OnProcessor(1)
	const half, quarter, whole = "1.5 0.15 0.3 0.45 7 1.5; ", "0.75 0.075 0.15 0.225 7 1.5; ", "3 0.3 0.6 0.9 7 1.5; "
	if want := half + half + half + quarter + whole + "0.15 1.5 0.15 7 0.15"; text(on) != want {
		t.Errorf("got %s, want %s", text(on), want)
	}
	if text(&r) != before {
		t.Errorf("the run is %s now, was %s", text(&r), before)
	}
}
