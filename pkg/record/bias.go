package record

import (
	"strings"
)

// Bias is a figure that reads otherwise on a machine with processors to spare.
type Bias struct {
	Path      string // in the record; all below it is meant
	Direction Direction
}

// Direction is in which direction a figure is biased.
type Direction string

// The directions.
const (
	TooHigh   Direction = "too high"
	TooLow    Direction = "too low"
	EitherWay Direction = "too high or too low"
)

// isRate reports whether the figure at a path is a rate: too low where times are too high.
func isRate(path string) bool {
	f, known := FigureAt(path)
	return known && f.Scaling() == ScalingRate
}

// Biases returns the figures that a warning of waiting for processors makes too high or too
// low. Times are too high and rates too low; cores are too low, as a program that waits
// uses fewer. A control plane that waits merges pushes that it would otherwise send, so
// that in a rollout responses and their bytes are too low. Its CPU time may be off either
// way: it sends less, and what it does costs more while programs displace each other.
// Nil for other warnings.
func (r *Run) Biases(w Warning) []Bias {
	if w.Reason != ReasonSaturated && w.Reason != ReasonAtLimit {
		return nil
	}
	var all []Bias
	for _, path := range r.Reach(w) {
		switch {
		case path == "controlPlane."+string(w.Phase):
			all = append(all, Bias{path + ".cores", TooLow})
			if w.Phase == PhaseRollout {
				all = append(all, Bias{path + ".cpuSeconds", EitherWay})
			}
		case path == w.About:
			all = append(all, Bias{path + ".cores", TooLow})
		case Within(path, "own"), path == "latencies.explained":
			all = append(all, Bias{path, EitherWay})
		case isRate(path), strings.HasSuffix(path, ".cores"), Within(path, "xds"):
			all = append(all, Bias{path, TooLow})
		default:
			all = append(all, Bias{path, TooHigh})
		}
	}
	return all
}
