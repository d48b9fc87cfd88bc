package latency

import (
	"fmt"
	"slices"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
)

const (
	latencyConfidence = 0.95
	significance      = 0.05

	// The generator's lateness is too large when it exceeds both.
	lateShare   = 0.1    // of the latency at the same quantile
	lateSeconds = 200e-6 // at that quantile
)

// rows computes the record's rows from the measurements.
func (r *run) rows() {
	variants := len(r.spec.Latency.Variants)
	none := slices.Index(r.spec.Latency.Variants, VariantNone)
	for i, one := range r.cells {
		repeats := one.done()
		if len(repeats) == 0 {
			continue // it was interrupted before
		}
		level := r.cells[i/variants*variants:][:variants]
		whole := r.whole(level)
		row := one.row(r.spec.Latency.Variants[one.variant], repeats, whole)
		if len(r.spec.Latency.Placement) > 0 {
			row.Placement = r.spec.Latency.Placement[one.placement]
		}
		if none >= 0 && one.variant != none {
			row.Added = added(row.Repeats[:whole], level[none].done()[:whole])
		}
		if bed := r.bed(one); bed != nil {
			row.Sidecars = sidecarsOf(bed, repeats, row.AchievedRPS)
		}
		if r.spec.Latency.KillServerEvery > 0 {
			row.Timeline = timeline(repeats)
		}
		r.record.Rows = append(r.record.Rows, row)
		r.warnRow(len(r.record.Rows)-1, &row, whole)
	}
	correct(r.record.Rows)
}

// correct corrects the significance of the added latencies of all rows together: of many
// tests some fall below any level by chance. Holm's method keeps the probability of a
// single false alarm in the run below that level, however the quantiles depend on each
// other.
func correct(rows []record.LatencyRow) {
	var tested []*record.Added
	var p []float64
	for i := range rows {
		if rows[i].Added == nil {
			continue
		}
		for _, name := range record.QuantileNames {
			if a := *rows[i].Added.At(name); a != nil && a.P != nil {
				tested, p = append(tested, a), append(p, *a.P)
			}
		}
	}
	for i, corrected := range stats.Holm(p) {
		tested[i].Holm, tested[i].Significant = new(corrected), new(corrected < significance)
	}
}

// whole returns the number of repeats of which all variants of a level completed all
// rounds, counted from the first. An incomplete repeat cannot be compared with the
// others.
func (r *run) whole(level []*rowRun) int {
	for n := range r.spec.Repeats {
		for _, one := range level {
			if one.repeats[n].rounds < r.spec.Latency.Rounds {
				return n
			}
		}
	}
	return r.spec.Repeats
}

// bed returns the testbed of a row; nil if it has no sidecars.
func (r *run) bed(c *rowRun) *testbed {
	at := c.placement*len(r.spec.Latency.Variants) + c.variant
	if at >= len(r.beds) || len(r.beds[at].sidecars) == 0 {
		return nil
	}
	return r.beds[at]
}

// done returns the repeats of which any rounds were done. These are the first ones.
func (c *rowRun) done() []*repeatRun {
	return slices.DeleteFunc(slices.Clone(c.repeats), func(r *repeatRun) bool { return r.rounds == 0 })
}

// row pools the repeats of a row. The first whole of them are complete.
func (c *rowRun) row(variant string, repeats []*repeatRun, whole int) record.LatencyRow {
	row := record.LatencyRow{RPS: c.rps, Connections: c.connections, Variant: variant}
	latency, lateness := stats.NewHistogram(), stats.NewHistogram()
	var seconds float64
	var answered int64
	for _, repeat := range repeats {
		latency.Merge(repeat.latency)
		lateness.Merge(repeat.lateness)
		one := record.LatencyRepeat{Latency: record.Latency(repeat.latency.Summary()), NotSent: repeat.notSent}
		for kind, n := range repeat.errors {
			if row.ErrorKinds == nil {
				row.ErrorKinds = map[string]int64{}
			}
			row.ErrorKinds[kind] += n
			one.Errors += n
		}
		if repeat.seconds > 0 {
			one.AchievedRPS = float64(repeat.answered) / repeat.seconds
		}
		row.Repeats = append(row.Repeats, one)
		row.Requests += repeat.requests
		row.Errors += one.Errors
		row.NotSent += repeat.notSent
		row.MostConnections = max(row.MostConnections, repeat.connections)
		seconds += repeat.seconds
		answered += repeat.answered
	}
	if seconds > 0 {
		row.AchievedRPS = float64(answered) / seconds
	}
	row.Latency = record.LatencyFigure{Latency: record.Latency(latency.Summary()), Intervals: intervals(row.Repeats[:whole])}
	if c.rps > 0 {
		row.Lateness = new(record.Latency(lateness.Summary()))
		row.Late = late(&row.Latency.Latency, row.Lateness)
	}
	return row
}

// late returns the quantiles at which the generator measured itself.
func late(latency, lateness *record.Latency) (names []string) {
	whole, own := latency.Quantiles(), lateness.Quantiles()
	for _, name := range record.QuantileNames {
		of, by := *whole.At(name), *own.At(name)
		if of != nil && by != nil && *by > lateSeconds && *by > lateShare**of {
			names = append(names, name)
		}
	}
	return names
}

// intervals returns the confidence intervals of the quantiles' means over the repeats.
func intervals(repeats []record.LatencyRepeat) *record.Quantiles[record.Interval] {
	var all record.Quantiles[record.Interval]
	for _, name := range record.QuantileNames {
		if mean, ok := stats.MeanOf(quantiles(repeats, name), latencyConfidence); ok {
			*all.At(name) = &record.Interval{Low: mean.Low, High: mean.High}
		}
	}
	if all == (record.Quantiles[record.Interval]{}) {
		return nil
	}
	return &all
}

// quantiles returns one quantile of every repeat; nil if it is unknown in any of them
// because of lost requests. The maximum is unknown as soon as one request is lost.
func quantiles(repeats []record.LatencyRepeat, name string) []float64 {
	var values []float64
	for i := range repeats {
		all := repeats[i].Latency.Quantiles()
		if value := *all.At(name); value != nil {
			values = append(values, *value)
		}
	}
	if len(values) < len(repeats) {
		return nil
	}
	return values
}

// added compares each repeat of a variant with the same repeat of none; both have the
// same number of repeats.
func added(repeats []record.LatencyRepeat, none []*repeatRun) *record.Quantiles[record.Added] {
	var all record.Quantiles[record.Added]
	n := len(repeats)
	base := make([]record.LatencyRepeat, n)
	for i := range base {
		base[i].Latency = record.Latency(none[i].latency.Summary())
	}
	for _, name := range record.QuantileNames {
		with, without := quantiles(repeats[:n], name), quantiles(base, name)
		if n == 0 || len(with) < n || len(without) < n {
			continue
		}
		differences := make([]float64, n)
		var sum float64
		for i := range differences {
			differences[i] = with[i] - without[i]
			sum += differences[i]
		}
		figure := &record.Added{Seconds: sum / float64(n)}
		if mean, ok := stats.MeanOf(differences, latencyConfidence); ok {
			figure.Interval = &record.Interval{Low: mean.Low, High: mean.High}
			figure.P = &mean.P
		}
		*all.At(name) = figure
	}
	if all == (record.Quantiles[record.Added]{}) {
		return nil
	}
	return &all
}

// sidecarsOf returns the usage of a variant's sidecars in its windows.
func sidecarsOf(bed *testbed, repeats []*repeatRun, achieved float64) *record.LatencySidecars {
	var seconds, cores float64
	for _, repeat := range repeats {
		seconds += repeat.seconds
	}
	all := &record.LatencySidecars{Workers: bed.workers}
	for i, tier := range bed.sidecars {
		var sum usageSum
		for _, repeat := range repeats {
			if i < len(repeat.sidecars) {
				sum.cpuSeconds += repeat.sidecars[i].cpuSeconds
				sum.memorySeconds += repeat.sidecars[i].memorySeconds
				sum.waited += repeat.sidecars[i].waited
				sum.unknown = sum.unknown || repeat.sidecars[i].unknown
			}
		}
		if seconds == 0 {
			return nil
		}
		each := seconds * float64(tier.count)
		one := record.LatencySidecar{Tier: tier.tier, Count: tier.count, Cores: sum.cpuSeconds / each, MemoryBytes: sum.memorySeconds / each}
		if !sum.unknown {
			one.Saturation = new(min(1, sum.waited/seconds))
		}
		all.Tiers = append(all.Tiers, one)
		all.Count += tier.count
		cores += sum.cpuSeconds / seconds
	}
	if achieved > 0 {
		all.CoresPer1000RPS = new(1000 * cores / achieved)
	}
	return all
}

// timeline returns the outcomes of requests, second by second.
func timeline(repeats []*repeatRun) []record.LatencySecond {
	var all []record.LatencySecond
	for i, repeat := range repeats {
		for second, s := range repeat.timeline {
			all = append(all, record.LatencySecond{Repeat: i + 1, Second: second, Requests: s.Requests, Errors: s.Failed, NotSent: s.NotSent})
		}
	}
	return all
}

// warnRow adds warnings about a row's figures.
func (r *run) warnRow(index int, row *record.LatencyRow, whole int) {
	about := fmt.Sprintf("rows[%d]", index)
	if whole < len(row.Repeats) {
		r.warn(record.Warning{About: about + ".latency", Reason: record.ReasonRoundsMissing, Values: map[string]float64{
			"repeats": float64(len(row.Repeats)), "rounds": float64(whole),
		}})
	}
	if len(row.Late) > 0 {
		r.warn(record.Warning{
			About: about + ".latency", Reason: record.ReasonLateGenerator, Detail: list(row.Late),
			Values: map[string]float64{"thresholdSeconds": lateSeconds},
		})
	}
	if row.NotSent > 0 {
		r.warn(record.Warning{About: about + ".latency", Reason: record.ReasonNotSent, Values: map[string]float64{
			"notSent": float64(row.NotSent), "requests": float64(row.Requests), "bound": float64(r.spec.Latency.MaxConnections),
		}})
	}
	if tier, share := waitingSidecars(row.Sidecars); share > record.Saturated {
		r.warn(record.Warning{About: about, Reason: record.ReasonSidecarsWaited, Component: tier, Values: map[string]float64{"share": share}})
	}
	if r.spec.Latency.KillServerEvery > 0 && r.retries > 0 && row.Variant != VariantNone {
		r.warn(record.Warning{
			About: about, Reason: record.ReasonRetried, Component: r.spec.ControlPlane.Name, Values: map[string]float64{"retries": float64(r.retries)},
		})
	}
	if row.Errors > 0 && r.spec.Latency.KillServerEvery == 0 {
		r.warn(record.Warning{
			About: about + ".latency", Reason: record.ReasonRequestsFailed, Detail: kindsText(row.ErrorKinds),
			Values: map[string]float64{"failed": float64(row.Errors), "requests": float64(row.Requests)},
		})
	}
}

// waitingSidecars returns the tier whose sidecars waited for processors for the greatest
// share of the time; "" and 0 if that is not known, or there are none.
func waitingSidecars(all *record.LatencySidecars) (tier string, share float64) {
	if all == nil {
		return "", 0
	}
	for _, one := range all.Tiers {
		if one.Saturation != nil && *one.Saturation > share {
			tier, share = one.Tier, *one.Saturation
		}
	}
	return tier, share
}

func kindsText(kinds map[string]int64) string {
	var texts []string
	for kind, n := range kinds {
		texts = append(texts, fmt.Sprintf("%s: %d", kind, n))
	}
	slices.Sort(texts)
	return list(texts)
}
