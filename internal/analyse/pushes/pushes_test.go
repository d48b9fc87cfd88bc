package pushes_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/analyse/pushes"
	"scaler.mesh/scaler/internal/topology"
)

const ms = time.Millisecond

var istiod = pushes.Debounce{After: 100 * ms, Max: 10 * time.Second}

func at(times ...time.Duration) (changes []pushes.Change) {
	for _, t := range times {
		changes = append(changes, pushes.Change{At: t})
	}
	return changes
}

func TestRounds(t *testing.T) {
	every := func(gap, last time.Duration) (times []time.Duration) {
		for t := time.Duration(0); t <= last; t += gap {
			times = append(times, t)
		}
		return times
	}
	for name, test := range map[string]struct {
		changes []time.Duration
		want    []time.Duration // when the rounds are
	}{
		"none":                              {},
		"one":                               {[]time.Duration{5 * ms}, []time.Duration{105 * ms}},
		"quiet begins with the last change": {[]time.Duration{0, 60 * ms}, []time.Duration{160 * ms}},
		"two rounds":                        {[]time.Duration{0, 150 * ms}, []time.Duration{100 * ms, 250 * ms}},
		"in any order":                      {[]time.Duration{150 * ms, 0}, []time.Duration{100 * ms, 250 * ms}},
		"never quiet: at the maximum":       {every(50*ms, 12*time.Second), []time.Duration{10 * time.Second, 12100 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			for _, round := range istiod.Rounds(at(test.changes...)) {
				got = append(got, round.At)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every change is in one round, which is neither before it nor later than the debounce allows.
func FuzzRounds(f *testing.F) {
	f.Add([]byte{0, 10, 200, 3, 3, 3}, uint16(100), uint16(1000))
	f.Fuzz(func(t *testing.T, gaps []byte, after, most uint16) {
		d := pushes.Debounce{After: time.Duration(after) * ms, Max: time.Duration(most) * ms}
		var times []time.Duration
		var last time.Duration
		for _, gap := range gaps {
			last += time.Duration(gap) * ms
			times = append(times, last)
		}
		n := 0
		var before time.Duration
		for _, round := range d.Rounds(at(times...)) {
			if round.At < before || len(round.Changes) == 0 {
				t.Fatalf("round at %s with %d changes after one at %s", round.At, len(round.Changes), before)
			}
			before = round.At
			for _, change := range round.Changes {
				if change.At != times[n] || round.At < change.At || round.At > round.Changes[0].At+d.Max+d.After {
					t.Fatalf("change %d at %s is in the round at %s, whose first is at %s", n, times[n], round.At, round.Changes[0].At)
				}
				n++
			}
		}
		if n != len(times) {
			t.Fatalf("%d of %d changes are in a round", n, len(times))
		}
	})
}

func TestCount(t *testing.T) {
	// Two pods of a service at the begin, one of another two seconds later.
	second := time.Second
	pods := []pushes.Pod{
		{Service: 0, Address: 0, Connected: 10 * ms, Ready: second},
		{Service: 0, Address: 0, Connected: 300 * ms, Ready: second},
		{Service: 1, Address: 2 * second, Connected: 2*second + 10*ms, Ready: 3 * second},
	}
	for name, test := range map[string]struct {
		holders [][]int
		end     time.Duration
		want    pushes.Counts
	}{
		// Each proxy is sent everything when it connects and when its pod becomes ready. Rounds: 0.1 s full
		// to one proxy, 1.1 s endpoints to two, 2.1 s full to three, 3.1 s endpoints to three.
		"all hold all": {nil, 0, pushes.Counts{Rounds: 4, FullRounds: 2, Responses: 2*3*4 + 1*4 + 2 + 3*4 + 3}},
		// Nobody holds service 0, and the proxies of service 0 hold service 1: those of service 1 have
		// neither routes nor endpoints. Rounds: 0.1 s its clusters, listeners and routes to the one of
		// service 0; 2.1 s full to its two, and clusters and listeners to that of service 1; 3.1 s endpoints.
		"callers hold": {[][]int{nil, {0}}, 0, pushes.Counts{Rounds: 4, FullRounds: 2, Responses: 2*(2*4+2) + 3 + 2*4 + 2 + 2}},
		// The last pod is ready, and the last round follows, after the end.
		"until the end": {nil, 3*second - ms, pushes.Counts{Rounds: 3, FullRounds: 2, Responses: 3*4 + 2*4 + 1*4 + 2 + 3*4}},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := pushes.Rollout{Pods: pods, Holders: test.holders, End: test.end}
			if diff := cmp.Diff(test.want, rollout.Count(istiod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Rollouts of 400 pods, 20 a second in bursts of 20, on a machine that was not saturated, and the pushes
// that istiod 1.31.0 counted until nothing more was pushed (pilot_xds_pushes).
func TestMeasured(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 400, Services: 40, Namespaces: 1, Shape: topology.Layers, FanOut: 3, Seed: 1})
	callers := make([][]int, len(mesh.Services))
	for caller, service := range mesh.Services {
		for _, called := range service.Calls {
			callers[called] = append(callers[called], caller)
		}
	}
	for name, test := range map[string]struct {
		holders  [][]int
		measured float64
	}{
		"permissive-400": {nil, 20018},
		"strict-400":     {callers, 7524},
	} {
		t.Run(name, func(t *testing.T) {
			counts := pushes.Rollout{Pods: recorded(t, name), Holders: test.holders}.Count(istiod)
			if share := float64(counts.Responses)/test.measured - 1; math.Abs(share) > 0.01 {
				t.Errorf("%d pushes, which is %+.1f%% of what was measured", counts.Responses, 100*share)
			}
		})
	}
}

// recorded returns the pods of a recorded rollout.
func recorded(t *testing.T, name string) []pushes.Pod {
	t.Helper()
	file, err := os.Open("testdata/" + name + ".csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var pods []pushes.Pod
	for _, row := range rows[1:] {
		number := func(column int) float64 {
			v, err := strconv.ParseFloat(row[column], 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		moment := func(column int) time.Duration { return time.Duration(number(column) * float64(time.Second)) }
		pods = append(pods, pushes.Pod{Service: int(number(0)), Address: moment(1), Connected: moment(2), Ready: moment(3)})
	}
	return pods
}
