package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// order returns the sides of runs in order of time, as in ABBAABBA; "" if the start of a
// run is not known.
func order(a, b []*record.Run) string {
	type start struct {
		of   *record.Run
		side string
	}
	var all []start
	for _, run := range a {
		all = append(all, start{run, "A"})
	}
	for _, run := range b {
		all = append(all, start{run, "B"})
	}
	if slices.ContainsFunc(all, func(s start) bool { return s.of.Started.IsZero() }) {
		return ""
	}
	slices.SortStableFunc(all, func(x, y start) int {
		return cmp.Or(x.of.Started.Compare(y.of.Started), cmp.Compare(x.side, y.side))
	})
	var text strings.Builder
	for _, s := range all {
		text.WriteString(s.side)
	}
	return text.String()
}

// interleaved reports whether the sides took turns in an order: then what drifts on the
// machine affects both alike. They did if no more than two runs of a side follow each
// other, and if neither side's runs are the later ones on average by more than one place;
// both numbers are multiplied by the ratio of the sides' runs, rounded up.
func interleaved(order string) bool {
	a, b := float64(strings.Count(order, "A")), float64(strings.Count(order, "B"))
	if a == 0 || b == 0 {
		return false
	}
	ratio := math.Ceil(max(a, b) / min(a, b))
	streak, longest := 0, 0
	var places [2]float64
	for i := range order {
		if i == 0 || order[i] != order[i-1] {
			streak = 0
		}
		streak++
		longest = max(longest, streak)
		places[order[i]-'A'] += float64(i)
	}
	apart := places[0]/a - places[1]/b
	return float64(longest) <= 2*ratio && math.Abs(apart) <= ratio
}

// notInTurns states for an order why drift is not excluded, and what excludes it; "" if
// the sides took turns.
func notInTurns(order string) string {
	if interleaved(order) {
		return ""
	}
	in := "when they ran is not known"
	if order != "" {
		in = "they ran as " + order
	}
	return fmt.Sprintf("the runs of the sides were not interleaved (%s): a drift of the machine looks like a difference, or hides one: interleave A and B, as in ABBA", in)
}
