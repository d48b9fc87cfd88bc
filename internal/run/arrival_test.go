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
		d    *rollout
		a    *record.Arrival
		want record.Reason
	}{
		"one by one, as offered":   {&rollout{plan: plan, overlap: true, stepLate: time.Second}, arrival(10, 9.6), ""},
		"one by one, more slowly":  {&rollout{plan: plan, overlap: true}, arrival(10, 9.4), record.ReasonSlowArrival},
		"bursts that were late":    {&rollout{plan: plan, stepLate: time.Second}, arrival(10, 10), record.ReasonLateBurst},
		"bursts that were on time": {&rollout{plan: plan, stepLate: 9 * time.Millisecond}, arrival(10, 10), ""},
		"all at once":              {&rollout{plan: plan[:1], stepLate: time.Second}, &record.Arrival{}, ""},
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

// Changes that paused for the debounce of the modelled machine are named, where they need not have paused.
func TestChangesPaused(t *testing.T) {
	at := func(ms ...int) (all []time.Time) {
		for _, m := range ms {
			all = append(all, time.Unix(0, 0).Add(time.Duration(m)*time.Millisecond))
		}
		return all
	}
	pods, changes := at(0, 200, 400, 1000), at(50, 250, 600, 950)
	evenly := func(perSecond float64) []workload.Step {
		return workload.Plan(topology.Build(topology.Spec{Pods: 20}), scenario.Arrival{Rate: perSecond})
	}
	for name, test := range map[string]struct {
		plan     []workload.Step
		bursts   bool
		k        int
		debounce float64
		want     string
	}{
		"K = 3": {evenly(20), false, 3, 0.1,
			"while pods came one by one, no EndpointSlice changed for 100.0 ms or longer 2 times, for up to 116.7 ms. The control plane pushes after each such pause: pushes and bytes depend on how evenly pods came here, and not on the scenario alone"},
		"K = 4":                   {evenly(20), false, 4, 0.1, ""},
		"two pods a second":       {evenly(2), false, 3, 0.1, ""},
		"bursts":                  {evenly(20), true, 3, 0.1, ""},
		"a debounce not known":    {evenly(20), false, 3, 0, ""},
		"time is not slowed down": {evenly(20), false, 1, 0.5, ""},
	} {
		d := &rollout{plan: test.plan, overlap: !test.bursts, second: time.Duration(test.k) * time.Second, debounce: test.debounce}
		got := ""
		if w := d.pauses(pods, changes); w != nil {
			got = w.Sentence()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
