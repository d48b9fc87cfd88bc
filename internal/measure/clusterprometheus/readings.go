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
	values  map[string]map[string]float64 // of counters and gauges, by metric and kind
	buckets map[float64]float64           // of the convergence time: observations up to a bound
}

// processStarted is the Unix time at which a process started, by which a restart is seen.
const processStarted = "process_start_time_seconds"

// reported are the figures that two readings give, with the names, units and kinds that ofProgram has.
var reported = []struct {
	name, unit, metric string
	by                 []model.LabelName
	of                 func(before, after, seconds float64) float64
}{
	{"processorTime", "cores", "process_cpu_seconds_total", nil, rate},
	{"memory", "B", "process_resident_memory_bytes", nil, func(before, after, _ float64) float64 { return max(before, after) }},
	{"proxies", "", "pilot_xds", nil, func(_, after, _ float64) float64 { return after }},
	{"pushes", "1/s", "pilot_xds_pushes", []model.LabelName{"type"}, rate},
	{"clusterEvents", "1/s", "pilot_k8s_reg_events", []model.LabelName{"type", "event"}, rate},
	{"configurationEvents", "1/s", "pilot_k8s_cfg_events", []model.LabelName{"type", "event"}, rate},
}

func rate(before, after, seconds float64) float64 { return (after - before) / seconds }

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
			if r.values[metric] == nil {
				r.values[metric] = map[string]float64{}
			}
			// It is one of the three, and the others are 0.
			r.values[metric][kindOf(labels, by)] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	for _, f := range reported {
		take(f.metric, f.by)
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
	for _, f := range reported {
		r := Range{Name: f.name, Unit: f.unit}
		sums := map[string]float64{} // over pods, by kind
		for name, second := range after {
			first := before[name]
			between := second.at.Sub(first.at).Seconds()
			for kind, value := range second.values[f.metric] {
				sums[kind] += f.of(first.values[f.metric][kind], value, between) // a kind that was not there has begun at 0
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(sums)) {
			r.Kinds = append(r.Kinds, KindRange{kind, []timeseries.Sample{{At: to, Value: sums[kind]}}})
		}
		if len(sums) == 0 {
			r.Err = fmt.Errorf("it has no %s", f.metric)
		}
		all = append(all, r)
	}
	grown := map[float64]float64{}
	for name, second := range after {
		for bound, n := range second.buckets {
			grown[bound] += n - before[name].buckets[bound]
		}
	}
	for _, q := range []struct {
		name  string
		share float64
	}{{"convergenceP50", 0.5}, {"convergenceP99", 0.99}} {
		r := Range{Name: q.name, Unit: "s"}
		if value, known := quantile(q.share, grown); known {
			r.Kinds = []KindRange{{"", []timeseries.Sample{{At: to, Value: value}}}}
		} else {
			r.Err = errors.New("nothing was pushed between the readings, or it has no " + convergenceTime)
		}
		all = append(all, r)
	}
	return from, to, all, nil
}

// quantile is what histogram_quantile of PromQL gives for buckets by their bounds: interpolated within the bucket, and the greatest finite
// bound above it. It is not known without observations.
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
