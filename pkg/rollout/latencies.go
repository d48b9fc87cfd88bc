package rollout

import (
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/stats"
)

// latencies are the distributions of one run; each is safe for concurrent use.
type latencies struct {
	podAdmission, podReady                    *stats.Histogram
	certificate, key, token, clientWait       *stats.Histogram
	connect, connectTotal, reconnect          *stats.Histogram
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
		{"reconnect", &l.reconnect, func(r *record.Latencies) **record.Latency { return &r.Reconnect }},
		{"firstConfiguration", &l.firstConfiguration, func(r *record.Latencies) **record.Latency { return &r.FirstConfiguration }},
		{"completeConfiguration", &l.completeConfiguration, func(r *record.Latencies) **record.Latency { return &r.CompleteConfiguration }},
	}
}

// lose counts, in every distribution that has one observation for each pod of a
// rollout, those that have not come. The starts of as many of their sidecars as
// are real are elsewhere.
func (l *latencies) lose(pods, real int) {
	loseIn(pods, l.podAdmission, l.podReady)
	l.loseStarts(pods - real)
}

// loseStarts is lose for the starts of simulated sidecars.
func (l *latencies) loseStarts(pods int) {
	loseIn(pods, l.certificate, l.token, l.connectTotal, l.firstConfiguration, l.completeConfiguration)
}

func loseIn(pods int, distributions ...*stats.Histogram) {
	for _, h := range distributions {
		if missing := int64(pods) - h.Summary().Count; missing > 0 {
			h.Lose(missing)
		}
	}
}

// save writes the whole distributions beside the record, under prefix and their
// names, and their summaries into it. A distribution without any observation,
// lost ones included, was not measured.
func (l *latencies) save(w *record.Writer, prefix string, into *record.Latencies) error {
	for _, n := range l.all() {
		latency, err := experiment.SaveHistogram(w, prefix+n.name, *n.histogram)
		if err != nil {
			return err
		}
		*n.summary(into) = latency
	}
	for kind, h := range l.rolloutPush {
		latency, err := experiment.SaveHistogram(w, prefix+"rolloutPush-"+string(changeKinds[kind]), h)
		if err != nil {
			return err
		}
		if latency == nil {
			continue
		}
		if into.RolloutPush == nil {
			into.RolloutPush = map[record.ChangeKind]*record.Latency{}
		}
		into.RolloutPush[changeKinds[kind]] = latency
	}
	return nil
}
