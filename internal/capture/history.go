package capture

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/timeseries"
)

// History holds the figures that a Prometheus recorded in the last days. Each value covers one step. Percentiles are over
// these values; those of an hour are over the values of that hour of the day, in UTC, of all days. A mesh that is replayed
// in several copies keeps the history of the captured one.
type History struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Step string    `json:"step"` // as in 5m0s
	// Figures are the figures that are known.
	Figures []Observed `json:"figures,omitempty"`
	// Missing are the figures that are not known, which does not mean that they were 0.
	Missing []Missing `json:"missing,omitempty"`
}

// Observed is one figure of a history, of one kind.
type Observed struct {
	Figure string `json:"figure"`
	Kind   string `json:"kind,omitempty"` // as in cds, or "EndpointSlice update"
	Unit   string `json:"unit,omitempty"` // cores, B, s or 1/s; "" = a number
	// Known is the share of steps of which there is a value, 0 to 1. Others have none: there were no pushes, or nothing was scraped.
	Known float64 `json:"known"`
	Percentiles
	Hours []Hour `json:"hours"` // that have a value
}

// Hour are the values of an hour of the day.
type Hour struct {
	Hour int `json:"hour"` // 0 to 23, UTC
	Percentiles
}

// Percentiles are percentiles by the nearest rank, see [stats.NearestRank].
type Percentiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Missing is a figure that is not known.
type Missing struct {
	Figure string `json:"figure"`
	Why    string `json:"why"`
}

// NewHistory returns an empty one.
func NewHistory(from, to time.Time, step time.Duration) *History {
	return &History{From: from.UTC(), To: to.UTC(), Step: step.String()}
}

// Observe adds the values of a figure. Without values it is missing.
func (h *History) Observe(figure, kind, unit string, step time.Duration, values []timeseries.Sample) {
	if len(values) == 0 {
		h.Lacks(figure, "there are no values")
		return
	}
	o := Observed{Figure: figure, Kind: kind, Unit: unit, Known: rounded(float64(len(values)) * step.Seconds() / h.To.Sub(h.From).Seconds())}
	var all []float64
	hours := map[int][]float64{}
	for _, v := range values {
		all = append(all, v.Value)
		at := v.At.Add(-step).UTC().Hour() // in which the step began
		hours[at] = append(hours[at], v.Value)
	}
	o.Percentiles = percentiles(all)
	for hour := range 24 {
		if of := hours[hour]; of != nil {
			o.Hours = append(o.Hours, Hour{hour, percentiles(of)})
		}
	}
	h.Figures = append(h.Figures, o)
}

// Lacks adds a figure that is not known.
func (h *History) Lacks(figure, why string) {
	h.Missing = append(h.Missing, Missing{figure, why})
}

// percentiles returns the Percentiles of at least one value.
func percentiles(values []float64) Percentiles {
	values = slices.Sorted(slices.Values(values))
	rank := func(share float64) float64 {
		return rounded(values[stats.NearestRank(share, int64(len(values)))-1])
	}
	return Percentiles{rank(0.5), rank(0.9), rank(0.99), rank(1)}
}

// rounded returns a value with four significant digits.
func rounded(v float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		return v
	}
	return short
}

// busiest returns the hour with the greatest 90th percentile.
func (o *Observed) busiest() Hour {
	return slices.MaxFunc(o.Hours, func(a, b Hour) int { return cmp.Compare(a.P90, b.P90) })
}

// lines returns a line of text for each figure, and for each that is missing.
func (h *History) lines() (all []string) {
	if h == nil {
		return nil
	}
	for _, o := range h.Figures {
		name := o.Figure
		if o.Kind != "" {
			name += " " + o.Kind
		}
		value := func(v float64) string {
			if o.Unit == "B" {
				return output.Bytes(v)
			}
			text := fmt.Sprintf("%.4g", v)
			if o.Unit != "" {
				text += " " + o.Unit
			}
			return text
		}
		busy := o.busiest()
		all = append(all, fmt.Sprintf("%s: p50 %s, p99 %s, max %s; busiest from %02d:00 UTC, p90 %s; known for %.0f %% of the time",
			name, value(o.P50), value(o.P99), value(o.Max), busy.Hour, value(busy.P90), 100*o.Known))
	}
	for _, m := range h.Missing {
		all = append(all, fmt.Sprintf("%s: not known: %s", m.Figure, m.Why))
	}
	return all
}

// anonymous returns a copy without error messages, which may contain names.
func (h *History) anonymous() *History {
	if h == nil {
		return nil
	}
	to := *h
	to.Missing = slices.Clone(h.Missing)
	for i := range to.Missing {
		to.Missing[i].Why = "the reason is left out, as it may contain names"
	}
	return &to
}

// histories returns the lines of the histories of all revisions and of the API server.
func (m *Mesh) histories() (all []string) {
	if m.ControlPlane == nil {
		return nil
	}
	add := func(of string, h *History) {
		for _, line := range h.lines() {
			all = append(all, of+": "+line)
		}
	}
	for _, r := range m.ControlPlane.Revisions {
		add("revision "+r.Name, r.History)
	}
	add("API server", m.ControlPlane.APIServer)
	return all
}
