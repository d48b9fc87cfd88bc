package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// PrintFidelity writes a comparison with a real sidecar in one of output.Formats.
func PrintFidelity(w io.Writer, format string, f *record.Fidelity) error {
	return output.Print(w, format, "a comparison with a real sidecar", f, fidelityDocument(f).write)
}

func fidelityDocument(f *record.Fidelity) document {
	d := document{
		title: "a simulated and a real proxy compared",
		facts: facts{
			{"status", unmarked(strings.TrimSuffix(string(f.Status)+", "+f.Reason, ", "))},
			measuredOn(f.Machine),
			{"scaler", unmarked(f.Scaler)},
			{"control plane", unmarked(f.ControlPlane)},
		},
	}
	d.facts.add("Envoy", f.Envoy)
	d.facts.add("ztunnel", f.Ztunnel)
	same := table{Head: plain("knobs", "names", "bytes", "starts alike", "changes alike", "names after", "bytes after", "reconnect alike")}
	times := table{Head: plain("knobs", "", "first configuration", "complete", "of that waiting for istiod"), Left: 1}
	for i := range f.Cases {
		c := &f.Cases[i]
		name := c.Name
		if c.Unfinished != "" {
			name += " (unfinished)"
			d.notes = append(d.notes, c.Name+" is unfinished: "+c.Unfinished)
		}
		same.AddPlain(name, names(c.Resources), ratio(c.Resources), sameness(c.Start), sameness(c.Changes), names(c.AfterChanges), ratio(c.AfterChanges), sameness(c.Reconnect))
		for _, side := range []struct {
			name string
			of   record.StartTimes
		}{{"real", c.Real}, {"simulated", c.Simulated}} {
			times.AddPlain(name, side.name, startSpread(side.of.First), startSpread(side.of.Complete), startSpread(side.of.Waiting))
		}
		if len(c.TimeTests) > 0 {
			row := []string{name, "p, corrected"}
			for _, t := range c.TimeTests {
				row = append(row, fmt.Sprintf("%.2g", t.Holm))
			}
			times.AddPlain(row...)
		}
	}
	d.tables = append(d.tables, same, times)
	d.add(certificatesCompared(f))
	if f.TimesNotJudged != "" {
		d.notes = append(d.notes, "times were not judged: "+f.TimesNotJudged)
	}
	differences := table{Head: plain("difference", "real", "simulated", "explained"), Left: 3}
	for _, row := range differenceRows(f) {
		differences.AddPlain(row...)
	}
	d.add(differences)
	return d
}

// certificatesCompared returns the table of the certificate requests.
func certificatesCompared(f *record.Fidelity) table {
	t := table{Head: plain("knobs", "certificate requests", "alike", "at once")}
	for _, c := range f.Cases {
		if s := c.Certificates; s != nil {
			t.AddPlain(c.Name, fmt.Sprintf("%d and %d", s.Real, s.Simulated), strconv.Itoa(s.Common), fmt.Sprintf("%d and %d", s.RealAtOnce, s.SimulatedAtOnce))
		}
	}
	return t
}

// differenceRows returns the differences of all cases, without repetitions.
func differenceRows(f *record.Fidelity) [][]string {
	var rows [][]string
	seen := map[string]bool{}
	for _, c := range f.Cases {
		for _, d := range c.Differences {
			if why := d.Explained; why == "" {
				rows = append(rows, []string{c.Name + ": " + d.About, shortened(d.Real), shortened(d.Simulated), "no"})
			} else if strings.HasPrefix(d.About, "start: ") { // the times of each case differ
				rows = append(rows, []string{c.Name + ": " + d.About, shortened(d.Real), shortened(d.Simulated), why})
			} else if !seen[d.About+why] {
				seen[d.About+why] = true
				rows = append(rows, []string{d.About, shortened(d.Real), shortened(d.Simulated), why})
			}
		}
	}
	return rows
}

// shortened cuts a text to the width of a table.
func shortened(text string) string {
	const most = 48
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	if text == "" {
		return absent
	}
	return text
}

// names formats the number of resources that both hold, or the types that differ.
func names(types map[string]record.HeldResources) string {
	common, differ := 0, ""
	for _, kind := range slices.Sorted(maps.Keys(types)) {
		h := types[kind]
		common += h.Common
		if !h.SameNames() {
			differ += fmt.Sprintf(", %s %d and %d", kind, h.Real, h.Simulated)
		}
	}
	if len(types) == 0 {
		return absent
	}
	if differ != "" {
		return fmt.Sprintf("%d the same%s", common, differ)
	}
	return fmt.Sprintf("%d the same", common)
}

// ratio returns the ratio of the simulated sidecar's bytes to the real one's.
func ratio(types map[string]record.HeldResources) string {
	ratio, known := record.BytesRatio(types)
	if !known {
		return absent
	}
	return fmt.Sprintf("%.4f", ratio)
}

// sameness formats the number of equal exchanges, of those in which anything was sent.
func sameness(s record.Sameness) string {
	switch {
	case s.Compared == 0:
		return absent
	case s.Silent == s.Compared:
		return fmt.Sprintf("%d concerned neither", s.Silent)
	case s.Silent > 0:
		return fmt.Sprintf("%d of %d, %d concerned neither", s.Same-s.Silent, s.Compared-s.Silent, s.Silent)
	default:
		return fmt.Sprintf("%d of %d", s.Same, s.Compared)
	}
}

// startSpread formats a median with its range.
func startSpread(s *record.Spread) string {
	if s == nil {
		return absent
	}
	return fmt.Sprintf("%s (%s to %s)", seconds(&s.Median), seconds(&s.Min), seconds(&s.Max))
}
