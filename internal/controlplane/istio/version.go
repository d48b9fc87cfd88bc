package istio

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/scenario"
)

// lines are the minor versions that this adapter's expectations are of: the names of
// resources, the first request of a proxy, the limits.
var lines = []string{"1.27", "1.28", "1.29", "1.30", "1.31"}

// expected reports whether a version is of a line that the expectations are of.
func expected(version string) bool { return slices.Contains(lines, component.IstioLine(version)) }

// unchecked states what is not checked of a version; "" of one that is expected.
func unchecked(version string) string {
	if expected(version) {
		return ""
	}
	return fmt.Sprintf("what is known here is Istio %s to %s: a sidecar counts as converged when it holds the resources that %[2]s names; "+
		"whether it holds others, and the limits of this version, are not checked", lines[0], lines[len(lines)-1])
}

// checkProxyVersion checks a version that sidecars are to report: istiod makes a difference by
// their minor versions, and takes what it cannot read for the newest.
func checkProxyVersion(version string) error {
	if !proxyVersion.MatchString(version) {
		return scenario.Refuse("mesh.sidecars.version", version, "a version of Istio, as in 1.29.1")
	}
	return nil
}

var proxyVersion = regexp.MustCompile(`^[1-9]\d*\.\d+(\.\d+)?([-.+][\w.+-]+)?$`)

// proxyVersion returns the one that simulated sidecars report, "" where there are none: a mesh's agents are of its istiod's
// version unless another is asked for.
func (c *ControlPlane) proxyVersion() string {
	if c.hasZtunnels() && !c.mixed() && !c.withWaypoints() && c.opts.Waypoints != controlplane.CapturedWaypoints {
		return "" // a ztunnel reports none
	}
	return cmp.Or(c.opts.ProxyVersion, c.report.Text)
}

// setting returns the value that istiod reads of a variable that is on or off.
func setting(env []string, name string, otherwise bool) bool {
	if on, err := strconv.ParseBool(controlplane.ValueIn(env, name)); err == nil {
		return on
	}
	return otherwise
}

// sendsUnready reports whether istiod of a version sends endpoints that are not ready, as unhealthy
// (SupportsUnhealthyEndpoints of its pilot/pkg/model/service.go). From 1.31.0 on it does unless
// PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS turns that off; before, it does for all services or for none.
// The services here ask for no traffic distribution, with which each version does.
func sendsUnready(version string, env []string) bool {
	always := setting(env, "PILOT_SEND_UNHEALTHY_ENDPOINTS", false)
	if line := component.IstioLine(version); sendsReadyAlone[line] || sendsReadyAlone[version] || olderLine.MatchString(line) {
		return always
	}
	return always || setting(env, "PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS", true)
}

// olderLine matches the lines before those that are known here.
var olderLine = regexp.MustCompile(`^1\.(\d|1\d|2[0-6])$`)

// sendsReadyAlone are the lines and versions before PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS.
var sendsReadyAlone = map[string]bool{"1.27": true, "1.28": true, "1.29": true, "1.30": true, "1.31-20260423": true}
