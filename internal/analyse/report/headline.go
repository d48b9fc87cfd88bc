package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// settingsInAnswer limits the settings that one answer compares.
const settingsInAnswer = 3

// answers states the needs of a mesh while it rolls out and afterwards, how long sidecars
// and changes took, and what was lost. It is about the largest size that completed. Modes
// with the same largest size share the sentences. Each element is a paragraph of sentences.
func answers(runs []record.Run, d *warnings) [][]marked {
	groups := settings(runs)
	names := settingNames(groups)
	var sizes []int // largest of each setting
	for _, g := range groups {
		own := g.sizes()
		sizes = append(sizes, own[len(own)-1])
	}
	var texts [][]marked
	if len(groups) > 0 && len(groups) <= settingsInAnswer && len(slices.Compact(slices.Clone(sizes))) == 1 {
		texts = append(texts, answer(groups, names, sizes[0], d)...)
	} else {
		for i := range groups[:min(len(groups), settingsInAnswer)] {
			texts = append(texts, answer(groups[i:i+1], names[i:i+1], sizes[i], d)...)
		}
	}
	if sentences := upgraded(runs, d); sentences != nil {
		texts = append(texts, sentences)
	}
	if len(runs) == 1 {
		if sentences := disturbances(&runs[0], d); sentences != nil {
			texts = append(texts, sentences)
		}
	}
	if n := len(groups) - settingsInAnswer; n > 0 {
		texts = append(texts, plain(fmt.Sprintf("The table has %s more.", output.Many(n, "setting"))))
	}
	if more := incomplete(runs, len(groups) > 0); more != nil {
		texts = append(texts, plain(more...))
	}
	return texts
}

// answer returns the paragraphs about groups at one size: their need, and how long sidecars waited.
func answer(groups []alike, names []string, size int, d *warnings) [][]marked {
	a := sentence{warnings: d}
	for _, g := range groups {
		a.groups = append(a.groups, ofSize(g.runs, size))
	}
	controlPlane := orAbsent(groups[0].runs[0].Environment.ControlPlane.Name)
	if slices.ContainsFunc(groups, func(g alike) bool { return g.runs[0].Environment.ControlPlane.Name != controlPlane }) {
		controlPlane = "the control plane"
	}
	need, waits := []marked{a.rollout(names, size, controlPlane), a.steady(controlPlane)}, a.waits()
	if len(slices.Concat(a.groups...)) > len(groups) {
		waits = append(waits, unmarked("Each figure is the mean of several runs; the least and the greatest are in brackets."))
	}
	return [][]marked{need, waits}
}

// rollout returns the sentence about the rollout.
func (s *sentence) rollout(names []string, size int, controlPlane string) marked {
	text := "Rolling out " + output.Many(size, "pod")
	if len(s.groups) == 1 {
		text += " (" + names[0] + ")"
	}
	if how := s.arrival(); how != "" {
		text += " " + how
	}
	if s.known(arrivalRate) && slices.ContainsFunc(slices.Concat(s.groups...), offPace) {
		text += fmt.Sprintf(", created at %s per second,", s.figure(arrivalRate))
	}
	if !s.known(rolloutTime) && slices.ContainsFunc(slices.Concat(s.groups...), quiescent) {
		text += " ended at rest, but not as expected"
	} else if len(s.groups) == 1 {
		text += " took " + s.figure(rolloutTime)
	} else {
		text += " took " + s.named(names, rolloutTime)
	}
	if slices.ContainsFunc(slices.Concat(s.groups...), short) {
		text += " (an upper bound: processors were saturated)"
	}
	used := s.figure(need(record.PhaseRollout, "cpuSeconds")) + " of CPU time"
	if reference := need(record.PhaseRollout, "referenceCPUSeconds"); s.known(reference) {
		used += ", which is " + s.figure(reference) + " on a reference processor"
		if !slices.ContainsFunc(slices.Concat(s.groups...), func(r *record.Run) bool { return !r.RestKnown() }) {
			used += " without what slowing down adds"
		}
	}
	text = fmt.Sprintf("%s; %s used %s, %s cores on average and %s at the peak,", text, controlPlane, used,
		s.figure(need(record.PhaseRollout, "cores.mean")),
		s.figure(need(record.PhaseRollout, "cores.peak")))
	if s.known(pushesPerSidecar) {
		text += fmt.Sprintf(" sent each %s %s pushes and %s,", proxyNoun(slices.Concat(s.groups...)...),
			s.figure(pushesPerSidecar), s.figure(bytesPerSidecar))
	}
	text = fmt.Sprintf("%s and its memory peaked at %s.", text,
		s.figure(need(record.PhaseRollout, "memoryBytes.peak")))
	return s.mark().on(text)
}

// quiescent reports whether the rollout ended with the control plane at rest, but not as expected.
func quiescent(r *record.Run) bool {
	p := r.Phase(record.PhaseRollout)
	return p != nil && p.EndedBy == record.EndedByQuiescent
}

// offPace reports whether pods did not arrive at the rate that was asked for, or none was.
func offPace(r *record.Run) bool {
	a := orEmpty(r.Arrival)
	return a.OfferedPerSecond == nil || a.AchievedPerSecond == nil || math.Abs(*a.AchievedPerSecond / *a.OfferedPerSecond - 1) > 0.01
}

// arrival describes how the pods of all groups arrive; "" if that differs.
func (s *sentence) arrival() string {
	var how []string
	for _, r := range slices.Concat(s.groups...) {
		how = appendNew(how, arrivalName(r))
	}
	if len(how) != 1 {
		return ""
	}
	return how[0]
}

// arrivalName describes how pods arrive; "" if that is not known.
func arrivalName(r *record.Run) string {
	a := r.Scenario.Load.Arrival
	switch {
	case r.PodCount() == 0: // it ended before that was known
		return ""
	case a.Rate > 0:
		return fmt.Sprintf("one by one at %g pods/s", a.Rate)
	case a.Size > 0:
		return fmt.Sprintf("in bursts of %d every %s", a.Size, a.Interval)
	}
	return "all at once"
}

// steady returns the sentence about the steady phase.
func (s *sentence) steady(controlPlane string) marked {
	cores := need(record.PhaseSteady, "cores.mean")
	if !s.known(cores) {
		return unmarked("The steady state was not measured.")
	}
	text := fmt.Sprintf("In the steady state %s used %s cores on average and held %s of memory", controlPlane,
		s.figure(cores),
		s.figure(need(record.PhaseSteady, "memoryBytes.mean")))
	if heap, after := liveHeap(slices.Concat(s.groups...)); s.known(heap) {
		text += ", of which " + s.figure(heap) + " was live heap" + after
	}
	return s.mark().on(text + ".")
}

// waits returns the sentences about how long sidecars and changes took, and about what was lost.
func (s *sentence) waits() []marked {
	var texts []marked
	runs := slices.Concat(s.groups...)
	several := plural(proxyNoun(runs...))
	has := func(which func(*record.Run) *record.Latency) bool {
		return slices.ContainsFunc(runs, func(r *record.Run) bool { return which(r) != nil })
	}
	var parts []string
	if has(certificateOf) {
		parts = append(parts, s.quantiles("latencies.certificate", certificateOf)+" for a certificate")
	}
	if has(completeOf) {
		parts = append(parts, s.quantiles("latencies.completeConfiguration", completeOf)+" for their complete configuration")
	}
	if parts != nil {
		texts = append(texts, s.mark().on(fmt.Sprintf("%s waited %s.", capital(several), strings.Join(parts, ", and "))))
	}
	if has(slowestPush) {
		for _, kind := range changeKinds {
			s.paths = append(s.paths, "latencies.push."+string(kind)+".p50")
		}
		texts = append(texts, s.mark().on(fmt.Sprintf("A change reached half of the %s that it concerns within %s (the slowest kind of change).", several, s.quantile(slowestPush, p50))))
	}
	return append(texts, s.lost(runs))
}

// lost returns the sentence about what had not come by the time limit.
func (s *sentence) lost(runs []*record.Run) marked {
	switch text := lostOf(runs); text {
	case absent:
		return unmarked("What was lost is not known: no latency was measured.")
	case "0":
		return unmarked("Nothing was lost.")
	default:
		s.paths = append(s.paths, "latencies.certificate.lost", "latencies.completeConfiguration.lost")
		for _, kind := range changeKinds {
			s.paths = append(s.paths, "latencies.push."+string(kind)+".lost")
		}
		return s.mark().on(text + " certificates, configurations and pushes were lost.")
	}
}

// quantiles prints the median and p99 of each group, as in "30ms (p50) and 44ms (p99)".
func (s *sentence) quantiles(path string, which func(*record.Run) *record.Latency) string {
	s.paths = append(s.paths, path+".p50", path+".p99")
	return s.quantile(which, p50) + " (p50) and " + s.quantile(which, p99) + " (p99)"
}

// quantile prints a quantile of each group.
func (s *sentence) quantile(which func(*record.Run) *record.Latency, of func(*record.Latency) *float64) string {
	var texts []string
	for _, runs := range s.groups {
		texts = append(texts, quantileOf(runs, which, of, rangeText))
	}
	return listed(texts)
}

// sentence makes a sentence about groups of runs, and collects the figures that it uses.
type sentence struct {
	warnings *warnings
	groups   [][]*record.Run
	paths    []string // of the figures used so far
}

// known reports whether any run has a figure.
func (s *sentence) known(f figure) bool {
	return slices.ContainsFunc(slices.Concat(s.groups...), func(r *record.Run) bool { return f.value(r) != nil })
}

// figure prints a figure of each group, as in "107s and 47.0s".
func (s *sentence) figure(f figure) string {
	s.paths = append(s.paths, f.path)
	var texts []string
	for _, runs := range s.groups {
		texts = append(texts, rangeText(runs, f))
	}
	return listed(texts)
}

// named prints a figure of each group with the group's name.
func (s *sentence) named(names []string, f figure) string {
	s.paths = append(s.paths, f.path)
	var texts []string
	for i, runs := range s.groups {
		texts = append(texts, rangeText(runs, f)+" with "+names[i])
	}
	return listed(texts)
}

// mark returns the marks of all figures that the sentence used, and resets them for the
// next sentence.
func (s *sentence) mark() marks {
	mark := s.warnings.markAll(slices.Concat(s.groups...), s.paths...)
	s.paths = nil
	return mark
}

// incomplete lists the runs that did not complete, and if none did, the reason.
func incomplete(runs []record.Run, others bool) []string {
	var names []string
	for i := range runs {
		r := &runs[i]
		if r.Status == record.StatusCompleted {
			continue
		}
		status := orAbsent(string(r.Status))
		if pods := r.PodCount(); pods > 0 { // else it ended before that was known
			status = output.Many(pods, "pod") + ", " + status
		}
		if !others {
			names = append(names, unfinished(r))
			continue
		}
		names = append(names, fmt.Sprintf("%s (%s)", orAbsent(r.Name), status))
	}
	if !others || names == nil {
		return names
	}
	return []string{fmt.Sprintf("%d of %s did not complete and are in none of these figures: %s.", len(names), output.Many(len(runs), "run"), strings.Join(names, ", "))}
}

// unfinished states how far an incomplete run came.
func unfinished(r *record.Run) string {
	text := orAbsent(r.Name) + " did not complete: " + orAbsent(string(r.Status))
	if p := r.Phase(record.PhaseRollout); r.Status == record.StatusUnconverged && p != nil && p.Seconds != nil && r.Pods != nil && r.Pods.Converged != nil {
		text = fmt.Sprintf("%s did not converge: after %s, %d of %s had their complete configuration and certificate",
			orAbsent(r.Name), seconds(p.Seconds), *r.Pods.Converged, output.Many(r.Pods.Requested, "pod"))
	}
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	return text + "."
}

// settings groups completed runs that differ in nothing but size and repeat.
func settings(runs []record.Run) []alike {
	around := surroundings(differingAxes(runs))
	return group(runs, func(r *record.Run) string { return around(r) + r.Environment.Knobs.Text() })
}

// differingAxes returns the axes in which runs differ.
func differingAxes(runs []record.Run) []axis {
	var differing []axis
	for _, a := range axes {
		if _, same := common(runs, a); !same {
			differing = append(differing, a)
		}
	}
	return differing
}

// liveHeap returns the heap after the garbage collections that follow the steady phase,
// if every run has that. Otherwise it returns the mean heap, because the control plane's
// own last collection may have been during the rollout. after describes when it was
// measured.
func liveHeap(runs []*record.Run) (heap figure, after string) {
	collected := need(record.PhaseSteady, "heapBytes.collected")
	if !slices.ContainsFunc(runs, func(r *record.Run) bool { return collected.value(r) == nil }) {
		return collected, " after a garbage collection"
	}
	return need(record.PhaseSteady, "heapBytes.mean"), ""
}

// short reports whether the control plane had fewer processors in the rollout than it
// would have used: then the rollout time is an upper bound.
func short(r *record.Run) bool {
	share := usage(r.ControlPlane, record.PhaseRollout).Saturation
	return share != nil && *share > record.Saturated || r.AtLimit(record.PhaseRollout)
}

// rangeText formats the figure of one run, or the mean and range of several.
func rangeText(runs []*record.Run, f figure) string {
	of := spread(runs, f.value)
	if of == nil {
		return absent
	}
	mean, low, high := f.print(&of.mean), f.print(&of.low), f.print(&of.high)
	if low == high {
		return mean
	}
	return fmt.Sprintf("%s (%s to %s)", mean, low, high)
}

// values are the mean and the range of a figure over several runs.
type values struct{ mean, low, high float64 }

// spread returns the mean and the range of a figure over runs; nil if no run has it.
func spread(runs []*record.Run, value func(*record.Run) *float64) *values {
	var of *values
	n := 0.0
	for _, r := range runs {
		v := value(r)
		if v == nil {
			continue
		}
		if of == nil {
			of = &values{low: *v, high: *v}
		}
		n++
		of.mean += *v
		of.low, of.high = min(of.low, *v), max(of.high, *v)
	}
	if of != nil {
		of.mean /= n
	}
	return of
}

// shortKnobs returns a short name of a run's settings.
func shortKnobs(r *record.Run) string {
	k := r.Environment.Knobs
	return r.ModeOr(strings.Join([]string{orAbsent(k.MTLS), orAbsent(k.Scope), orAbsent(k.Authz)}, "/"))
}
