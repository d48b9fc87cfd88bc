package record

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Warning states that figures are uncertain, or only bounds. The fields are for programs; Sentence makes the
// text that is printed.
type Warning struct {
	// About is the figure's path in the record, as in "latencies.push.route"
	// or "controlPlane.rollout.cores"; all below that path is meant. See Reach
	// for what else may be.
	About string `json:"about"`
	// Reason is the code of the warning.
	Reason Reason `json:"reason,omitempty"`
	// Component is the program, pod, tier or fault that the warning is of, where
	// About does not name it or Reason concerns one.
	Component string `json:"component,omitempty"`
	// Phase is the phase whose figures are meant; "" where it is none, or several.
	Phase PhaseName `json:"phase,omitempty"`
	// Values are the numbers behind the sentence in base units, by the names that
	// the comment of each reason has.
	Values map[string]float64 `json:"values,omitempty"`
	// Detail is free text that comes from elsewhere, such as an error's first line.
	Detail string `json:"detail,omitempty"`
	// Text is the sentence, for scripts and people who read the JSON. Programs use
	// the other fields.
	Text string `json:"text"`
}

// NewWarning completes a warning that is to be recorded: with its Text, and with its
// Phase where About is of one.
func NewWarning(w Warning) Warning {
	if w.Phase == "" {
		w.Phase = phaseOf(w.About)
	}
	w.Text = w.Sentence()
	return w
}

// The fields that a warning about a version is about: that of the control plane, and that of the one that an
// upgrade leads to.
const (
	AboutVersion     = "environment.controlPlane.version"
	AboutNextVersion = "upgrade.to"
)

// Replaced returns the version that was asked for where another one ran in its place, of the control plane or
// of the one that an upgrade leads to (AboutVersion, AboutNextVersion); "" = it ran.
func (r *Run) Replaced(about string) string {
	for _, w := range r.Warnings {
		if w.Reason == ReasonReplacedVersion && w.About == about {
			return w.Detail
		}
	}
	return ""
}

// phaseOf returns the phase that a path is of; "" if it names none.
func phaseOf(path string) PhaseName {
	for name := range strings.SplitSeq(path, ".") {
		if phase := PhaseName(name); phase == PhaseSettle || slices.Contains(FigurePhases, phase) {
			return phase
		}
	}
	return ""
}

// Sentence returns the warning in words, in which figures have units that are easy to
// read. Where the fields do not suffice, as in a record that was edited, it is
// the text that was recorded.
func (w Warning) Sentence() string {
	template, known := sentences[w.Reason]
	if known {
		if text, ok := fill(template, w); ok || w.Text == "" {
			return text
		}
	}
	return w.Text
}

var numbers = regexp.MustCompile(`[0-9]+([.,][0-9]+)*`)

// Kind returns the same for warnings that differ only in their numbers and in what they
// are about, so that those of several runs can be counted as one.
func (w Warning) Kind() string {
	template, known := sentences[w.Reason]
	if !known {
		return numbers.ReplaceAllString(w.Text, "0")
	}
	kind := string(w.Reason)
	if strings.Contains(template, "{component}") {
		kind += "\n" + w.Component
	}
	return numbers.ReplaceAllString(kind+"\n"+w.Detail, "0")
}

// Saturated is the share of a phase above which its figures are uncertain.
const Saturated = 0.1

// Limited is the share of the processors that a program may use from which on it is at its limit.
const Limited = 0.95

// AtLimit reports whether a control plane that used so many cores in its busiest second
// used nearly all the processors that it could use, Processors or else its GOMAXPROCS. What waits for one of
// them then waits within it: no thread does, and Saturation does not show it. Both are of
// the machine that is modelled: where time is slowed down, cores that were measured here
// are K times as many there.
func (s ControlPlaneSource) AtLimit(peakCores float64) bool {
	limit := s.Limit()
	return limit > 0 && peakCores >= Limited*limit*float64(max(1, s.Replicas))
}

// Limit returns the number of processors of this machine, in the modelled time, that each replica can use; 0 = not known.
func (s ControlPlaneSource) Limit() float64 { return cmp.Or(s.Processors, float64(s.GOMAXPROCS)) }

// AtLimit reports whether the control plane of a recorded run was at its limit in a phase.
func (r *Run) AtLimit(phase PhaseName) bool {
	if r.ControlPlane == nil {
		return false
	}
	at := r.ControlPlane.At(phase)
	return at != nil && *at != nil && (*at).Cores != nil && (*at).Cores.Peak != nil && r.Environment.ControlPlane.AtLimit(*(*at).Cores.Peak)
}

// Within reports whether path is that of a figure, or of what is above it, at which
// another path is or below which it is. Nothing is within "".
func Within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && above != "" && (rest == "" || rest[0] == '.')
}

// Reach returns the paths that a warning of the run is about. One of them is About.
// That a program waited for processors in a phase means that all that was timed in
// that phase may take less on a machine of its own, and that each program that waited
// too may have wanted more cores: that is one warning, about the program that is
// measured, and reaches them all. Scrapes that were missed leave holes in a program's
// own metrics, and in its live heap, which is made of them. A client whose watch was closed
// sees changes later, which is part of all that was timed.
func (r *Run) Reach(w Warning) []string {
	paths := []string{w.About}
	switch w.Reason {
	case ReasonScrapeGap:
		if !Within(w.About, "own") {
			return paths
		}
		program := "cluster." + w.Component
		if w.Component == r.Environment.ControlPlane.Name {
			program = "controlPlane"
		}
		return append(paths, program+strings.TrimPrefix(w.About, "own")+".heapBytes")
	case ReasonEarlyRefusals:
		return append(paths, refusedEarly...)
	case ReasonQuiescent: // how long the mesh was found at rest is part of the phase, and of what is a mean over it
		return append(paths, "phases."+string(w.Phase), "controlPlane."+string(w.Phase)+".cores", "xds.rates."+string(w.Phase))
	case ReasonWatchesClosed:
		return append(paths, timed()[w.Phase]...)
	case ReasonSaturated, ReasonAtLimit:
		return append(paths, r.waited(w)...)
	}
	return paths
}

// waited returns the other paths that a warning of waiting for processors reaches.
func (r *Run) waited(w Warning) (paths []string) {
	if fault, ok := strings.CutSuffix(w.About, ".controlPlane"); ok && Within(fault, "faults") {
		return []string{fault + ".seconds", fault + ".latencies"}
	}
	if side, ok := strings.CutSuffix(w.About, ".controlPlane"); ok && Within(side, "upgrade.stages") {
		stage := side[:strings.LastIndexByte(side, '.')]
		return []string{stage + ".peakCores", stage + ".latencies", side + ".push", side + ".stale", "upgrade.room.cores"}
	}
	if !Within(w.About, "controlPlane") && !Within(w.About, "cluster") {
		return nil
	}
	paths = append(paths, "own."+string(w.Phase))
	paths = append(paths, timed()[w.Phase]...)
	if r.XDS != nil && r.XDS.Rates != nil && Within(w.About, "controlPlane") {
		paths = append(paths, "xds.rates."+string(w.Phase))
	}
	if w.Phase == PhaseRollout && Within(w.About, "controlPlane") {
		paths = append(paths, "xds.responses", "xds.bytes", "xds.perSidecar") // pushes that wait merge
	}
	cores := func(path string, by *ByPhase[*Usage]) {
		at := by.At(w.Phase)
		if at == nil || *at == nil || (*at).Saturation == nil || *(*at).Saturation <= Saturated {
			return
		}
		if path += "." + string(w.Phase); path != w.About {
			paths = append(paths, path+".cores")
		}
	}
	if r.ControlPlane != nil {
		cores("controlPlane", r.ControlPlane)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Cluster)) {
		by := r.Cluster[name]
		cores("cluster."+name, &by)
	}
	return paths
}

// refusedEarly are the figures of a rollout that depend on when streams are refused.
var refusedEarly = []string{
	"xds.attempts", "xds.perSidecar", "xds.responses", "xds.bytes", "phases.rollout", "certificates.perSecond", "controlPlane.rollout", "own.rollout",
	"latencies.connectTotal", "latencies.firstConfiguration", "latencies.completeConfiguration", "latencies.podReady", "latencies.podReadyWithoutKwok", "latencies.rolloutPush",
}

// timed has, by phase, the paths of what is timed in it, and of the rates that are made of times, in the order of the catalogue.
var timed = sync.OnceValue(func() map[PhaseName][]string {
	paths := map[PhaseName][]string{}
	for _, f := range Figures() {
		if f.timed != "" && f.Phase != "" && !slices.Contains(paths[f.Phase], f.timed) {
			paths[f.Phase] = append(paths[f.Phase], f.timed)
		}
	}
	return paths
})
