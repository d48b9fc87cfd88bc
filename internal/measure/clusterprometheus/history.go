package clusterprometheus

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"scaler.mesh/scaler/internal/timeseries"
)

// HistoryStep is the length of time that each value of a history covers.
const HistoryStep = 5 * time.Minute

// MaxHistory is the longest history: Prometheus gives 11000 values of a series at most.
const MaxHistory = 30 * 24 * time.Hour

// Range holds the values of one figure over time.
type Range struct {
	Name, Unit string
	Kinds      []KindRange // sorted; one without a kind where the figure has none
	Err        error       // why it is not known; nil = it is
}

// KindRange holds the values of one kind, in order of time. Each covers the HistoryStep before its time. Steps without a
// value are left out.
type KindRange struct {
	Kind   string // as in cds, or "EndpointSlice update"; "" = there are none
	Values []timeseries.Sample
}

// ranged is a figure of a history: the first of its expressions that has series counts.
type ranged struct {
	name, unit string
	exprs      []string // with SERIES for the labels of the program's own metrics, CONTAINER for those of its container, and STEP
	by         []model.LabelName
	reported   // how two readings of a pod's own metrics give it
}

// reported states how two readings of a pod's own metrics give a figure: by the value of a metric before and after, by a quantile of
// a histogram's observations in between, or by their mean.
type reported struct {
	metric  string
	between func(before, after, seconds float64) float64 // nil = the mean of a histogram, where share is 0
	share   float64                                      // of the quantile; 0 = none
}

// ofProgram lists the figures of a control plane of Istio. Where several jobs scrape a pod, one series counts.
var ofProgram = []ranged{
	{"processorTime", "cores", []string{
		`sum(max by (pod) (rate(process_cpu_seconds_total{SERIES}[STEP])))`,
		`sum(max by (pod) (rate(container_cpu_usage_seconds_total{CONTAINER,cpu=~"total|"}[STEP])))`,
	}, nil, reported{metric: ownProcessorTime, between: rate}},
	{"memory", "B", []string{
		`sum(max by (pod) (max_over_time(process_resident_memory_bytes{SERIES}[STEP])))`,
		`sum(max by (pod) (max_over_time(container_memory_rss{CONTAINER}[STEP])))`,
	}, nil, reported{metric: "process_resident_memory_bytes", between: greater}},
	{"proxies", "", []string{`sum(max by (pod, version) (pilot_xds{SERIES}))`}, nil, reported{metric: "pilot_xds", between: last}},
	{"pushes", "1/s", []string{`sum by (type) (max by (pod, type) (rate(pilot_xds_pushes{SERIES}[STEP])))`}, []model.LabelName{"type"}, reported{metric: "pilot_xds_pushes", between: rate}},
	{"bytesPerPush", "B", []string{`sum by (type) (max by (pod, type) (rate(pilot_xds_config_size_bytes_sum{SERIES,type=~"type.googleapis.com/.+"}[STEP]))) / (sum by (type) (max by (pod, type) (rate(pilot_xds_config_size_bytes_count{SERIES,type=~"type.googleapis.com/.+"}[STEP]))) > 0)`}, []model.LabelName{"type"}, reported{metric: "pilot_xds_config_size_bytes"}},
	{"convergenceP50", "s", []string{`histogram_quantile(0.5, sum by (le) (rate(pilot_proxy_convergence_time_bucket{SERIES}[STEP])))`}, nil, reported{metric: convergenceTime, share: 0.5}},
	{"convergenceP99", "s", []string{`histogram_quantile(0.99, sum by (le) (rate(pilot_proxy_convergence_time_bucket{SERIES}[STEP])))`}, nil, reported{metric: convergenceTime, share: 0.99}},
	{"clusterEvents", "1/s", []string{`sum by (type, event) (max by (pod, type, event) (rate(pilot_k8s_reg_events{SERIES}[STEP])))`}, []model.LabelName{"type", "event"}, reported{metric: "pilot_k8s_reg_events", between: rate}},
	{"configurationEvents", "1/s", []string{`sum by (type, event) (max by (pod, type, event) (rate(pilot_k8s_cfg_events{SERIES}[STEP])))`}, []model.LabelName{"type", "event"}, reported{metric: "pilot_k8s_cfg_events", between: rate}},
}

// ofAPIServer lists the figures of all replicas of the API server. Where several jobs scrape them, the job with the most requests counts.
var ofAPIServer = []ranged{
	{"requests", "1/s", []string{`max by (verb) (sum by (job, verb) (rate(apiserver_request_total[STEP])))`}, []model.LabelName{"verb"}, reported{}},
}

// History reads the figures of the program over a length of time up to now, in whole steps by the clock of the Prometheus. A
// figure that it does not have completely has an error and no values.
func (s *Source) History(ctx context.Context, length time.Duration) (from, to time.Time, all []Range, err error) {
	return s.history(ctx, length, ofProgram)
}

// APIServerHistory is History of the API server.
func (s *Source) APIServerHistory(ctx context.Context, length time.Duration) (from, to time.Time, all []Range, err error) {
	return s.history(ctx, length, ofAPIServer)
}

func (s *Source) history(ctx context.Context, length time.Duration, figures []ranged) (from, to time.Time, all []Range, err error) {
	if s.Err != nil {
		return from, to, nil, s.Err
	}
	defer s.client.idle()
	ahead, err := s.client.clock(ctx)
	if err != nil {
		return from, to, nil, fmt.Errorf("reading its clock: %w", err)
	}
	to = time.Now().Add(ahead).Truncate(HistoryStep)
	from = to.Add(-length.Truncate(HistoryStep))
	p := s.program
	names := strings.NewReplacer(
		"SERIES", fmt.Sprintf("namespace=%q,pod=~%q,container=~%q", p.Namespace, p.pods(), p.Container+"|"),
		"CONTAINER", fmt.Sprintf("namespace=%q,pod=~%q,container=%q", p.Namespace, p.pods(), p.Container),
		"STEP", fmt.Sprintf("%ds", int(HistoryStep.Seconds())),
	)
	for _, figure := range figures {
		r := Range{Name: figure.name, Unit: figure.unit}
		for _, expr := range figure.exprs {
			if r.Kinds, r.Err = s.client.steps(ctx, names.Replace(expr), figure.by, from, to); r.Err != nil || len(r.Kinds) > 0 {
				break
			}
		}
		if ctx.Err() != nil {
			return from, to, nil, context.Cause(ctx)
		}
		if r.Err == nil && len(r.Kinds) == 0 {
			r.Err = fmt.Errorf("it has no %s", metricsOf(figure.exprs))
		}
		all = append(all, r)
	}
	return from, to, all, nil
}

// metricName matches the metrics of the expressions above: what labels or a range follow.
var metricName = regexp.MustCompile(`[a-z_0-9]+_[a-z_0-9]+[{[]`)

// metricsOf names the metrics of expressions.
func metricsOf(exprs []string) string {
	var names []string
	for _, expr := range exprs {
		names = append(names, strings.TrimRight(metricName.FindString(expr), "{["))
	}
	return strings.Join(names, " or ")
}

// steps evaluates an expression at the end of each step in (from, to].
func (c *client) steps(ctx context.Context, expr string, by []model.LabelName, from, to time.Time) ([]KindRange, error) {
	result, warnings, _, err := c.api.QueryRange(ctx, expr, promv1.Range{Start: from.Add(HistoryStep), End: to, Step: HistoryStep})
	switch {
	case err != nil:
		return nil, explain(err)
	case len(warnings) > 0:
		return nil, fmt.Errorf("its answer is not complete: %.300s", warnings[0])
	}
	streams, ok := result.(model.Matrix)
	if !ok {
		return nil, errors.New("its answer has no series")
	}
	kinds := map[string]map[time.Time]float64{}
	for _, stream := range streams {
		kind := kindOf(stream.Metric, by)
		for _, pair := range stream.Values {
			if v := float64(pair.Value); v-v == 0 { // neither NaN nor infinite
				if kinds[kind] == nil {
					kinds[kind] = map[time.Time]float64{}
				}
				kinds[kind][pair.Timestamp.Time()] += v // of several kinds that are taken together
			}
		}
	}
	var all []KindRange
	for kind, values := range kinds {
		one := KindRange{Kind: kind}
		for at, v := range values {
			one.Values = append(one.Values, timeseries.Sample{At: at, Value: v})
		}
		slices.SortFunc(one.Values, func(a, b timeseries.Sample) int { return a.At.Compare(b.At) })
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b KindRange) int { return strings.Compare(a.Kind, b.Kind) })
	return all, nil
}

// kindWord matches what a control plane or an API server calls a type, an event or a verb.
var kindWord = regexp.MustCompile(`^[A-Za-z_]{1,40}$`)

// typeURL begins the label type of some metrics, as in type.googleapis.com/envoy.config.cluster.v3.Cluster.
const typeURL = "type.googleapis.com/"

// otherKind is the kind of series whose labels are not words.
const otherKind = "other"

// kindOf returns the kind of a series by its labels, of a message the last part of its name; otherKind if a label is not a word of Istio or
// Kubernetes.
func kindOf(labels model.Metric, by []model.LabelName) string {
	var words []string
	for _, name := range by {
		word := string(labels[name])
		if message, is := strings.CutPrefix(word, typeURL); is {
			word = message[strings.LastIndexByte(message, '.')+1:]
		}
		if !kindWord.MatchString(word) {
			return otherKind
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
