package fleet

import (
	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// Latencies holds the distributions of the starts of pods and sidecars, of a rollout or of a
// background activity. Each is safe for concurrent use. docs/reference defines the figures.
type Latencies struct {
	PodAdmission, PodReady                    *stats.Histogram
	PodReadyWithoutKwok                       *stats.Histogram
	Certificate, Key, Token, ClientWait       *stats.Histogram
	Connect, ConnectTotal, Reconnect          *stats.Histogram
	FirstConfiguration, CompleteConfiguration *stats.Histogram

	Starts Starts // of their sidecars

	RolloutPush [3]*stats.Histogram // of changes of endpoints while the mesh is rolled out, by convergence.Kind
}

// Starts states which steps the start of a pod has: only a latency of these can be lost.
type Starts struct {
	Sidecars     bool // the pods have sidecars, which start
	Certificates bool // these wait for a certificate
	Tokens       bool // and request a token
}

// changeKinds are the record's names of convergence.Kind.
var changeKinds = [3]record.ChangeKind{
	convergence.EndpointAdded:   record.EndpointAdd,
	convergence.EndpointRemoved: record.EndpointRemove,
	convergence.EndpointHealth:  record.EndpointHealth,
}

// NewLatencies returns empty distributions.
func NewLatencies() *Latencies {
	l := Latencies{Starts: Starts{Sidecars: true, Certificates: true, Tokens: true}}
	for _, h := range l.all() {
		*h.histogram = stats.NewHistogram()
	}
	for i := range l.RolloutPush {
		l.RolloutPush[i] = stats.NewHistogram()
	}
	return &l
}

// named is a distribution, its name in the record, and the place of its summary.
type named struct {
	name      string
	histogram **stats.Histogram
	summary   func(*record.Latencies) **record.Latency
}

func (l *Latencies) all() []named {
	return []named{
		{"podAdmission", &l.PodAdmission, func(r *record.Latencies) **record.Latency { return &r.PodAdmission }},
		{"podReady", &l.PodReady, func(r *record.Latencies) **record.Latency { return &r.PodReady }},
		{"podReadyWithoutKwok", &l.PodReadyWithoutKwok, func(r *record.Latencies) **record.Latency { return &r.PodReadyWithoutKwok }},
		{"certificate", &l.Certificate, func(r *record.Latencies) **record.Latency { return &r.Certificate }},
		{"key", &l.Key, func(r *record.Latencies) **record.Latency { return &r.Key }},
		{"token", &l.Token, func(r *record.Latencies) **record.Latency { return &r.Token }},
		{"clientWait", &l.ClientWait, func(r *record.Latencies) **record.Latency { return &r.ClientWait }},
		{"connect", &l.Connect, func(r *record.Latencies) **record.Latency { return &r.Connect }},
		{"connectTotal", &l.ConnectTotal, func(r *record.Latencies) **record.Latency { return &r.ConnectTotal }},
		{"reconnect", &l.Reconnect, func(r *record.Latencies) **record.Latency { return &r.Reconnect }},
		{"firstConfiguration", &l.FirstConfiguration, func(r *record.Latencies) **record.Latency { return &r.FirstConfiguration }},
		{"completeConfiguration", &l.CompleteConfiguration, func(r *record.Latencies) **record.Latency { return &r.CompleteConfiguration }},
	}
}

// Forgo takes, of so many simulated sidecars that started, that a complete configuration that has not come
// cannot come: the control plane is at rest, and these sidecars do not hold what is expected of them. Those are
// not lost.
func (l *Latencies) Forgo(starts int) {
	h := l.CompleteConfiguration
	if s := h.Summary(); l.Starts.Sidecars && int64(starts) > s.Count+s.Lost+s.Unmet {
		h.Forgo(int64(starts) - s.Count - s.Lost - s.Unmet)
	}
}

// Lose counts missing observations as lost, in every distribution that has one for each pod of a
// rollout. Of so many pods, the starts of others are recorded elsewhere, as those of real sidecars, and those on
// real nodes are not made Ready by KWOK.
func (l *Latencies) Lose(pods, others, onRealNodes int) {
	LoseIn(pods, l.PodAdmission, l.PodReady)
	LoseIn(pods-onRealNodes, l.PodReadyWithoutKwok)
	l.loseStarts(pods - others)
}

// loseStarts is Lose for the starts of simulated sidecars.
func (l *Latencies) loseStarts(pods int) {
	if !l.Starts.Sidecars {
		return
	}
	if l.Starts.Certificates {
		LoseIn(pods, l.Certificate)
	}
	if l.Starts.Tokens {
		LoseIn(pods, l.Token)
	}
	LoseIn(pods, l.ConnectTotal, l.FirstConfiguration, l.CompleteConfiguration)
}

// LoseIn counts missing observations as lost, in distributions with one for each of so many
// pods.
func LoseIn(pods int, distributions ...*stats.Histogram) {
	for _, h := range distributions {
		if s := h.Summary(); int64(pods) > s.Count+s.Unmet {
			h.Lose(int64(pods) - s.Count - s.Unmet)
		}
	}
}

// Save writes the whole distributions into the record's folder, under prefix and
// their names, and their summaries into the record. A distribution without any observation,
// lost ones included, was not measured.
func (l *Latencies) Save(j *journal.Journal, prefix string, into *record.Latencies) error {
	for _, n := range l.all() {
		latency, err := j.SaveLatency(prefix+n.name, *n.histogram)
		if err != nil {
			return err
		}
		*n.summary(into) = latency
	}
	for kind, h := range l.RolloutPush {
		latency, err := j.SaveLatency(prefix+"rolloutPush-"+string(changeKinds[kind]), h)
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

// Each calls do with the name of every distribution and its summary in a record, nil
// where it was not measured. It leaves out changes of endpoints.
func (l *Latencies) Each(in *record.Latencies, do func(name string, latency *record.Latency)) {
	for _, n := range l.all() {
		do(n.name, *n.summary(in))
	}
}
