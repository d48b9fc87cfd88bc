package istio

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/topology"
)

func TestExpectedVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"1.31.0": true, "1.31.4": true, "1.31-eed52ebb66ad": true, "1.31.0-rc.1": true, "1.31": true,
		"1.30.3": false, "1.310.0": false, "1.3.1": false, "unknown": false, "": false,
	} {
		if got := unchecked(version) == ""; got != want {
			t.Errorf("%q is expected: %v", version, got)
		}
	}
}

// Of a version without expectations nothing is claimed that may not hold.
func TestVersionWithoutExpectations(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 10}.Defaults())
	knobs := controlplane.Modes["permissive"]
	for version, known := range map[string]bool{"1.31.2": true, "1.32.0": false} {
		c := &ControlPlane{report: component.Report{Version: version, Text: version}}
		d := c.Describe()
		if d.Version != version || (d.Limits != nil) != known || (d.Unchecked == "") != known {
			t.Errorf("%s is described as %+v", version, d)
		}
		if holds := (configuration{c}).Holds(mesh, knobs, 0); (holds != nil) != known {
			t.Errorf("%s: a sidecar holds %d resources", version, len(holds))
		}
		if len((configuration{c}).Wants(mesh, knobs, 0)) == 0 {
			t.Errorf("%s: nothing is wanted", version)
		}
		if !known && !strings.Contains(d.Unchecked, line) {
			t.Errorf("%s: %s", version, d.Unchecked)
		}
	}
}
