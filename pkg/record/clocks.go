package record

import (
	"maps"
	"slices"
)

// BelowClock returns the paths of the latencies from scaler's clock to a worker's whose median is below
// the uncertainty of that clock, in seconds: they are not known to be longer than nothing. Latencies
// that begin and end on one clock are not among them.
func (l *Latencies) BelowClock(uncertainty float64) []string {
	var paths []string
	for _, of := range []struct {
		name string
		all  map[ChangeKind]*Latency
	}{{"push", l.Push}, {"pushFromWrite", l.PushFromWrite}, {"rolloutPush", l.RolloutPush}} {
		for _, kind := range slices.Sorted(maps.Keys(of.all)) {
			if of.all[kind].below(uncertainty) {
				paths = append(paths, "latencies."+of.name+"."+string(kind))
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(l.Propagation)) {
		if p := l.Propagation[kind]; p.First.below(uncertainty) || p.Last.below(uncertainty) {
			paths = append(paths, "latencies.propagation."+string(kind))
		}
	}
	return paths
}

func (l *Latency) below(uncertainty float64) bool {
	return l != nil && l.P50 != nil && *l.P50 < uncertainty
}
