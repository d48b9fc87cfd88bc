package recorder

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// RunInfo is what a reader of a run's time series must know to judge them. The
// run's name and mode are not in it: they are labels of all its series, of the
// programs' own too; see Target.Labels.
type RunInfo struct {
	ControlPlane               string // as in the label component, such as "istiod"
	Pods, Services, Namespaces int
	MTLS, Scope, Authz         string // the knobs
	XDS                        string // delta or sotw
	GOMAXPROCS                 int    // of the control plane; 0 = not known
}

func runInfo() *prometheus.GaugeVec {
	return gauges("run_info", "What is rolled out, and against which control plane.",
		"control_plane", "pods", "services", "namespaces", "mtls", "scope", "authz", "xds", "gomaxprocs")
}

// Run says what run this is.
func (m *Metrics) Run(r RunInfo) {
	m.run.WithLabelValues(r.ControlPlane, strconv.Itoa(r.Pods), strconv.Itoa(r.Services), strconv.Itoa(r.Namespaces),
		r.MTLS, r.Scope, r.Authz, r.XDS, strconv.Itoa(r.GOMAXPROCS)).Set(1)
}
