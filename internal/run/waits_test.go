package run

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

// Waits are found once in a phase, when they are more than the bound of the time that it is expected to take.
func TestWaits(t *testing.T) {
	begin := time.Now()
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		phase record.PhaseName
		late  []float64 // seconds that the program waited in each 2 s; nil = it is not known
		want  string    // what is found at which look
	}{
		"none":                      {record.PhaseRollout, []float64{0, 0, 0, 0}, ""},
		"within the bound":          {record.PhaseRollout, []float64{1, 1, 0, 0}, ""},
		"early":                     {record.PhaseRollout, []float64{1, 1, 0.6, 0}, "istiod 13% at 3;"},
		"not known":                 {record.PhaseRollout, nil, ""},
		"in a phase without a load": {record.PhaseSettle, []float64{2, 2, 2, 2}, ""},
		"longer than expected":      {record.PhaseChange, []float64{0, 0, 0, 0.7}, ""},
	} {
		found, look := "", 0
		w := &waits{
			program: "istiod", factor: 3,
			length: map[record.PhaseName]time.Duration{record.PhaseRollout: 20 * time.Second, record.PhaseChange: 4 * time.Second},
			late: func(program string, since time.Time) (time.Duration, time.Time, bool) {
				if c.late == nil {
					return 0, time.Time{}, false
				}
				if want := at(float64(2 * (look - 1))); !since.Equal(want) {
					t.Errorf("%s: look %d is since %s, want %s", name, look, since, want)
				}
				return time.Duration(c.late[look-1] * float64(time.Second)), at(float64(2 * look)), true
			},
			found: func(e *tooFast) {
				found += fmt.Sprintf("%s %.0f%% at %d;", e.Component, e.Share*100, look)
				if e.Factor != 3 || e.Phase != c.phase || e.Bound != record.Saturated {
					t.Errorf("%s: found %+v", name, e)
				}
			},
		}
		for look = 1; look <= 4; look++ {
			w.look(c.phase, begin)
		}
		if found != c.want {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
	}
}

// Each phase is judged for itself.
func TestWaitsOfSeveralPhases(t *testing.T) {
	var found []record.PhaseName
	w := &waits{
		program: "istiod", length: map[record.PhaseName]time.Duration{record.PhaseRollout: time.Second, record.PhaseChange: time.Second},
		late: func(_ string, since time.Time) (time.Duration, time.Time, bool) {
			return time.Second, since.Add(2 * time.Second), true
		},
		found: func(e *tooFast) { found = append(found, e.Phase) },
	}
	begin := time.Now()
	for _, phase := range []record.PhaseName{record.PhaseRollout, record.PhaseRollout, record.PhaseSteady, record.PhaseChange, ""} {
		w.look(phase, begin)
	}
	if fmt.Sprint(found) != "[rollout change]" {
		t.Errorf("found in %v", found)
	}
}

// A run of which something is left is not started again.
func TestStartsAgain(t *testing.T) {
	slow := waited()
	for _, err := range []error{slow, fmt.Errorf("rollout: %w", slow), errors.Join(slow, nil)} {
		if startsAgain(err) == nil {
			t.Errorf("%v: not started again", err)
		}
	}
	for _, err := range []error{nil, errors.New("broken"), errors.Join(slow, &steps.TeardownError{Step: "a", Err: errors.New("b")})} {
		if startsAgain(err) != nil {
			t.Errorf("%v: started again", err)
		}
	}
}
