package capacity

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// meanSpeed returns the mean speed of the processors of runs; false where that of one is not known, or they are of different works.
func meanSpeed(runs []*record.Run) (record.Speed, bool) {
	var all []record.Speed
	for _, run := range runs {
		own, _ := run.Environment.Processor.Speed()
		all = append(all, own)
	}
	return record.MeanSpeed(all)
}

// onOneProcessor states the processor time and cores of all runs as those of one processor: that of o.NodeSpeed or, without it, of
// the mean speed of the runs. Where the speed of a run is not known in the unit of the others, they stay as they are.
func (s *sample) onOneProcessor(o Options) error {
	mean, ok := meanSpeed(s.runs)
	to := cmp.Or(o.NodeSpeed, &mean)
	switch {
	case o.NodeSpeed != nil && (!ok || mean.Work != to.Work):
		return scenario.Refuse("nodeSpeed", to.Speed, "runs that all have the speed of their machine, by the same work (%s)", output.Plain(to.Work))
	case !ok:
		return nil
	}
	s.processor, s.forNodes, s.measured = to, o.NodeSpeed != nil, map[*record.Run]*record.Run{}
	for i, r := range s.runs {
		s.runs[i] = r.OnProcessor(to.Speed)
		s.measured[s.runs[i]] = r
	}
	return nil
}

// asMeasured returns a run with the processor time of its own machine.
func (s *sample) asMeasured(r *record.Run) *record.Run { return cmp.Or(s.measured[r], r) }

// usable returns the mean number of processors that each replica of runs could use, as processors of s; 0 = it is not known.
func (s *sample) usable(runs []*record.Run) (all float64) {
	for _, r := range runs {
		n := r.Environment.ControlPlane.Limit()
		if own, ok := r.Environment.Processor.Speed(); ok && s.processor != nil {
			n *= own.Speed / s.processor.Speed
		}
		all += n / float64(len(runs))
	}
	return all
}

// dayToDay is the standard deviation of processor time from one day to another, as a share of it and in reference processors: what
// the measurements of speed do not explain. See docs/results/ladder.md, another day.
const dayToDay = 0.06

// daysNeeded is the number of days from which the runs themselves show it.
const daysNeeded = 3

// days returns the number of days of which the runs are.
func (s *sample) days() int {
	days := map[string]bool{}
	for _, r := range s.runs {
		days[r.Started.UTC().Format(time.DateOnly)] = true
	}
	return len(days)
}

// AnotherKind is the share by which reference processor time of one kind of processor was less than that of another for the same
// work, at most: the unit does not measure all that makes a processor fast. See docs/results/ladder.md, another kind of processor.
const AnotherKind = 0.32

// AnotherKindMore is the share for the reverse conversion.
const AnotherKindMore = 1/(1-AnotherKind) - 1

// elsewhere extends the interval of processor time to runs of another day and, in a plan for nodes of a stated speed, to another kind of processor.
// Runs of one day have in common what that day does to them, however many they are.
func (s *sample) elsewhere(e estimate) estimate {
	var below, above float64 // shares
	if s.days() < daysNeeded {
		below = distuv.UnitNormal.Quantile((1+confidence)/2) * dayToDay
		above = below
	}
	if s.forNodes { // whose processors may be of another kind
		below, above = math.Hypot(below, AnotherKind), math.Hypot(above, AnotherKindMore)
	}
	if !e.bounded || above == 0 {
		return e
	}
	return estimate{e.value, max(0, e.value-math.Hypot(e.value-e.low, below*e.value)), e.value + math.Hypot(e.high-e.value, above*e.value), true}
}

// processorSentence states the processor that processor time and cores are of; "" where it is not known.
func (p *Plan) processorSentence() string {
	if p.Processor == nil {
		return ""
	}
	include := "the variation between days, but not between kinds of processors (--node-speed)"
	if p.forNodes {
		include = fmt.Sprintf("the variation between days, and that another kind of processor may need %.0f%% less than this unit says, or %.0f%% more", AnotherKind*100, AnotherKindMore*100)
	}
	return fmt.Sprintf("CPU time and cores are of processors that do the work of %.3g reference processors; their intervals include %s.", p.Processor.Speed, include)
}

// warnOfSpeed adds warnings about the processor time of runs that were not made at one speed.
func (s *sample) warnOfSpeed() {
	if differing, _ := record.SpeedsOf(s.runs); differing != "" && s.processor == nil {
		s.warn(rolloutCPU, "%s: processor times of the runs are not in one unit, and the forecast is of a processor between theirs", differing)
	}
}
