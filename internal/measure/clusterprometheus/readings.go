package clusterprometheus

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"scaler.mesh/scaler/internal/timeseries"
)

// Reading holds what one pod of a control plane of Istio reported of itself at a moment.
type Reading struct {
	at      time.Time
	values  map[string]map[string]float64 // of counters and gauges, and the sums and counts of histograms, by metric and kind
	buckets map[float64]float64           // of the convergence time: observations up to a bound
}

// processStarted is the Unix time at which a process started, by which a restart is seen.
const processStarted = "process_start_time_seconds"

func rate(before, after, seconds float64) float64 { return (after - before) / seconds }

func growth(before, after, _ float64) float64 { return after - before }

func greater(before, after, _ float64) float64 { return max(before, after) }

func last(_, after, _ float64) float64 { return after }

// sumOf and countOf follow the name of a histogram, in those of its sum and count.
const (
	sumOf   = "_sum"
	countOf = "_count"
)

// convergenceTime is the histogram of which two readings give the quantiles.
const convergenceTime = "pilot_proxy_convergence_time"

// Read takes what a pod reported, in the text format of Prometheus.
func Read(at time.Time, text []byte) (Reading, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return Reading{}, fmt.Errorf("reading its metrics: %w", err)
	}
	r := Reading{at: at, values: map[string]map[string]float64{}, buckets: map[float64]float64{}}
	take := func(metric string, by []model.LabelName) {
		for _, m := range families[metric].GetMetric() {
			labels := model.Metric{}
			for _, l := range m.GetLabel() {
				labels[model.LabelName(l.GetName())] = model.LabelValue(l.GetValue())
			}
			add := func(metric string, value float64) {
				if r.values[metric] == nil {
					r.values[metric] = map[string]float64{}
				}
				r.values[metric][kindOf(labels, by)] += value
			}
			if h := m.GetHistogram(); h != nil {
				add(metric+sumOf, h.GetSampleSum())
				add(metric+countOf, float64(h.GetSampleCount()))
				continue
			}
			// It is one of the three, and the others are 0.
			add(metric, m.GetCounter().GetValue()+m.GetGauge().GetValue()+m.GetUntyped().GetValue())
		}
	}
	for _, f := range ofProgram {
		if f.share == 0 {
			take(f.metric, f.by)
		}
	}
	if take(processStarted, nil); r.values[processStarted] == nil {
		return Reading{}, fmt.Errorf("reading its metrics: it has no %s", processStarted)
	}
	for _, m := range families[convergenceTime].GetMetric() {
		for _, b := range m.GetHistogram().GetBucket() {
			r.buckets[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	}
	return r, nil
}

// Between returns the figures of a control plane from two readings of each of its pods, by their names, as one value of a History:
// rates are means over the time between the readings, and memory is the greater of the two. The pods, and the processes in them, must be the
// same.
func Between(before, after map[string]Reading) (from, to time.Time, all []Range, err error) {
	if len(before) == 0 {
		return from, to, nil, errors.New("none of its pods is ready")
	}
	for name := range after {
		if _, there := before[name]; !there {
			return from, to, nil, fmt.Errorf("pod %s was added between the readings", name)
		}
	}
	seconds := math.Inf(1)
	for name, first := range before {
		second, there := after[name]
		if !there || !maps.Equal(first.values[processStarted], second.values[processStarted]) {
			return from, to, nil, fmt.Errorf("pod %s ended or was restarted between the readings", name)
		}
		seconds = min(seconds, second.at.Sub(first.at).Seconds())
		if from.IsZero() || first.at.Before(from) {
			from = first.at
		}
		to = timeseries.Later(to, second.at)
	}
	if seconds <= 0 {
		return from, to, nil, errors.New("no time passed between the readings")
	}
	grown := map[float64]float64{} // observations between the readings, up to a bound
	for name, second := range after {
		for bound, n := range second.buckets {
			grown[bound] += n - before[name].buckets[bound]
		}
	}
	for _, f := range ofProgram {
		r := Range{Name: f.name, Unit: f.unit}
		values := map[string]float64{} // by kind
		if f.share > 0 {
			if value, known := quantile(f.share, grown); known {
				values[""] = value
			} else {
				r.Err = errors.New(nothingPushed + f.metric)
			}
		} else if f.between == nil {
			if values = means(f.metric, before, after); len(values) == 0 {
				r.Err = errors.New(nothingPushed + f.metric)
			}
		} else if values = sums(f, before, after); len(values) == 0 {
			r.Err = fmt.Errorf("it has no %s", f.metric)
		}
		for _, kind := range slices.Sorted(maps.Keys(values)) {
			r.Kinds = append(r.Kinds, KindRange{kind, []timeseries.Sample{{At: to, Value: values[kind]}}})
		}
		all = append(all, r)
	}
	return from, to, all, nil
}

// nothingPushed begins why a figure of what was pushed is not known.
const nothingPushed = "nothing was pushed between the readings, or it has no "

// means returns the mean of what a histogram of all pods took between the readings, by kind. Kinds that are taken together have none.
func means(metric string, before, after map[string]Reading) map[string]float64 {
	grown := func(metric string) map[string]float64 {
		return sums(ranged{reported: reported{metric: metric, between: growth}}, before, after)
	}
	all := map[string]float64{}
	totals := grown(metric + sumOf)
	for kind, n := range grown(metric + countOf) {
		if n > 0 && kind != otherKind {
			all[kind] = totals[kind] / n
		}
	}
	return all
}

// sums returns a figure over all pods, by kind.
func sums(f ranged, before, after map[string]Reading) map[string]float64 {
	all := map[string]float64{}
	for name, second := range after {
		first := before[name]
		seconds := second.at.Sub(first.at).Seconds()
		for kind, value := range second.values[f.metric] {
			all[kind] += f.between(first.values[f.metric][kind], value, seconds) // a kind that was not there has begun at 0
		}
	}
	return all
}

// quantile returns what histogram_quantile of PromQL gives for buckets by their bounds: interpolated within the bucket, and the
// greatest finite bound above it. It is not known without observations.
func quantile(share float64, buckets map[float64]float64) (value float64, known bool) {
	bounds := slices.SortedFunc(maps.Keys(buckets), cmp.Compare[float64])
	if len(bounds) < 2 || !math.IsInf(bounds[len(bounds)-1], 1) || buckets[bounds[len(bounds)-1]] <= 0 {
		return 0, false
	}
	rank := share * buckets[bounds[len(bounds)-1]]
	low, below := 0.0, 0.0
	for _, bound := range bounds[:len(bounds)-1] {
		if n := buckets[bound]; n >= rank && n > below {
			return low + (bound-low)*(rank-below)/(n-below), true
		}
		low, below = bound, buckets[bound]
	}
	return low, true
}
