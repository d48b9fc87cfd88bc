package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestPlan(t *testing.T) {
	mesh := topology.Mesh{Services: []topology.Service{{Pods: 3}, {Pods: 2}, {Pods: 2}}}
	tests := []struct {
		burst scenario.Arrival
		want  []Step
	}{
		{scenario.Arrival{}, []Step{{0, map[int]int{0: 3, 1: 2, 2: 2}}}},
		{scenario.Arrival{Size: 7, Interval: time.Second}, []Step{{0, map[int]int{0: 3, 1: 2, 2: 2}}}},
		{scenario.Arrival{Size: 100, Interval: time.Second}, []Step{{0, map[int]int{0: 3, 1: 2, 2: 2}}}},
		{scenario.Arrival{Size: 4, Interval: time.Second}, []Step{
			{0, map[int]int{0: 3, 1: 1}},
			{time.Second, map[int]int{1: 2, 2: 2}},
		}},
		{scenario.Arrival{Size: 2, Interval: time.Minute}, []Step{
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
	if got := Plan(topology.Mesh{}, scenario.Arrival{}); len(got) != 0 {
		t.Errorf("plan of no services is %v, want none", got)
	}
}

// TestPlanIsWhole checks, over many sizes, that each step but the last brings
// exactly a burst and the last one leaves every service with all its pods.
func TestPlanIsWhole(t *testing.T) {
	for pods := 1; pods <= 100; pods += 9 {
		for size := 1; size <= 120; size += 7 {
			mesh := topology.Build(topology.Spec{Pods: pods})
			steps := Plan(mesh, scenario.Arrival{Size: size, Interval: time.Second})
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
