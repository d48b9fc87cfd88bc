package drivers

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// What a driver states of figures is of figures that need not mean the same with every control plane.
func TestMeaningsAreOfSuchFigures(t *testing.T) {
	for _, d := range All() {
		if d.Figures.Work == "" && d.External == nil {
			t.Errorf("%s: Work is not stated", d.Name)
		}
		for path, text := range d.Figures.Meanings {
			at := slices.IndexFunc(record.AcrossControlPlanes, func(a record.Across) bool { return a.Path == path })
			switch {
			case at < 0:
				t.Errorf("%s: %q is no path of record.AcrossControlPlanes", d.Name, path)
			case record.AcrossControlPlanes[at].Means == "":
				t.Errorf("%s: %q means the same with every control plane", d.Name, path)
			case text == "" || text == record.AcrossControlPlanes[at].Means:
				t.Errorf("%s: %q has no meaning of its own", d.Name, path)
			}
		}
		for _, helper := range d.Programs.Helpers {
			if !strings.Contains(d.Figures.Meanings["controlPlane"], helper) {
				t.Errorf("%s: what controlPlane means does not name %s", d.Name, helper)
			}
		}
	}
}
