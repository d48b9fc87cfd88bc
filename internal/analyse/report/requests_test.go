package report

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/pkg/record"
)

// ofSizes are runs whose need grows with their size.
func ofSizes(sizes ...int) (runs []record.Run) {
	for _, pods := range sizes {
		r := fullRun()
		r.Name, r.Warnings = "istiod-strict-"+strconv.Itoa(pods), nil
		r.Scenario.Mesh.Pods, r.Scenario.Mesh.Services, r.Pods.Requested = []int{pods}, pods/10, pods
		grow := func(u *record.Usage) {
			share := float64(pods) / 200
			u.CPUSeconds = new(*u.CPUSeconds * share)
			u.MemoryBytes.Mean, u.MemoryBytes.Peak, u.MemoryBytes.End = new(*u.MemoryBytes.Mean*share), new(*u.MemoryBytes.Peak*share), new(*u.MemoryBytes.End*share)
		}
		for _, phase := range record.FigurePhases {
			if u := r.ControlPlane.At(phase); u != nil && *u != nil {
				grow(*u)
			}
		}
		runs = append(runs, r)
	}
	return runs
}

// The page has the requests and limits of a plan for the largest mesh, and none where the runs are too few.
func TestRequestsOfPage(t *testing.T) {
	runs := ofSizes(100, 200, 300, 400, 500)
	plan, err := capacity.Make(runs, capacity.Options{Pods: 500, Headroom: capacity.DefaultHeadroom})
	if err != nil {
		t.Fatal(err)
	}
	r := plan.Request.Resources
	want := []string{"500", "strict", r.Requests.CPU, r.Requests.Memory, r.Limits.Memory, strconv.Itoa(plan.Request.Processors), strconv.Itoa(plan.Request.Replicas), strconv.Itoa(len(plan.Warnings))}
	grids, _ := requestsGrid(runs)
	if len(grids) != 1 || len(grids[0].Rows) != 1 {
		t.Fatalf("%+v", grids)
	}
	var got []string
	for _, c := range grids[0].Rows[0] {
		got = append(got, c.Text)
	}
	if !slices.Equal(got, want) || slices.Contains(want, "") {
		t.Errorf("the row is %q, want %q", got, want)
	}
	for n, with := range map[int]bool{1: false, 2: false, 5: true} {
		var page strings.Builder
		if err := HTML(&page, runs[:n], nil); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(page.String(), `id="requests"`); got != with {
			t.Errorf("%d sizes: requests %t, want %t", n, got, with)
		}
	}
}
