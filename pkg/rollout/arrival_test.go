package rollout

import (
	"fmt"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/topology"
	"scaler.mesh/scaler/pkg/workload"
)

func TestReadyRates(t *testing.T) {
	at := func(seconds ...float64) (all []time.Time) {
		for _, s := range seconds {
			all = append(all, time.Unix(0, 0).Add(time.Duration(s*float64(time.Second))))
		}
		return all
	}
	for _, test := range []struct {
		name       string
		ready      []time.Time
		second     time.Duration
		mean, peak float64 // 0 = not known
	}{
		{"none", nil, time.Second, 0, 0},
		{"one", at(3), time.Second, 0, 1},
		{"evenly spaced", at(0, 0.5, 1, 1.5, 2), time.Second, 2, 2},
		{"bunched", at(0, 1.5, 1.6, 1.7, 2), time.Second, 2, 4},
		{"seconds that are longer", at(0, 0.5, 1, 1.5, 2), 2 * time.Second, 2, 4},
	} {
		mean, peak := readyRates(test.ready, test.second)
		value := func(v *float64) float64 {
			if v == nil {
				return 0
			}
			return *v
		}
		if value(mean) != test.mean || value(peak) != test.peak {
			t.Errorf("%s: %g a second, %g at most; want %g and %g", test.name, value(mean), value(peak), test.mean, test.peak)
		}
	}
}

func TestCheckArrival(t *testing.T) {
	spec := func(change func(*Spec)) Spec {
		s := DefaultSpec()
		change(&s)
		return s
	}
	for want, s := range map[string]Spec{
		"": spec(func(s *Spec) { s.Arrival = 15 }),
		`parsing --burst "10/1s": want it without --arrival, which is bursts of one pod`:                                           spec(func(s *Spec) { s.Arrival, s.Burst = 15, "10/1s" }),
		`parsing --arrival "0.1/s": want one that ends before --converge-timeout 10m0s; the last of 200 pods are due after 33m10s`: spec(func(s *Spec) { s.Arrival = 0.1 }),
		`parsing --burst "1/1m0s": want one that ends before --converge-timeout 10m0s; the last of 200 pods are due after 3h19m0s`: spec(func(s *Spec) { s.Burst = "1/1m0s" }),
	} {
		got := ""
		if err := s.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s := spec(func(s *Spec) { s.Arrival = 10 })
	if r := newRecord(s); r.Spec.Burst != "1/100ms" || r.Spec.Arrival != "10/s" {
		t.Errorf("recorded as burst %q, arrival %q", r.Spec.Burst, r.Spec.Arrival)
	}
}

func TestArrivalDoubt(t *testing.T) {
	plan := workload.Plan(topology.Build(topology.Spec{Pods: 20}), workload.Arrival(10).Burst())
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
		doubt := test.d.doubt(test.a)
		if doubt == nil {
			doubt = &record.Warning{}
		}
		if doubt.Reason != test.want {
			t.Errorf("%s: %q, want %q", name, doubt.Reason, test.want)
		}
	}
}

func TestArrivalRates(t *testing.T) {
	text := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f", *v)
	}
	// burst are n times, a burst each 10 s, in which pods follow each other after 10 ms.
	burst := func(n, size int) (seen []time.Time) {
		for i := range n {
			seen = append(seen, time.Unix(0, 0).Add(time.Duration(i/size)*10*time.Second+time.Duration(i%size)*10*time.Millisecond))
		}
		return seen
	}
	for _, test := range []struct {
		pods              int
		burst             string
		seen              []time.Time
		offered, achieved string
	}{
		{200, "all", burst(200, 200), "-", "100.5"},
		{200, "100/10s", burst(200, 100), "10.0", "10.0"},
		{300, "100/10s", burst(300, 100), "10.0", "10.0"},
		{250, "100/10s", burst(250, 100), "7.5", "7.7"}, // the last burst is half, and done earlier
		{200, "100/10s", burst(100, 100), "10.0", "-"},  // nothing came after the first burst
		{200, "300/10s", burst(200, 300), "-", "100.5"}, // one burst is all
		{1, "all", burst(1, 1), "-", "-"},
		{20, "all", nil, "-", "-"},
	} {
		b, err := workload.ParseBurst(test.burst)
		if err != nil {
			t.Fatal(err)
		}
		plan := workload.Plan(topology.Build(topology.Spec{Pods: test.pods}), b)
		offered, achieved := arrivalRates(plan, test.seen)
		if text(offered) != test.offered || text(achieved) != test.achieved {
			t.Errorf("%d pods, %s, %d seen: offered %s, achieved %s, want %s, %s", test.pods, test.burst, len(test.seen), text(offered), text(achieved), test.offered, test.achieved)
		}
	}
}
