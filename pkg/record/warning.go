package record

import (
	"maps"
	"slices"
	"strings"
)

// Warning is a doubt about figures.
type Warning struct {
	// About is the figure's path in the record, as in "latencies.push.route"
	// or "controlPlane.rollout.cores"; all below that path is meant. See Reach
	// for what else may be.
	About string `json:"about"`
	Text  string `json:"text"`
}

// Saturated is the share of a phase above which its figures are doubted, and
// SaturatedText what a warning of that begins with, after which comes that share.
const (
	Saturated     = 0.1
	SaturatedText = "saturated for "
)

// AtLimitText is what a warning of AtLimit begins with, after which comes that peak.
const AtLimitText = "used up to "

// atLimit is the share of what a program may use from which on it is at its limit.
const atLimit = 0.95

// AtLimit says whether the control plane used, in the busiest second of a phase,
// nearly all the processors that its GOMAXPROCS lets it use. What waits for one of
// them then waits within it: no thread does, and Saturation does not tell.
func (r *Run) AtLimit(phase PhaseName) bool {
	source := r.Environment.ControlPlane
	if r.ControlPlane == nil || source.GOMAXPROCS == 0 {
		return false
	}
	at := r.ControlPlane.At(phase)
	if at == nil || *at == nil || (*at).Cores == nil || (*at).Cores.Peak == nil {
		return false
	}
	return *(*at).Cores.Peak >= atLimit*float64(source.GOMAXPROCS*max(1, source.Replicas))
}

// MissedText is how a warning says of how many scrapes of a program how many were
// missed.
const MissedText = "%d of %d scrapes of %s were missed"

// missedOf is the program whose scrapes were missed; "" of another warning.
func missedOf(text string) string {
	_, of, _ := strings.Cut(text, " scrapes of ")
	name, ok := strings.CutSuffix(of, " were missed")
	if !ok {
		return ""
	}
	return name
}

// Within says whether path is that of a figure, or of what is above it, at which
// another path is or below which it is. Nothing is within "".
func Within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && above != "" && (rest == "" || rest[0] == '.')
}

// Reach are the paths that a warning of the run is about. One of them is About.
// That a program waited for processors in a phase says of all that was timed in
// that phase that it may have taken less on a machine of its own, and of the cores
// of each program that waited too that it may have wanted more: that is one
// warning, about the program that is measured, and reaches them all. Scrapes that were
// missed leave holes in a program's own metrics, and in its live heap, which is made
// of them.
func (r *Run) Reach(w Warning) []string {
	paths := []string{w.About}
	if name := missedOf(w.Text); name != "" && Within(w.About, "own") {
		program := "cluster." + name
		if name == r.Environment.ControlPlane.Name {
			program = "controlPlane"
		}
		return append(paths, program+strings.TrimPrefix(w.About, "own")+".heapBytes")
	}
	if !strings.HasPrefix(w.Text, SaturatedText) && !strings.HasPrefix(w.Text, AtLimitText) {
		return paths
	}
	if fault, ok := strings.CutSuffix(w.About, ".controlPlane"); ok && Within(fault, "faults") {
		return append(paths, fault+".seconds", fault+".latencies")
	}
	phase := PhaseName(w.About[strings.LastIndexByte(w.About, '.')+1:])
	if !Within(w.About, "controlPlane") && !Within(w.About, "cluster") {
		return paths
	}
	paths = append(paths, "own."+string(phase))
	paths = append(paths, timed[phase]...)
	waited := func(path string, by *ByPhase[*Usage]) {
		at := by.At(phase)
		if at == nil || *at == nil || (*at).Saturation == nil || *(*at).Saturation <= Saturated {
			return
		}
		if path += "." + string(phase); path != w.About {
			paths = append(paths, path+".cores")
		}
	}
	if r.ControlPlane != nil {
		waited("controlPlane", r.ControlPlane)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Cluster)) {
		by := r.Cluster[name]
		waited("cluster."+name, &by)
	}
	return paths
}

// timed is what is timed in each phase, and the rates that are made of times.
var timed = map[PhaseName][]string{
	PhaseRollout: {
		"phases.rollout", "certificates.perSecond", "sidecars.real.starts",
		"latencies.podAdmission", "latencies.podReady", "latencies.certificate", "latencies.key", "latencies.token", "latencies.clientWait",
		"latencies.connect", "latencies.connectTotal", "latencies.firstConfiguration", "latencies.completeConfiguration", "latencies.rolloutPush",
	},
	PhaseProbe: {"latencies.push", "latencies.propagation", "latencies.explained", "latencies.clusterPart", "latencies.changeWrite"},
	PhaseStorm: {"certificates.storm.latency", "certificates.storm.seconds", "certificates.storm.perSecond"},
	PhaseChurn: {"churn.seconds", "churn.latencies", "churn.achievedPerSecond"},
}
