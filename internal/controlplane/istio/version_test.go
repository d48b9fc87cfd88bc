package istio

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
)

func TestExpectedVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"1.31.0": true, "1.31.4": true, "1.31-eed52ebb66ad": true, "1.31.0-rc.1": true, "1.31": true, "1.29.1": true,
		"1.32.0": false, "1.310.0": false, "1.3.1": false, "unknown": false, "": false,
	} {
		if got := unchecked(version) == ""; got != want {
			t.Errorf("%q is expected: %v", version, got)
		}
	}
	for _, release := range component.IstioReleases() {
		if !expected(release) {
			t.Errorf("%s can be run and has no expectations", release)
		}
	}
}

// Of a version without expectations nothing is claimed that may not hold.
func TestVersionWithoutExpectations(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 10}.Defaults())
	knobs := controlplane.Modes["permissive"]
	for version, known := range map[string]bool{"1.31.2": true, "1.29.1": true, "1.32.0": false} {
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
		if !known && !strings.Contains(d.Unchecked, lines[len(lines)-1]) {
			t.Errorf("%s: %s", version, d.Unchecked)
		}
	}
}

// Which endpoints are sent depends on the version and on two settings.
func TestUnreadyEndpoints(t *testing.T) {
	const always, auto = "PILOT_SEND_UNHEALTHY_ENDPOINTS=", "PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS="
	for _, tc := range []struct {
		version string
		env     []string
		want    bool
	}{
		{"1.29.1", nil, false},
		{"1.29.1", []string{always + "true"}, true},
		{"1.29.1", []string{always + "true", always + "false"}, false},
		{"1.29.1", []string{auto + "true"}, false},
		{"1.30.3", nil, false},
		{"1.26.8", nil, false},
		{"1.9.2", []string{always + "true"}, true},
		{"1.32.1", nil, true},
		{"1.31-20260423", nil, false},
		{"1.31.0", nil, true},
		{"1.31-eed52ebb66ad", nil, true},
		{"1.31.0", []string{auto + "false"}, false},
		{"1.31.0", []string{auto + "off"}, true}, // istiod cannot read it either
		{"1.31.0", []string{auto + "0", always + "1"}, true},
	} {
		if got := sendsUnready(tc.version, tc.env); got != tc.want {
			t.Errorf("%s with %v sends endpoints that are not ready: %v", tc.version, tc.env, got)
		}
		c := configuration{&ControlPlane{sendsUnready: tc.want}}
		if _, sent := c.EndpointHealth(false, false, false); sent != tc.want {
			t.Errorf("an endpoint that is not ready is expected: %v", sent)
		}
	}
}
