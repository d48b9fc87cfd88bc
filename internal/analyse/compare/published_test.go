package compare

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestEverythingPublishedCanBeCompared(t *testing.T) {
	names, err := Published()
	if err != nil || len(names) < 9 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		found, err := ComparePublished(name, runs("a", 5, 1))
		if err != nil || found.Source == "" || len(found.Rows) == 0 {
			t.Errorf("%s: %+v, %v", name, found, err)
			continue
		}
		for _, row := range found.Rows {
			if row.Published == "" || strings.Contains(row.Published, "map[") || strings.Contains(row.Of, "map[") {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
	if _, err := ComparePublished("nobody", runs("a", 5, 1)); err == nil || !strings.Contains(err.Error(), "osm-scalability") {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestComparePublished(t *testing.T) {
	sized := func(r *record.Run) { r.Scenario.Mesh.Pods, r.Scenario.Mesh.Services = scenario.List[int]{200}, 20 }
	found, err := ComparePublished("osm-scalability", runs("a", 5, 1, sized), runs("b", 5, 2, sized))
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, row := range found.Rows {
		if (row.Ours != "") != (row.Of == "200 pods") {
			t.Errorf("%+v", row)
		}
		if row.Ours == "steady.memoryBytes" {
			ours++
			if row.Published != "513MiB" || row.Mean.N != 5 || *row.Ratio < 0.24 || *row.Ratio > 0.28 {
				t.Errorf("%+v, ratio %v", row, *row.Ratio)
			}
		}
	}
	if ours != 2 {
		t.Errorf("%d rows with our memory: want one of each folder", ours)
	}
	// What is left out is said.
	half := runs("a", 3, 1, sized)
	half[0].Status, half[0].Dir = record.StatusFailed, "a/failed"
	left, err := ComparePublished("osm-scalability", slices.Concat(half, runs("odd", 2, 1, func(r *record.Run) { r.Scenario.Mesh.Pods = scenario.List[int]{37} }), []record.Run{{Dir: "a/begun"}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"of 200 pods, istiod, mtls strict, scope declared, authz declared: 1 of 3 runs did not complete and are left out (a/failed failed)",
		"of 37 pods, istiod, mtls strict, scope declared, authz declared: 2 runs left out",
		"a/begun is left out: its record does not say",
	} {
		if !strings.Contains(strings.Join(left.Setup, "\n"), want) {
			t.Errorf("%q: want %q", left.Setup, want)
		}
	}
	if strings.Contains(strings.Join(found.Setup, "\n"), "stand") {
		t.Errorf("a run is left out: %q", found.Setup)
	}
	// Of real sidecars, one is compared with one; and a mode with its own.
	found, err = ComparePublished("osm-permissive", runs("a", 2, 1, func(r *record.Run) {
		r.Scenario.Mesh.Services = 10
		r.Sidecars = &record.Sidecars{Real: &record.RealSidecars{Count: 5, ByPhase: record.ByPhase[*record.Usage]{
			Steady: &record.Usage{MemoryBytes: &record.Level{Mean: new(5 * 69e6)}},
		}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range found.Rows {
		if row.Figure == "sidecarBytes" && (row.Ours != "") != (row.Of == "10 services, strict") {
			t.Errorf("%+v", row)
		}
		if row.Figure == "sidecarBytes" && row.Ours != "" && (*row.Ratio < 0.499 || *row.Ratio > 0.501) {
			t.Errorf("ratio %v of 69 MB to %s", *row.Ratio, row.Published)
		}
	}
	var out strings.Builder
	if err := Print(&out, "table", found); err != nil || !strings.Contains(out.String(), "ratio is no test") {
		t.Errorf("%v: %s", err, out.String())
	}
}
