package report

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// A report says how the factor was chosen, also where time was not slowed down, and why a run was started again.
func TestChosenDilation(t *testing.T) {
	const need = ", by an expected need of 2.04 reference processors and 2 processors of speed 1.5: while pods come for 10.0s, the control plane needs 5.60s of processor time, the cluster 11.0s and scaler 2.92s"
	restart := &record.DilationRestart{At: time.Date(2026, 11, 26, 7, 30, 0, 0, time.UTC), Factor: 3, Component: "istiod", Phase: record.PhaseRollout, Share: 0.25, Bound: 0.1}
	for _, c := range []struct {
		factor  float64
		restart *record.DilationRestart
		want    string
	}{
		{1, nil, "1" + need},
		{6, restart, "6" + need + "; started again at 2026-11-26T07:30:00Z, because with 3 istiod waited for processors for 25.0% of rollout, and the bound is 10.0%"},
	} {
		run := record.Run{Name: "istiod-permissive-60", Scenario: scenario.Scenario{Instrument: scenario.Instrument{Dilation: scenario.Dilation{Factor: c.factor}}}, Environment: record.Environment{Dilation: &record.Dilation{Auto: &record.DilationChoice{
			Limit: 0.4, Processors: 2, Speed: 1.5, Cores: 2.04, Seconds: 10, ControlPlaneSeconds: 5.6, InstrumentSeconds: 2.92, ClusterSeconds: 11, Restart: c.restart,
		}}}}
		var text strings.Builder
		if err := Print(&text, "wide", []record.Run{run}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), c.want) {
			t.Errorf("factor %g: it lacks %q:\n%s", c.factor, c.want, text.String())
		}
	}
}

// A report lists by what a mesh differs that came to rest otherwise than expected, and states no rollout time.
func TestQuiescentPhase(t *testing.T) {
	run := record.Run{Name: "istiod-captured-10", Status: record.StatusCompleted, Phases: []record.Phase{{
		Name: record.PhaseRollout, Seconds: new(35.0), EndedBy: record.EndedByQuiescent, MoreDifferences: 7, Differences: []record.HoldingDifference{
			{Type: "CDS", Resource: "outbound|80||bill.pay", Sidecars: 6, Example: "shop/cart-1", Detail: "is not held", Object: "EnvoyFilter shop/static"},
			{Type: "RDS", Resource: "80", Sidecars: 1, Example: "shop/cart-2", Detail: "lacks bill.pay"},
		},
	}}}
	var text strings.Builder
	if err := Print(&text, "wide", []record.Run{run}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"rollout   quiescent    35.0s",
		"rollout                        CDS outbound|80||bill.pay   6          EnvoyFilter shop/static   shop/cart-1   is not held",
		"rollout                        RDS 80                      1          nothing known             shop/cart-2   lacks bill.pay",
		"and 7 more",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, text.String())
		}
	}
	if got := rolloutText(&run); got != unknown {
		t.Errorf("rollout time %s", got)
	}
}
