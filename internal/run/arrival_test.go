package run

import (
	"testing"
	"time"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestCheckArrival(t *testing.T) {
	spec := func(change func(*Spec)) Spec {
		s := DefaultSpec()
		change(&s)
		return s
	}
	for want, s := range map[string]Spec{
		"": spec(func(s *Spec) { s.Load.Arrival.Rate = 15 }),
		`load.arrival: got "0.1/s", want one that ends before phases.convergeTimeout 10m; the last of 200 pods are due after 33m10s`:   spec(func(s *Spec) { s.Load.Arrival.Rate = 0.1 }),
		`load.arrival: got "1/1m0s", want one that ends before phases.convergeTimeout 10m; the last of 200 pods are due after 3h19m0s`: spec(func(s *Spec) { s.Load.Arrival = scenario.Arrival{Size: 1, Interval: time.Minute} }),
	} {
		got := ""
		if err := s.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestArrivalWarning(t *testing.T) {
	plan := workload.Plan(topology.Build(topology.Spec{Pods: 20}), scenario.Arrival{Rate: 10})
	arrival := func(offered, achieved float64) *record.Arrival {
		return &record.Arrival{OfferedPerSecond: &offered, AchievedPerSecond: &achieved}
	}
	for name, test := range map[string]struct {
		d    *deployment
		a    *record.Arrival
		want record.Reason
	}{
		"one by one, as offered":   {&deployment{plan: plan, overlap: true, stepLate: time.Second}, arrival(10, 9.6), ""},
		"one by one, more slowly":  {&deployment{plan: plan, overlap: true}, arrival(10, 9.4), record.ReasonSlowArrival},
		"bursts that were late":    {&deployment{plan: plan, stepLate: time.Second}, arrival(10, 10), record.ReasonLateBurst},
		"bursts that were on time": {&deployment{plan: plan, stepLate: 9 * time.Millisecond}, arrival(10, 10), ""},
		"all at once":              {&deployment{plan: plan[:1], stepLate: time.Second}, &record.Arrival{}, ""},
	} {
		warning := test.d.warning(test.a)
		if warning == nil {
			warning = &record.Warning{}
		}
		if warning.Reason != test.want {
			t.Errorf("%s: %q, want %q", name, warning.Reason, test.want)
		}
	}
}
