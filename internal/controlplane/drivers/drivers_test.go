package drivers

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
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

// What the table of parameters has as istiod's own values is what its driver has.
func TestIstiodsOwnValues(t *testing.T) {
	at := slices.IndexFunc(All(), func(d controlplane.Driver) bool { return d.Name == scenario.Default().ControlPlane.Name })
	if at < 0 {
		t.Fatal("no driver of the default control plane")
	}
	d := All()[at]
	for path, want := range map[string]string{"mesh.mode": d.Modes[0].Name, "mesh.sidecars.xds": d.Proxy.Variants()[0]} {
		if p, _ := scenario.Of(path); p.Istiod != want {
			t.Errorf("%s: %q, want %q", path, p.Istiod, want)
		}
	}
}
