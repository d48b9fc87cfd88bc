package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// sized returns a mesh of services with so many pods.
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
		if got := workloadsOf(waves); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if all := together(waves).Workloads; len(all) != len(test.mesh.Services) || !slices.IsSorted(all) {
			t.Errorf("%s: %v are not all workloads once", test.name, all)
		}
	}
}

// captured returns a mesh of workloads in namespaces, each with so many pods, of which those without a proxy are no part of an upgrade.
func captured(control *capture.ControlPlane, workloads ...capture.Workload) (capture.Mesh, topology.Mesh) {
	mesh := capture.Mesh{Header: capture.Header{ControlPlane: control}, Workloads: workloads}
	return mesh, mesh.Topology()
}

func workload(namespace string, pods int, proxy capture.Proxy) capture.Workload {
	return capture.Workload{Namespace: namespace, Name: namespace, Spec: capture.WorkloadSpec{Replicas: pods, Proxy: proxy}}
}

// Where nothing is known of revisions, each wave moves whole namespaces, and no workload without sidecars.
func TestWavesByNamespace(t *testing.T) {
	of, mesh := captured(nil, workload("a", 10, capture.Sidecar), workload("b", 10, capture.Sidecar), workload("a", 50, capture.NoProxy),
		workload("a", 10, capture.Gateway), workload("c", 10, capture.Sidecar))
	for canary, want := range map[string]string{
		"20%,100%": "[[0 3] [1 4]]", "60%,100%": "[[0 3 1] [4]]", "100%": "[[0 3 1 4]]",
		"10%,20%,30%,100%": "[[0 3] [1 4]]", // the first wave has 50 %
	} {
		plan := planOf(t, &of, canary)
		if got := workloadsOf(plan.WavesOf(mesh)); got != want {
			t.Errorf("%s: %s, want %s", canary, got, want)
		}
		if err := plan.Validate(mesh); err != nil {
			t.Errorf("%s: %v", canary, err)
		}
	}
}

// Proxies of nodes and waypoints have a wave of their own each, after what is ahead and before the shares, which are of pods with
// sidecars; a mesh without sidecars has no others.
func TestWavesOfProxies(t *testing.T) {
	nodes, waypoints := record.UpgradeUnit{Kind: record.UpgradeNodes, Name: "ztunnel", Pods: 3}, record.UpgradeUnit{Kind: record.UpgradeWaypoints, Pods: 2}
	mesh := sized(10, 10, 10)
	mesh.Services[0].ByNode = true
	plan := Plan{From: "1.29.1", To: "1.31.0", Waves: []float64{0.5, 1}, Proxies: []record.UpgradeUnit{nodes, waypoints}}
	waves := plan.WavesOf(mesh)
	if got := workloadsOf(waves); got != "[[] [] [1] [2]]" {
		t.Errorf("got %s", got)
	}
	if !waves[0].has(record.UpgradeNodes) || waves[0].has(record.UpgradeWaypoints) || waves[0].pods(mesh) != 3 || waves[1].pods(mesh) != 2 || waves[2].pods(mesh) != 10 {
		t.Errorf("got %+v", waves)
	}
	if all := together(waves); !all.has(record.UpgradeNodes) || !all.has(record.UpgradeWaypoints) || all.pods(mesh) != 25 {
		t.Errorf("together %+v", all)
	}
	mesh.Services = mesh.Services[:1]
	if waves := plan.WavesOf(mesh); len(waves) != 2 || plan.Validate(mesh) != nil {
		t.Errorf("without sidecars: %+v, %v", waves, plan.Validate(mesh))
	}
	plan.RollbackAt = 3
	if err := plan.Validate(mesh); err == nil || !strings.Contains(err.Error(), "a wave, 1 to 2") {
		t.Errorf("got %v", err)
	}

	canary := capture.Revision{Name: "1-31-0", Version: "1.31.0", Pods: 5, Namespaces: []string{"b"}}
	of, mesh := captured(&capture.ControlPlane{Revisions: []capture.Revision{{Name: "1-29-1", Version: "1.29.1", Pods: 10, Namespaces: []string{"a"}}, canary}},
		workload("a", 10, capture.Sidecar), workload("b", 5, capture.Sidecar))
	plan = planOf(t, &of, "100%")
	plan.Proxies = []record.UpgradeUnit{nodes}
	if got := workloadsOf(plan.WavesOf(mesh)); got != "[[1] [] [0]]" {
		t.Errorf("got %s", got)
	}
}

func planOf(t *testing.T, mesh *capture.Mesh, canary string) Plan {
	t.Helper()
	var shares scenario.Shares
	if err := shares.UnmarshalText([]byte(canary)); err != nil {
		t.Fatal(err)
	}
	return Plan{From: "1.29.1", To: "1.31.0", Waves: shares, Units: UnitsOf(mesh, "1.29.1", "1.31.0")}
}

func workloadsOf(waves []Wave) string {
	var all [][]int
	for _, w := range waves {
		all = append(all, w.Workloads)
	}
	return fmt.Sprint(all)
}

// What a newer revision serves already is the first wave, whatever its share; namespaces that name the revision move one by one, those
// of a tag at once, and those of the tag "default" last.
func TestWavesFollowRevisions(t *testing.T) {
	stable := capture.Revision{
		Name: "1-29-1", Version: "1.29.1", Pods: 90, Tags: []string{"default", "prod", "slow"}, Namespaces: []string{"a", "b", "c", "d", "e", "f"},
		Tagged: map[string][]string{"default": {"a"}, "prod": {"b", "c"}, "slow": {"d"}},
	}
	canary := capture.Revision{Name: "1-31-0", Version: "1.31.0", Pods: 5, Tags: []string{"canary"}, Namespaces: []string{"g"}, Tagged: map[string][]string{"canary": {"g"}}, Workloads: []string{"d/d-first"}}
	older := capture.Revision{Name: "1-28-0", Version: "1.28.0", Pods: 5, Namespaces: []string{"h"}}
	of, mesh := captured(&capture.ControlPlane{Revisions: []capture.Revision{older, stable, canary}},
		workload("a", 1, capture.Sidecar), workload("b", 20, capture.Sidecar), workload("c", 20, capture.Sidecar), workload("d", 30, capture.Sidecar),
		workload("e", 10, capture.Sidecar), workload("f", 9, capture.Sidecar), workload("g", 4, capture.Sidecar), workload("h", 5, capture.Sidecar),
		capture.Workload{Namespace: "d", Name: "d-first", Spec: capture.WorkloadSpec{Replicas: 1, Proxy: capture.Sidecar}})
	for canary, want := range map[string]string{
		"10%,50%,100%": "[[6 8] [4] [5 7 3] [1 2 0]]", // 5 %, 15 %, 59 %, 100 %
		"5%,100%":      "[[6 8] [4 5 7 3 1 2 0]]",     // the first share is reached
	} {
		plan := planOf(t, &of, canary)
		if got := workloadsOf(plan.WavesOf(mesh)); got != want {
			t.Errorf("%s: %s, want %s", canary, got, want)
		}
	}
	plan := planOf(t, &of, "10%,50%,100%")
	want := []string{"revision 1-31-0, newer already, of 2 namespaces (g, d)", "by label namespace e", "tag slow of namespace d, by label 2 namespaces (f, h)",
		"tag prod of 2 namespaces (b, c), tag default of namespace a"}
	for i, w := range plan.WavesOf(mesh) {
		if got := record.UpgradeUnits(w.Units); got != want[i] {
			t.Errorf("wave %d: %s, want %s", i+1, got, want[i])
		}
	}
	plan.RollbackAt = 4
	if err := plan.Validate(mesh); err != nil {
		t.Error(err)
	}
	plan.RollbackAt = 5
	if err := plan.Validate(mesh); err == nil || !strings.Contains(err.Error(), "a wave, 1 to 4") {
		t.Errorf("back after the fifth of four waves: %v", err)
	}
}

// An upgrade of one revision moves the pods of that revision only, also those in a namespace that follows another revision.
func TestWavesOfOneRevision(t *testing.T) {
	whole, _ := captured(&capture.ControlPlane{Revisions: []capture.Revision{
		{Name: "canary", Version: "1.31.0", Pods: 4, Namespaces: []string{"a", "b"}, Tags: []string{"next"}, Tagged: map[string][]string{"next": {"a"}}},
		{Name: "stable", Version: "1.29.1", Pods: 30, Namespaces: []string{"c"}, Workloads: []string{"a/a-old"}},
	}}, workload("a", 2, capture.Sidecar), workload("b", 2, capture.Sidecar), workload("c", 20, capture.Sidecar),
		capture.Workload{Namespace: "a", Name: "a-old", Spec: capture.WorkloadSpec{Replicas: 10, Proxy: capture.Sidecar}})
	of, err := whole.Of("stable")
	if err != nil {
		t.Fatal(err)
	}
	plan := planOf(t, &of, "40%,100%")
	var got []string
	for _, w := range plan.WavesOf(of.Topology()) {
		got = append(got, record.UpgradeUnits(w.Units))
	}
	if want := "by label namespace c; by label namespace a"; strings.Join(got, "; ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "; "), want)
	}
}

// A revision is ahead if it is newer than the first version or is the second one; one that is not known is not.
func TestAhead(t *testing.T) {
	for release, want := range map[string]bool{"1.31.0": true, "1.30.2": true, "1.29.1": false, "1.29.2": true, "1.9.9": false, "": false, "1.31.0-rc.0": true, "main": false} {
		if got := ahead(release, "1.29.1", "1.31.0"); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
	if !ahead("1.28.3", "1.29.1", "1.28.3") {
		t.Error("what follows the older version of a downgrade is not there already")
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
