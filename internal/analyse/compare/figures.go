package compare

import (
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// Unit is the unit of a figure.
type Unit record.Unit

// The units of figures, all of them base units.
const (
	Seconds        = Unit(record.UnitSeconds)
	Bytes          = Unit(record.UnitBytes)
	Cores          = Unit(record.UnitCores)
	PerSecond      = Unit(record.UnitPerSecond)
	BytesPerSecond = Unit(record.UnitBytesPerSecond)
	Share          = Unit(record.UnitShare) // 0 to 1
	Count          = Unit(record.UnitCount)
)

// resolution returns the best absolute precision of a figure of this unit near zero: half
// of one counted thing, or the histograms' first step.
func (u Unit) resolution() float64 {
	switch u {
	case Seconds:
		return 1e-6
	case Bytes, BytesPerSecond:
		return 1
	case Cores:
		return 1e-5
	case Count:
		return 0.5
	default:
		return 1e-4
	}
}

// shortened are the parts of a path that Name leaves out.
var shortened = []string{"controlPlane.", "latencies.", "phases."}

// Name returns the short name of the figure at a path of the record. It is what is
// printed and what --fail-on and --figures take: rollout.cores for
// controlPlane.rollout.cores.mean, push.route.p99 for latencies.push.route.p99.
func Name(path string) string {
	for _, prefix := range shortened {
		path = strings.TrimPrefix(path, prefix)
	}
	return strings.TrimSuffix(path, ".mean")
}

// figures returns the figures of a run that are compared, in the catalogue's order.
func figures(r *record.Run) []record.Value {
	return slices.DeleteFunc(r.Values(), func(v record.Value) bool { return v.Figure.NotCompared })
}
