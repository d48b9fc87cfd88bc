package changes

import (
	"errors"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// result sums up all changes.
type result struct {
	push, fromDue, first, last, late, write *stats.Histogram

	written    int
	missed     int
	concerned  int // changes that concern a sidecar
	pushes     int // that came
	superseded int // of those
	lost       int
	latest     time.Time // the last arrival; zero if there was none
	blocks     []stats.Cluster
}

// block is the length of time whose changes are resampled together: a control plane
// merges changes that follow each other closely, so that they are not independent.
const block = time.Second

// result computes the figures of changes that began at a moment.
func (p *phase) result(arrivals map[int][]convergence.VersionArrivals, begin time.Time) *result {
	r := &result{
		push: stats.NewHistogram(), fromDue: stats.NewHistogram(), first: stats.NewHistogram(), last: stats.NewHistogram(),
		late: stats.NewHistogram(), write: stats.NewHistogram(),
	}
	values, lost := map[int][]float64{}, map[int]int64{}
	for i, samples := range p.samples {
		r.missed += p.missed[i]
		for n, s := range samples {
			r.written++
			r.late.Record(s.sent.Sub(s.due))
			r.write.Record(s.written.Sub(s.sent))
			if n >= len(arrivals[i]) {
				continue
			}
			in := int(s.due.Sub(begin) / p.Slowdown.Of(block))
			came, gone := r.add(s, arrivals[i][n], p.Slowdown.Of(changeTimeout))
			if len(came) > 0 || gone > 0 {
				values[in], lost[in] = append(values[in], came...), lost[in]+int64(gone)
			}
		}
	}
	for in := range int(p.Length/p.Slowdown.Of(block)) + 1 {
		if len(values[in]) > 0 || lost[in] > 0 {
			r.blocks = append(r.blocks, stats.NewCluster(values[in], lost[in]))
		}
	}
	return r
}

// add takes one change, and returns its pushes in seconds and how many were lost.
func (r *result) add(s sample, a convergence.VersionArrivals, limit time.Duration) (came []float64, lost int) {
	if len(a.Reached)+a.Pending == 0 {
		return nil, 0
	}
	r.concerned++
	lost = a.Pending
	reached := slices.SortedFunc(slices.Values(a.Reached), time.Time.Compare)
	for _, at := range reached {
		if at.After(r.latest) {
			r.latest = at
		}
		if at.Sub(s.written) > limit {
			lost++
			continue
		}
		r.push.Record(at.Sub(s.written))
		r.fromDue.Record(at.Sub(s.due))
		came = append(came, stats.ThreeDigits(max(0, at.Sub(s.written)).Seconds()))
	}
	r.pushes += len(reached)
	r.superseded += a.Superseded
	r.lost += lost
	r.push.Lose(int64(lost))
	r.fromDue.Lose(int64(lost))
	if len(came) > 0 {
		r.first.Record(reached[0].Sub(s.written))
	} else {
		r.first.Lose(1)
	}
	if lost == 0 {
		r.last.Record(reached[len(reached)-1].Sub(s.written))
	} else {
		r.last.Lose(1)
	}
	return came, lost
}

// save puts the figures into the record.
func (p *phase) save(section *record.Change, r *result, length time.Duration, end time.Time, responses, bytes int64) error {
	made := record.Change{
		Kind: section.Kind, OfferedPerSecond: section.OfferedPerSecond,
		AchievedPerSecond: new(float64(r.written) / length.Seconds()),
		Changes:           &r.written, Missed: &r.missed,
	}
	var errs []error
	for _, one := range []struct {
		name string
		of   *stats.Histogram
		into **record.Latency
	}{
		{"push", r.push, &made.Push}, {"fromDue", r.fromDue, &made.FromDue}, {"first", r.first, &made.First},
		{"last", r.last, &made.Last}, {"late", r.late, &made.Late}, {"write", r.write, &made.Write},
	} {
		latency, err := p.Journal.SaveLatency("change."+one.name, one.of)
		*one.into = latency
		errs = append(errs, err)
	}
	if r.concerned > 0 && !made.Push.Unknown() {
		made.Intervals = r.intervals()
	}
	if r.pushes > 0 {
		made.Superseded = new(float64(r.superseded) / float64(r.pushes))
		if r.lost == 0 {
			made.BacklogSeconds = new(max(0, r.latest.Sub(end)).Seconds())
		}
	}
	if r.written > 0 {
		made.ResponsesPerChange = new(float64(responses) / float64(r.written))
		made.BytesPerChange = new(float64(bytes) / float64(r.written))
	}
	made.Withhold()
	p.Journal.Update(func(*record.Run) { *section = made })
	for _, w := range warnings(made, p.Load, r) {
		p.Journal.Warn(w)
	}
	return errors.Join(errs...)
}

// intervals returns the confidence intervals of the quantiles of pushes.
func (r *result) intervals() *record.PushIntervals {
	of := func(q float64) *record.QuantileInterval {
		i, ok := stats.ClusterQuantile(r.blocks, q)
		if !ok {
			return nil
		}
		return &record.QuantileInterval{Low: i.Low, High: i.High}
	}
	return &record.PushIntervals{Changes: r.concerned, Blocks: len(r.blocks), P50: of(0.5), P90: of(0.9), P99: of(0.99)}
}

// warnings returns the warnings about the figures.
func warnings(c record.Change, load scenario.Changes, r *result) []record.Warning {
	var all []record.Warning
	if achieved := *c.AchievedPerSecond; achieved < lateChanges*float64(load.PerSecond) {
		all = append(all, record.Warning{About: "change.achievedPerSecond", Reason: record.ReasonSlowChange, Values: map[string]float64{
			"achievedPerSecond": achieved, "offeredPerSecond": float64(load.PerSecond),
		}})
	}
	if r.lost > 0 {
		all = append(all, record.Warning{About: "change.push", Reason: record.ReasonLost, Values: map[string]float64{
			"lost": float64(c.Push.Lost), "all": float64(c.Push.Count + c.Push.Lost),
		}})
	}
	if unconcerned := r.written - r.concerned; !load.Kind.ConcernsNobody() && unconcerned > 0 {
		all = append(all, record.Warning{About: "change.push", Reason: record.ReasonUnconcerned, Values: map[string]float64{"changes": float64(unconcerned)}})
	}
	return all
}
