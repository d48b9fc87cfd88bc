package capture

import (
	"fmt"
	"testing"
)

func TestShare(t *testing.T) {
	m := Mesh{Services: nil, Workloads: []Workload{
		{Namespace: "a", Name: "many", Spec: WorkloadSpec{Replicas: 30, Proxy: Sidecar, Zones: []Zone{{Zone: "x", Pods: 20}, {Zone: "y", Pods: 10}}}},
		{Namespace: "a", Name: "one", Spec: WorkloadSpec{Replicas: 1, Proxy: Gateway}},
		{Namespace: "b", Name: "three", Spec: WorkloadSpec{Replicas: 3, Proxy: NoProxy}},
	}}
	for share, want := range map[float64]string{1: "30 [{ x 20} { y 10}] 1 3", 0.1: "3 [{ x 2} { y 1}] 1 1", 0.5: "15 [{ x 10} { y 5}] 1 2", 0.01: "1 [{ x 1} { y 1}] 1 1"} {
		part := m.Share(share)
		of := func(i int) WorkloadSpec { return part.Workloads[i].Spec }
		if got := fmt.Sprint(of(0).Replicas, of(0).Zones, of(1).Replicas, of(2).Replicas); got != want {
			t.Errorf("%g: got %s, want %s", share, got, want)
		}
	}
	if m.Workloads[0].Spec.Replicas != 30 || m.Workloads[0].Spec.Zones[0].Pods != 20 {
		t.Error("the whole mesh was changed")
	}
}
