package experiment

import (
	"fmt"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/stats"
)

// latencies are the distributions of one run; each is safe for concurrent use.
type latencies struct {
	podAdmission, podReady                    *stats.Histogram
	certificate, key, token, clientWait       *stats.Histogram
	connect, connectTotal                     *stats.Histogram
	firstConfiguration, completeConfiguration *stats.Histogram

	rolloutPush [3]*stats.Histogram // by convergence.Kind
}

// changeKinds are the record's names of convergence.Kind.
var changeKinds = [3]record.ChangeKind{
	convergence.EndpointAdded:   record.EndpointAdd,
	convergence.EndpointRemoved: record.EndpointRemove,
	convergence.EndpointHealth:  record.EndpointHealth,
}

func newLatencies() *latencies {
	var l latencies
	for _, h := range l.all() {
		*h.histogram = stats.NewHistogram()
	}
	for i := range l.rolloutPush {
		l.rolloutPush[i] = stats.NewHistogram()
	}
	return &l
}

// named is a distribution, its name in the record and where its summary goes.
type named struct {
	name      string
	histogram **stats.Histogram
	summary   func(*record.Latencies) **record.Latency
}

func (l *latencies) all() []named {
	return []named{
		{"podAdmission", &l.podAdmission, func(r *record.Latencies) **record.Latency { return &r.PodAdmission }},
		{"podReady", &l.podReady, func(r *record.Latencies) **record.Latency { return &r.PodReady }},
		{"certificate", &l.certificate, func(r *record.Latencies) **record.Latency { return &r.Certificate }},
		{"key", &l.key, func(r *record.Latencies) **record.Latency { return &r.Key }},
		{"token", &l.token, func(r *record.Latencies) **record.Latency { return &r.Token }},
		{"clientWait", &l.clientWait, func(r *record.Latencies) **record.Latency { return &r.ClientWait }},
		{"connect", &l.connect, func(r *record.Latencies) **record.Latency { return &r.Connect }},
		{"connectTotal", &l.connectTotal, func(r *record.Latencies) **record.Latency { return &r.ConnectTotal }},
		{"firstConfiguration", &l.firstConfiguration, func(r *record.Latencies) **record.Latency { return &r.FirstConfiguration }},
		{"completeConfiguration", &l.completeConfiguration, func(r *record.Latencies) **record.Latency { return &r.CompleteConfiguration }},
	}
}

// lose counts, in every distribution that has one observation for each pod,
// those that have not come.
func (l *latencies) lose(pods int) {
	for _, h := range []*stats.Histogram{l.podAdmission, l.podReady, l.certificate, l.token, l.connectTotal, l.firstConfiguration, l.completeConfiguration} {
		if missing := int64(pods) - h.Summary().Count; missing > 0 {
			h.Lose(missing)
		}
	}
}

// save writes the whole distributions beside the record and their summaries
// into it. A distribution without any observation, lost ones included, was not
// measured.
func (l *latencies) save(w *record.Writer, run *record.Run) error {
	for _, n := range l.all() {
		summary := (*n.histogram).Summary()
		if summary.Count+summary.Lost == 0 {
			continue
		}
		latency := record.Latency(summary)
		*n.summary(&run.Latencies) = &latency
		if err := w.Histogram(n.name, *n.histogram); err != nil {
			return fmt.Errorf("writing the distribution of %s: %w", n.name, err)
		}
	}
	for kind, h := range l.rolloutPush {
		summary := h.Summary()
		if summary.Count+summary.Lost == 0 {
			continue
		}
		if run.Latencies.RolloutPush == nil {
			run.Latencies.RolloutPush = map[record.ChangeKind]*record.Latency{}
		}
		latency := record.Latency(summary)
		run.Latencies.RolloutPush[changeKinds[kind]] = &latency
		if err := w.Histogram("rolloutPush-"+string(changeKinds[kind]), h); err != nil {
			return fmt.Errorf("writing the distribution of rolloutPush: %w", err)
		}
	}
	return nil
}
