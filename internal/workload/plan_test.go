package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/topology"
)

func TestParseBurst(t *testing.T) {
	tests := []struct {
		in   string
		want Burst
	}{
		{"all", Burst{}},
		{"100/10s", Burst{100, 10 * time.Second}},
		{"1/1ms", Burst{1, time.Millisecond}},
		{"100000/1h", Burst{100_000, time.Hour}},
		{"5/1m30s", Burst{5, 90 * time.Second}},
	}
	for _, test := range tests {
		got, err := ParseBurst(test.in)
		if err != nil || got != test.want {
			t.Errorf("%q is %+v, %v, want %+v", test.in, got, err, test.want)
		}
	}
}

func TestParseBurstErrors(t *testing.T) {
	const form = "want all or SIZE/INTERVAL, as in 100/10s"
	tests := []struct{ in, want string }{
		{"", `parsing --burst "": ` + form},
		{"5x", `parsing --burst "5x": ` + form},
		{"ALL", `parsing --burst "ALL": ` + form},
		{"100", `parsing --burst "100": ` + form},
		{"100/", `parsing --burst "100/": ` + form},
		{"/10s", `parsing --burst "/10s": ` + form},
		{"100/10", `parsing --burst "100/10": ` + form},
		{"100/10s/5", `parsing --burst "100/10s/5": ` + form},
		{"1e3/10s", `parsing --burst "1e3/10s": ` + form},
		{" 1/10s", `parsing --burst " 1/10s": ` + form},
		{"0/10s", `parsing --burst "0/10s": want a size of 1 to 100000`},
		{"-5/10s", `parsing --burst "-5/10s": want a size of 1 to 100000`},
		{"1000000000/10s", `parsing --burst "1000000000/10s": want a size of 1 to 100000`},
		{"100/0s", `parsing --burst "100/0s": want an interval of 1ms to 1h`},
		{"100/-10s", `parsing --burst "100/-10s": want an interval of 1ms to 1h`},
		{"100/2h", `parsing --burst "100/2h": want an interval of 1ms to 1h`},
	}
	for _, test := range tests {
		if got, err := ParseBurst(test.in); err == nil || err.Error() != test.want {
			t.Errorf("%q is %+v, %v, want error %q", test.in, got, err, test.want)
		}
	}
}

// FuzzParseBurst checks that what is accepted is within bounds, and is read again
// as it is written.
func FuzzParseBurst(f *testing.F) {
	for _, s := range []string{"all", "100/10s", "5x", "0/10s", "100/", "+1/1h0m0.000000001s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBurst(s)
		if err != nil {
			return
		}
		if again, err := ParseBurst(b.String()); err != nil || again != b {
			t.Errorf("%q is %+v, written as %q, which is %+v, %v", s, b, b, again, err)
		}
		if b != (Burst{}) && (b.Size < 1 || b.Size > topology.MaxPods || b.Interval < minInterval || b.Interval > maxInterval) {
			t.Errorf("%q is %+v, out of bounds", s, b)
		}
	})
}

func TestPlan(t *testing.T) {
	mesh := topology.Mesh{Services: []topology.Service{{Pods: 3}, {Pods: 2}, {Pods: 2}}}
	tests := []struct {
		burst Burst
		want  []Step
	}{
		{Burst{}, []Step{{0, map[int]int{0: 3, 1: 2, 2: 2}}}},
		{Burst{7, time.Second}, []Step{{0, map[int]int{0: 3, 1: 2, 2: 2}}}},
		{Burst{100, time.Second}, []Step{{0, map[int]int{0: 3, 1: 2, 2: 2}}}},
		{Burst{4, time.Second}, []Step{
			{0, map[int]int{0: 3, 1: 1}},
			{time.Second, map[int]int{1: 2, 2: 2}},
		}},
		{Burst{2, time.Minute}, []Step{
			{0, map[int]int{0: 2}},
			{time.Minute, map[int]int{0: 3, 1: 1}},
			{2 * time.Minute, map[int]int{1: 2, 2: 1}},
			{3 * time.Minute, map[int]int{2: 2}},
		}},
	}
	for _, test := range tests {
		t.Run(test.burst.String(), func(t *testing.T) {
			if diff := cmp.Diff(test.want, Plan(mesh, test.burst)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
	if got := Plan(topology.Mesh{}, Burst{}); len(got) != 0 {
		t.Errorf("plan of no services is %v, want none", got)
	}
}

// TestPlanIsWhole checks, over many sizes, that each step but the last brings
// exactly a burst and the last one leaves every service with all its pods.
func TestPlanIsWhole(t *testing.T) {
	for pods := 1; pods <= 100; pods += 9 {
		for size := 1; size <= 120; size += 7 {
			mesh := topology.Build(topology.Spec{Pods: pods})
			steps := Plan(mesh, Burst{size, time.Second})
			replicas := make([]int, len(mesh.Services))
			total := 0
			for n, step := range steps {
				for i, r := range step.Replicas {
					if r <= replicas[i] {
						t.Errorf("pods %d, size %d, step %d: service %d goes from %d to %d", pods, size, n, i, replicas[i], r)
					}
					total += r - replicas[i]
					replicas[i] = r
				}
				if want := min(pods, (n+1)*size); total != want {
					t.Errorf("pods %d, size %d: %d pods after step %d, want %d", pods, size, total, n, want)
				}
			}
			for i, s := range mesh.Services {
				if replicas[i] != s.Pods {
					t.Errorf("pods %d, size %d: service %d ends with %d of %d", pods, size, i, replicas[i], s.Pods)
				}
			}
		}
	}
}
