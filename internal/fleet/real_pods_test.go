package fleet

import (
	"testing"

	"scaler.mesh/scaler/internal/topology"
)

// Pods on real nodes are spread evenly, and each service keeps a pod on a fake node.
func TestSpreadReal(t *testing.T) {
	for _, test := range []struct {
		name string
		pods []int
		n    int
		want []int // nil = an error
	}{
		{"none", []int{2, 2}, 0, []int{0, 0}},
		{"fewer than services", []int{5, 5, 5, 5}, 2, []int{1, 0, 1, 0}},
		{"more than services", []int{5, 2, 5}, 5, []int{2, 1, 2}},
		{"past a service of one pod", []int{1, 3}, 1, []int{0, 1}},
		{"all that may be", []int{1, 3, 2}, 3, []int{0, 2, 1}},
		{"too many", []int{1, 3, 2}, 4, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var services []topology.Service
			for i, pods := range test.pods {
				services = append(services, topology.Service{Name: string(rune('a' + i)), Pods: pods})
			}
			err := SpreadReal(services, test.n)
			if (err != nil) != (test.want == nil) {
				t.Fatalf("error %v", err)
			}
			for i, want := range test.want {
				if got := services[i].Real; got != want {
					t.Errorf("service %d: %d pods on real nodes, want %d", i, got, want)
				}
			}
		})
	}
}
