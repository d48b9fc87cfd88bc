package measure

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// RunInfo describes a run to a reader of its time series. The
// run's name and mode are not in it: they are labels of all its series, of the
// programs' own too; see Target.Labels.
type RunInfo struct {
	ControlPlane               string // as in the label component, such as "istiod"
	Pods, Services, Namespaces int
	MTLS, Scope, Authz         string // the knobs
	XDS                        string // delta or sotw
	GOMAXPROCS                 int    // of the control plane; 0 = not known
	Limits                     Limits
}

// Limits are bounds that the control plane is known to hold itself to, set as it
// is. One that is 0 is not known, and has no series.
type Limits struct {
	StreamsPerSecond      float64 // new streams that it admits
	TokenReviewsPerSecond float64 // that it asks of the API server, after a burst
	DebounceSeconds       float64 // after a first change it pushes at the latest
}

func runInfo() *prometheus.GaugeVec {
	return gauges("run_info", "What is rolled out, and against which control plane.",
		"control_plane", "pods", "services", "namespaces", "mtls", "scope", "authz", "xds", "gomaxprocs")
}

// Run states what run this is. It is called once.
func (m *Metrics) Run(r RunInfo) {
	m.run.WithLabelValues(r.ControlPlane, strconv.Itoa(r.Pods), strconv.Itoa(r.Services), strconv.Itoa(r.Namespaces),
		r.MTLS, r.Scope, r.Authz, r.XDS, strconv.Itoa(r.GOMAXPROCS)).Set(1)
	m.known("run_start_timestamp_seconds", "When the run was first told of, since 1970.", unixSeconds())
	m.known("limit_streams_per_second", "New streams that the control plane is known to admit.", r.Limits.StreamsPerSecond)
	m.known("limit_token_reviews_per_second", "Token reviews that the control plane is known to ask for, after a burst.", r.Limits.TokenReviewsPerSecond)
	m.known("limit_debounce_seconds", "After a first change the control plane is known to push at the latest.", r.Limits.DebounceSeconds)
}

// known adds a series that does not change; none for a value that is 0.
func (m *Metrics) known(name, help string, value float64) {
	if value == 0 {
		return
	}
	g := gauges(name, help)
	g.WithLabelValues().Set(value)
	m.registry.MustRegister(g)
}
