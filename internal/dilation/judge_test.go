package dilation

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestWaitOf(t *testing.T) {
	for name, test := range map[string]struct{ cpu, waited, length, want float64 }{
		"does not wait":         {10, 0, 30, 1},
		"at the limit":          {10, 3, 30, 1},
		"a little above":        {10, 3.1, 30, 2},
		"as long as it works":   {10, 13, 30, 2},
		"longer than it works":  {10, 13.1, 30, 3},
		"starved":               {1, 1000, 30, scenario.MaxDilation},
		"it never had its turn": {0, 10, 30, scenario.MaxDilation},
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
		Scenario:     scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{400}, Mode: scenario.List[string]{"strict"}}},
		Phases:       []record.Phase{{Name: record.PhaseRollout, Seconds: new(30.0)}},
		ControlPlane: &record.ByPhase[*record.Usage]{Rollout: &record.Usage{CPUSeconds: new(10.0), WaitedSeconds: new(25.0)}},
		Instrument:   &record.Instrument{Cores: new(0.2), WaitedSeconds: new(1.0)},
	}
}

func TestJudge(t *testing.T) {
	run := trialRun()
	got, times, err := Judge(&run)
	want := record.DilationTrial{
		Pods: 400, Mode: "strict", Seconds: 30,
		ControlPlane: record.DilationWait{CPUSeconds: 10, WaitedSeconds: 25, Factor: 4},
		Instrument:   record.DilationWait{CPUSeconds: 6, WaitedSeconds: 1, Factor: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if times != (Times{30 * time.Second, 20 * time.Second}) {
		t.Errorf("times are %+v", times)
	}
	run.ControlPlane.Rollout.WaitedSeconds = nil
	if _, _, err := Judge(&run); !errors.Is(err, ErrNoDelays) {
		t.Errorf("without run delays: %v", err)
	}
	run = trialRun()
	run.Phases = nil
	if _, _, err := Judge(&run); err == nil {
		t.Error("a trial without a rollout chooses a factor")
	}
}
