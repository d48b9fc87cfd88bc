package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// measured returns the title of a page, which says what was measured, as in "istiod 1.31:
// 200 to 1600 pods, permissive and strict".
func measured(runs []record.Run, latencies []record.LatencyRun) string {
	var parts []string
	if len(runs) > 0 {
		parts = append(parts, rolloutTitle(runs))
	}
	if len(latencies) > 0 {
		parts = append(parts, latencyTitle(latencies))
	}
	if parts == nil {
		return "No runs"
	}
	title := strings.Join(parts, "; ")
	if rest, ok := strings.CutPrefix(title, "request"); ok {
		return "Request" + rest // a word, not the name of a program
	}
	return title
}

func rolloutTitle(runs []record.Run) string {
	var controlPlanes, modes, arrivals, extras []string
	var sizes []int
	for i := range runs {
		r := &runs[i]
		asked := r.Scenario
		if name := planeName(r.Environment.ControlPlane); name != absent {
			if asked := r.Replaced(record.AboutVersion); asked != "" {
				name += " in place of " + asked
			}
			controlPlanes = appendNew(controlPlanes, name)
		}
		if r.PodCount() > 0 { // it is absent when a run ended before it was known
			sizes = append(sizes, r.PodCount())
			modes = appendNew(modes, r.Mode())
			arrivals = appendNew(arrivals, arrivalName(r))
		}
		for _, extra := range []struct {
			name  string
			holds bool
		}{
			{"the sidecars of revision " + asked.Mesh.Revision + " alone", asked.Mesh.Revision != ""},
			{fmt.Sprintf("time slowed down %g times", r.Slowdown()), r.Slowdown() > 1},
			{"changes", asked.Load.Changes.PerSecond > 0}, {"churn", asked.Load.Churn > 0}, {"faults", len(asked.Load.Faults) > 0},
			{"a certificate storm", asked.Load.CertificateStorm}, {"real sidecars", asked.Mesh.Sidecars.Real > 0},
		} {
			if extra.holds {
				extras = appendNew(extras, extra.name)
			}
		}
	}
	// The record of a run that ended early does not have the version of its control
	// plane.
	controlPlanes = slices.DeleteFunc(slices.Clone(controlPlanes), func(name string) bool {
		return slices.ContainsFunc(controlPlanes, func(other string) bool { return strings.HasPrefix(other, name+" ") })
	})
	title := orAbsent(listed(controlPlanes))
	switch text := sizesText(sizes); {
	case text != "":
		title += ": " + text
	case len(runs) == 1:
		title += ": one run"
	default:
		title += ": " + output.Many(len(runs), "run")
	}
	switch {
	case len(modes) > 3:
		title += fmt.Sprintf(", %d settings of the knobs", len(modes))
	case len(modes) > 0:
		title += ", " + listed(modes)
	}
	if len(arrivals) == 1 && arrivals[0] != "" {
		title += ", " + arrivals[0]
	}
	if extras != nil {
		title += ", with " + listed(extras)
	}
	if len(runs) == 1 && runs[0].Status != record.StatusCompleted {
		title += " (" + orAbsent(string(runs[0].Status)) + ")"
	}
	return title
}

// latencyTitle returns a title with the loads and the variants of latency runs.
func latencyTitle(latencies []record.LatencyRun) string {
	var controlPlanes, variants []string
	var rates []float64
	var connections []int
	for i := range latencies {
		l := &latencies[i]
		if name := l.Environment.ControlPlane.Name; name != "" {
			controlPlanes = appendNew(controlPlanes, planeName(l.Environment.ControlPlane))
		}
		rates = append(rates, l.Spec.RPS...)
		connections = append(connections, l.Spec.Connections...)
		for _, v := range l.Spec.Variants {
			variants = appendNew(variants, variantName(v))
		}
	}
	title := "request latency"
	if text := rangeOf(rates, threeDigits); text != "" {
		title += " at " + text + " RPS"
	} else if text := rangeOf(connections, func(n int) string { return fmt.Sprint(n) }); text != "" {
		title += " over " + text + " connections"
	}
	if variants != nil {
		title += ", " + listed(variants)
	}
	if controlPlanes != nil {
		title = listed(controlPlanes) + ": " + title
	}
	if len(latencies) == 1 && latencies[0].Status != record.StatusCompleted {
		title += " (" + orAbsent(string(latencies[0].Status)) + ")"
	}
	return title
}

// variantName describes a variant of a latency run.
func variantName(variant string) string {
	if variant == "none" {
		return "without sidecars"
	}
	return variant
}

// planeName returns the name of a control plane and its version, without the commit that
// it was built from. A date belongs to the version: 1.31-20260423 is not 1.31.
func planeName(c record.ControlPlaneSource) string {
	return strings.TrimSpace(orAbsent(c.Name) + " " + planeVersion.FindString(c.Version))
}

// planeVersion matches the part of a control plane's version that titles show; nothing in
// "devel".
var planeVersion = regexp.MustCompile(`^v?\d+(\.\d+)*(-\d{8}$)?`)

// modeMeanings states what modes of the same name mean with each of several control
// planes; "" if they mean the same with all.
func modeMeanings(runs []record.Run) string {
	var modes, texts []string
	controlPlanes, knobs, meanings := map[string][]string{}, map[string][]string{}, map[string][]string{} // by mode
	for i := range runs {
		r := &runs[i]
		mode, controlPlane, is := r.ModeName(), r.Environment.ControlPlane.Name, r.Environment.Knobs.Text()
		if mode == "" || controlPlane == "" { // a run that ended early does not know them
			continue
		}
		modes, controlPlanes[mode], knobs[mode] = appendNew(modes, mode), appendNew(controlPlanes[mode], controlPlane), appendNew(knobs[mode], is)
		meanings[mode] = appendNew(meanings[mode], is+" with "+controlPlane)
	}
	for _, mode := range modes {
		if len(controlPlanes[mode]) > 1 && len(knobs[mode]) > 1 {
			texts = append(texts, "Mode "+mode+" is "+strings.Join(meanings[mode], "; ")+".")
		}
	}
	return strings.Join(texts, " ")
}

func sizesText(sizes []int) string {
	text := rangeOf(sizes, func(n int) string { return fmt.Sprint(n) })
	switch text {
	case "", "1":
		return strings.Replace(text, "1", "1 pod", 1)
	}
	return text + " pods"
}

// rangeOf formats numbers as in "200", "200 and 400" or "200 to 1600".
func rangeOf[T int | float64](numbers []T, print func(T) string) string {
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	switch n := len(sorted); n {
	case 0:
		return ""
	case 1:
		return print(sorted[0])
	case 2:
		return print(sorted[0]) + " and " + print(sorted[1])
	default:
		return print(sorted[0]) + " to " + print(sorted[n-1])
	}
}

// listed formats words as in "a, b and c".
func listed(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// appendNew appends a word that is not in words yet.
func appendNew(words []string, word string) []string {
	if slices.Contains(words, word) {
		return words
	}
	return append(words, word)
}

// made states when and on which machine the records were made, as far as they agree.
func made(runs []record.Run, latencies []record.LatencyRun) string {
	var parts []string
	if n := len(runs); n > 0 {
		parts = append(parts, output.Many(n, "run"))
	}
	if n := len(latencies); n > 0 {
		parts = append(parts, output.Many(n, "latency run"))
	}
	var machines []string
	var first, last time.Time
	add := func(started time.Time, machine string) {
		machines = appendNew(machines, machine)
		if started.IsZero() {
			return
		}
		if first.IsZero() || started.Before(first) {
			first = started
		}
		if started.After(last) {
			last = started
		}
	}
	for i := range runs {
		add(runs[i].Started, machineText(runs[i].Environment))
	}
	for i := range latencies {
		_, place := placeText(&latencies[i])
		add(latencies[i].Started, place)
	}
	if !first.IsZero() {
		from, to := first.UTC().Format(time.DateOnly), last.UTC().Format(time.DateOnly)
		if from != to {
			from += " to " + to
		}
		parts = append(parts, from)
	}
	switch {
	case len(machines) == 1 && machines[0] != absent:
		parts = append(parts, machines[0])
	case len(machines) > 1:
		parts = append(parts, "on machines or with programs that differ") // the facts have the differences
	}
	return strings.Join(parts, ", ")
}
