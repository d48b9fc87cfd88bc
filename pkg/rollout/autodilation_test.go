package rollout

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/faults"
	"scaler.mesh/scaler/pkg/record"
)

func TestParseDilation(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "2.5": 2.5, "64": 64, "auto": AutoDilation} {
		if got, err := ParseDilation(text); got != want || err != nil {
			t.Errorf("%s: got %g, %v, want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "x", "Auto", "2x"} {
		if _, err := ParseDilation(text); err == nil {
			t.Errorf("%q is a factor", text)
		}
	}
}

func TestWaitOf(t *testing.T) {
	for name, test := range map[string]struct{ cpu, waited, length, want float64 }{
		"does not wait":         {10, 0, 30, 1},
		"at the limit":          {10, 3, 30, 1},
		"a little above":        {10, 3.1, 30, 2},
		"as long as it works":   {10, 13, 30, 2},
		"longer than it works":  {10, 13.1, 30, 3},
		"starved":               {1, 1000, 30, maxDilation},
		"it never had its turn": {0, 10, 30, maxDilation},
	} {
		if got := waitOf(test.cpu, test.waited, test.length); got.Factor != test.want || got.CPUSeconds != test.cpu || got.WaitedSeconds != test.waited {
			t.Errorf("%s: got %+v, want a factor of %g", name, got, test.want)
		}
	}
}

// trialRun is the record of a trial.
func trialRun() record.Run {
	started := time.Unix(1000, 0)
	return record.Run{
		Started: started, Finished: new(started.Add(50 * time.Second)),
		Spec:         record.Spec{Pods: 400, Mode: "strict"},
		Phases:       []record.Phase{{Name: record.PhaseRollout, Seconds: new(30.0)}},
		ControlPlane: &record.ByPhase[*record.Usage]{Rollout: &record.Usage{CPUSeconds: new(10.0), WaitedSeconds: new(25.0)}},
		Instrument:   &record.Instrument{Cores: new(0.2), WaitedSeconds: new(1.0)},
	}
}

func TestJudgeTrial(t *testing.T) {
	run := trialRun()
	got, times, err := judgeTrial(&run)
	want := record.DilationTrial{
		Pods: 400, Mode: "strict", Seconds: 30,
		ControlPlane: record.DilationWait{CPUSeconds: 10, WaitedSeconds: 25, Factor: 4},
		Instrument:   record.DilationWait{CPUSeconds: 6, WaitedSeconds: 1, Factor: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if times != (trialTimes{30 * time.Second, 20 * time.Second}) {
		t.Errorf("times are %+v", times)
	}
	run.ControlPlane.Rollout.WaitedSeconds = nil
	if _, _, err := judgeTrial(&run); !errors.Is(err, errNoDelays) {
		t.Errorf("without run delays: %v", err)
	}
	run = trialRun()
	run.Phases = nil
	if _, _, err := judgeTrial(&run); err == nil {
		t.Error("a trial without a rollout chooses a factor")
	}
}

// Trials are rollouts of the largest size without anything after them, slowed down by
// nothing, with the arrival of the runs.
func TestTrials(t *testing.T) {
	l := Ladder{Spec: DefaultSpec(), Pods: []int{200, 800, 400}, Modes: []string{"permissive", "strict"}, Repeats: 3}
	l.Spec.Dilation, l.Spec.Arrival, l.Spec.Churn, l.Spec.Keep = AutoDilation, 20, 2, true
	l.Spec.Faults = []faults.Fault{{}}
	trials := l.trials()
	if len(trials) != 2 {
		t.Fatalf("%d trials, want one of each mode", len(trials))
	}
	for i, spec := range trials {
		if err := spec.Validate(); err != nil {
			t.Error(err)
		}
		if spec.Topology.Pods != 800 || spec.Mode != l.Modes[i] || spec.Arrival != 20 || spec.dilation() != 1 || spec.Probes != 0 || spec.Faults != nil || spec.Churn != 0 || spec.Keep {
			t.Errorf("trial %d is %+v", i, spec)
		}
	}
	given := l
	given.Spec.Dilation = 3
	got, err := given.chooseDilation(t.Context(), nil, Progress{})
	if err != nil || got.Spec.Dilation != 3 || got.Spec.Choice != nil {
		t.Errorf("a factor that is given becomes %g, %v", got.Spec.Dilation, err)
	}
}

func TestExpected(t *testing.T) {
	s := DefaultSpec() // 10 s, 10 s and 60 s
	s.Dilation = 3
	if got := s.expected(trialTimes{rollout: 30 * time.Second, around: 20 * time.Second}); got != 350*time.Second {
		t.Errorf("it takes %s, want 350 s", got)
	}
}

// That a trial chose not to slow time down is recorded, too.
func TestChosenDilation(t *testing.T) {
	choice := &record.DilationChoice{Limit: record.Saturated}
	for _, k := range []float64{1, 4} {
		s := DefaultSpec()
		s.Dilation, s.Choice = k, choice
		driver, err := s.Driver()
		if err != nil {
			t.Fatal(err)
		}
		given := controlplane.Resources{MaxProcs: 2}
		resources, d := s.dilate(driver, given)
		if d == nil || d.Factor != k || d.Auto != choice || (d.Scaled == nil) != (k == 1) {
			t.Errorf("slowed down %g times, the record has %+v", k, d)
		}
		if k == 1 && !cmp.Equal(given, resources) {
			t.Errorf("not slowed down, the control plane is given %+v", resources)
		}
	}
}
