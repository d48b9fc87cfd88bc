package workload

import (
	"fmt"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
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
		mean, peak := ReadyRates(test.ready, test.second)
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
		var arrival scenario.Arrival
		if err := arrival.UnmarshalText([]byte(test.burst)); err != nil {
			t.Fatal(err)
		}
		plan := Plan(topology.Build(topology.Spec{Pods: test.pods}), arrival)
		offered, achieved := ArrivalRates(plan, test.seen)
		if text(offered) != test.offered || text(achieved) != test.achieved {
			t.Errorf("%d pods, %s, %d seen: offered %s, achieved %s, want %s, %s", test.pods, test.burst, len(test.seen), text(offered), text(achieved), test.offered, test.achieved)
		}
	}
}

func TestPauses(t *testing.T) {
	at := func(ms ...int) (all []time.Time) {
		for _, m := range ms {
			all = append(all, time.Unix(0, 0).Add(time.Duration(m)*time.Millisecond))
		}
		return all
	}
	for name, test := range map[string]struct {
		pods, changes []time.Time
		n             int
		longest       time.Duration
	}{
		"no pods":                         {nil, at(0, 500), 0, 0},
		"even":                            {at(0, 50, 100, 150), at(20, 70, 120, 140), 0, 0},
		"two":                             {at(0, 50, 400), at(20, 120, 130, 380, 390), 2, 250 * time.Millisecond},
		"before the first and after last": {at(0, 50, 100), at(-300, 20, 70, 300, 900), 0, 0},
	} {
		if n, longest := Pauses(test.pods, test.changes, 100*time.Millisecond); n != test.n || longest != test.longest {
			t.Errorf("%s: %d, %s; want %d, %s", name, n, longest, test.n, test.longest)
		}
	}
}
