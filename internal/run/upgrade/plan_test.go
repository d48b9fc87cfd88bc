package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// sized is a mesh of services with so many pods.
func sized(pods ...int) topology.Mesh {
	var mesh topology.Mesh
	for i, n := range pods {
		mesh.Services = append(mesh.Services, topology.Service{Name: fmt.Sprintf("s%d", i), Pods: n})
	}
	return mesh
}

func TestWaves(t *testing.T) {
	for _, test := range []struct {
		name   string
		mesh   topology.Mesh
		canary string
		want   string
	}{
		{"exact", sized(10, 10, 10, 10, 10, 10, 10, 10, 10, 10), "10%,50%,100%", "[[0] [1 2 3 4] [5 6 7 8 9]]"},
		{"a share within a workload takes all of it", sized(10, 10, 10), "10%,40%,100%", "[[0] [1] [2]]"},
		{"uneven", sized(1, 30, 2, 3), "10%,100%", "[[0 1] [2 3]]"},
		{"a wave without a workload", sized(10, 10), "10%,50%,100%", "[[0] [] [1]]"},
		{"one wave", sized(10, 10), "100%", "[[0 1]]"},
		{"no rounding beyond the share", sized(3, 3, 3, 3, 3, 3, 3, 3, 3, 3), "30%,60%,100%", "[[0 1 2] [3 4 5] [6 7 8 9]]"},
	} {
		var shares scenario.Shares
		if err := shares.UnmarshalText([]byte(test.canary)); err != nil {
			t.Fatal(err)
		}
		waves := Plan{Waves: shares}.WavesOf(test.mesh)
		if got := fmt.Sprint(waves); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if all := concat(waves); len(all) != len(test.mesh.Services) || !slices.IsSorted(all) {
			t.Errorf("%s: %v are not all workloads once", test.name, all)
		}
	}
}

// Of a captured mesh each wave moves whole namespaces, and no workload without sidecars.
func TestWavesByNamespace(t *testing.T) {
	mesh := sized(10, 10, 50, 10, 10)
	for i, namespace := range []string{"a", "b", "a", "a", "c"} {
		mesh.Services[i].Namespace, mesh.Services[i].Outside = namespace, i == 2
	}
	for canary, want := range map[string]string{"20%,100%": "[[0 3] [1 4]]", "60%,100%": "[[0 3 1] [4]]", "100%": "[[0 3 1 4]]"} {
		var shares scenario.Shares
		if err := shares.UnmarshalText([]byte(canary)); err != nil {
			t.Fatal(err)
		}
		plan := Plan{From: "1.29.1", To: "1.31.0", Waves: shares, ByNamespace: true}
		if got := fmt.Sprint(plan.WavesOf(mesh)); got != want {
			t.Errorf("%s: %s, want %s", canary, got, want)
		}
		if err := plan.Validate(mesh); err != nil {
			t.Errorf("%s: %v", canary, err)
		}
	}
	plan := Plan{From: "1.29.1", To: "1.31.0", Waves: []float64{0.1, 0.2, 0.3, 1}, ByNamespace: true}
	if err := plan.Validate(mesh); err == nil || !strings.Contains(err.Error(), "wave 2 has no namespace to move; a namespace is moved as a whole, and there are 3") {
		t.Errorf("%v", err)
	}
}

// Workloads are due at the rate of their pods, without a rate all at once.
func TestDue(t *testing.T) {
	mesh := sized(10, 5, 20)
	if got := fmt.Sprint(due(mesh, []int{0, 1, 2}, 5)); got != "[0s 2s 3s]" {
		t.Errorf("at 5 pods/s: %s", got)
	}
	if got := fmt.Sprint(due(mesh, []int{0, 2}, 0)); got != "[0s 0s]" {
		t.Errorf("without a rate: %s", got)
	}
}

func TestRevisionsAreNames(t *testing.T) {
	for _, test := range []struct{ from, to, wantFrom, wantTo string }{
		{"1.29.1", "1.31.0", "1-29-1", "1-31-0"},
		{"1.31.0", "1.31.0", "1-31-0", "1-31-0-next"},
		{"1.29", "1.31-20260423", "1-29", "1-31-20260423"},
	} {
		if from, to := (Plan{From: test.from, To: test.to}).Revisions(); from != test.wantFrom || to != test.wantTo {
			t.Errorf("%s to %s: %s, %s", test.from, test.to, from, to)
		}
	}
}

func TestInPlace(t *testing.T) {
	inPlace := &Plan{From: "1.29.1", To: "1.31.0", InPlace: true}
	if from, to := inPlace.Revisions(); from != "" || to != "" || inPlace.Next() != "1-31-0" {
		t.Errorf("in place: revisions %q and %q, named %q", from, to, inPlace.Next())
	}
	if err := inPlace.Validate(sized(10, 10)); err != nil {
		t.Errorf("in place: %v", err)
	}
}

func TestStale(t *testing.T) {
	if got := stale(&record.Latency{Count: 40, Mean: new(0.5)}, 10*time.Second); got == nil || *got != 2 {
		t.Errorf("40 endpoints for 0.5 s each in 10 s: %v, want 2 at a moment", got)
	}
	if got := stale(nil, time.Second); got == nil || *got != 0 {
		t.Errorf("without removed endpoints: %v, want 0", got)
	}
	if got := stale(nil, 0); got != nil {
		t.Errorf("of no time: %v", *got)
	}
}
