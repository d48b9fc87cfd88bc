package capacity

import (
	"fmt"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Sidecars is a forecast of the needs of real sidecars, from the real sidecars of the
// runs.
type Sidecars struct {
	// MemoryBytes is one sidecar's resident memory in the steady state, including its
	// agent: that of an empty one, and a part for each byte of its configuration.
	MemoryBytes Bounds `json:"memoryBytes"`
	// PodsMemoryBytes is the sum over all pods.
	PodsMemoryBytes Bounds `json:"podsMemoryBytes"`
	// EmptyBytes and BytesPerConfigurationByte are the model. The latter is 0 if the
	// configuration of the runs did not grow: then a sidecar is assumed to need the same
	// as in the runs.
	EmptyBytes                float64 `json:"emptyBytes"`
	BytesPerConfigurationByte float64 `json:"bytesPerConfigurationByte"`
	Runs                      int     `json:"runs"` // that had real sidecars
}

// sidecars forecasts real sidecars from runs that had some; nil if none had.
func (s *sample) sidecars(t target) *Sidecars {
	const about = "sidecars.real.steady.memoryBytes"
	var rows [][]float64
	var each []float64
	var seen []observation
	for _, r := range s.runs {
		memory, held := memoryOfOne(r), configurationOf(r)
		if memory == nil || held == 0 {
			continue
		}
		rows, each = append(rows, []float64{1, held}), append(each, *memory)
		seen = append(seen, observation{point: pointOf(r), value: *memory})
	}
	if len(each) == 0 {
		return nil
	}
	at := []float64{1, t.configuration}
	leaveOutConfiguration := func() {
		at = at[:1]
		for i := range rows {
			rows[i] = rows[i][:1]
		}
	}
	if t.configuration == 0 || !configurationGrows(seen) {
		leaveOutConfiguration()
	}
	fit, err := stats.LeastSquares(rows, each, confidence)
	if err == nil && len(at) > 1 && fit.Terms[1].Value < 0 { // no byte costs less than nothing
		leaveOutConfiguration()
		fit, err = stats.LeastSquares(rows, each, confidence)
	}
	if err != nil {
		s.warn(about, "not forecast: %v", errNoModel)
		return nil
	}
	made := estimate{value: fit.At(at)}
	if fit.Spare > 0 {
		made = around(made.value, halfWidth(fit, at))
	}
	all := &Sidecars{Runs: len(each), EmptyBytes: fit.Terms[0].Value, MemoryBytes: *made.bounds(), PodsMemoryBytes: *made.times(t.pods).bounds()}
	if len(at) > 1 {
		all.BytesPerConfigurationByte = fit.Terms[1].Value
	} else {
		s.warn(about, "the configuration of the runs did not grow: a sidecar is taken to need what it needed in these")
	}
	if !made.bounded {
		s.warn(about, "no interval: there are as many runs with real sidecars as terms")
	}
	return all
}

// memoryOfOne returns the mean resident memory of one real sidecar of a run in the steady
// state; nil if there is none.
func memoryOfOne(r *record.Run) *float64 {
	memory := r.Value("sidecars.real.steady.memoryBytes.mean")
	if memory == nil || r.Sidecars.Real.Count == 0 {
		return nil
	}
	return new(*memory / float64(r.Sidecars.Real.Count))
}

// sentence states what sidecars need.
func (s *Sidecars) sentence(pods int) string {
	if s == nil {
		return ""
	}
	text := func(b Bounds) string {
		if b.High == nil {
			return amount(bytesUnit, &b.Forecast)
		}
		return fmt.Sprintf("%s (%s to %s)", amount(bytesUnit, &b.Forecast), amount(bytesUnit, b.Low), amount(bytesUnit, b.High))
	}
	return fmt.Sprintf("A real sidecar will hold %s of memory, and those of %s together %s.", text(s.MemoryBytes), output.Many(pods, "pod"), text(s.PodsMemoryBytes))
}
