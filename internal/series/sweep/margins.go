package sweep

import (
	"slices"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Margin is the share of the base by which a figure may become worse with a value that is
// recommended.
type Margin struct {
	Figure string  `json:"figure"` // path of it, or of what is above it
	Share  float64 `json:"share"`
}

// margins are the margins of the figures by which settings are judged; the first that contains a
// figure counts. They were chosen from the spread between runs: processor time varies by
// 2 to 4 %, quantiles of latencies by 5 to 10 %, so that 5 runs can show the margins.
var margins = []Margin{{"latencies", 0.25}, {"change.push", 0.25}, {"", 0.1}}

// marginsText states the margins.
func marginsText() string {
	return "A value is recommended only if no figure becomes worse by more than its margin, by the end of its interval: " +
		output.Percent(marginOf("controlPlane")) + " for processor time, memory and the length of the rollout, " + output.Percent(marginOf("latencies")) + " for latencies."
}

// marginOf returns the margin of the figure at a path.
func marginOf(path string) float64 {
	at := slices.IndexFunc(margins, func(m Margin) bool { return m.Figure == "" || record.Within(path, m.Figure) })
	return margins[at].Share
}

// harmless reports whether the runs show that a figure does not become worse by more than
// its margin: a test of non-inferiority, by the end of the 95 % interval on its worse
// side. That a figure of the variant and of the base do not differ significantly does not
// show it.
func harmless(f *compare.Figure, alpha float64) bool {
	known, _ := record.FigureAt(f.Path)
	switch {
	case known.Better == record.BetterNeither:
		return true
	case f.Verdict == compare.Same:
		return stats.SmallestP(f.A.N, f.B.N) <= alpha
	case f.Verdict == compare.WithLoss:
		return f.B.Lost == 0
	case f.Low == nil:
		return false
	}
	higher := known.Better == record.BetterHigher
	switch {
	case !f.Ratio && higher: // there is no share of what may be 0
		return *f.Low >= 0
	case !f.Ratio:
		return *f.High <= 0
	case higher:
		return *f.Low >= 1/(1+marginOf(f.Path))-1
	}
	return *f.High <= marginOf(f.Path)
}
