package istio

import (
	"fmt"
	"strings"
)

// line is the minor version that this adapter's expectations are of: its
// manifests, the names of resources, the first request of a proxy, the limits.
const line = "1.31"

// expected reports whether a version is of the line that the expectations are of.
func expected(version string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(version, "v"), line)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '-')
}

// unchecked states what is not checked of a version; "" of one that is expected.
func unchecked(version string) string {
	if expected(version) {
		return ""
	}
	return fmt.Sprintf("what is known here is Istio %s: its manifests are installed, and a sidecar counts as converged when it holds the resources that %s names; "+
		"whether it holds others, and the limits of this version, are not checked", line, line)
}
