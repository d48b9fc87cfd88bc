package istio

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
)

// Endpoints is part of controlplane.Server.
func (c *ControlPlane) Endpoints() controlplane.Endpoints { return c.first.Endpoints() }

// metrics returns the queries of istiod's own metrics.
func metrics() controlplane.Metrics {
	return controlplane.Metrics{
		Phase:    phaseMetrics(),
		Push:     []string{"debounceSeconds", "convergenceSeconds"},
		Counters: counters(),
	}
}

// phaseMetrics are istiod's own figures over a phase, compared with scaler's.
// Times are means, from sums over counts, because the buckets are too coarse
// for quantiles.
//
// Increases are plain differences: increase() extrapolates to the window's
// ends, which over a rollout of seconds doubles a count, and takes a counter
// that appears in the window as if it had begun with its first value. A
// difference below zero, after a restart, is none. Of a replica that ended in the window
// the last value counts.
func phaseMetrics() []controlplane.Metric {
	increase := func(metric string) string {
		last := "(" + metric + " or last_over_time(" + metric + "[$window]))"
		return "((sum" + last + " - (sum(" + metric + " offset $window) or vector(0))) >= 0)"
	}
	mean := func(metric string) string {
		return increase(metric+"_sum") + " / (" + increase(metric+"_count") + " > 0)"
	}
	return []controlplane.Metric{
		{Name: "debounceSeconds", Expr: mean("pilot_debounce_time")},
		{Name: "convergenceSeconds", Expr: mean("pilot_proxy_convergence_time")},
		{Name: "queueSeconds", Expr: mean("pilot_proxy_queue_time")},
		{Name: "pushContextSeconds", Expr: mean("pilot_pushcontext_init_seconds")},
		{Name: "pushes", Expr: increase(`pilot_xds_pushes{type!~".+_senderr"}`)}, // those are counted by their own type, too
		{Name: "rejects", Expr: increase("pilot_total_xds_rejects")},
		{Name: "pushTriggers", Expr: increase("pilot_push_triggers")},
		{Name: "certificates", Expr: increase("citadel_server_success_cert_issuance_count")},
		{Name: "certificateRequests", Expr: increase("citadel_server_csr_count")},
		{Name: "injections", Expr: increase("sidecar_injection_success_total")},
	}
}

// counters are istiod's lifetime counts of what scaler counts too.
func counters() controlplane.Counters {
	responses := func(label string) string { return `sum(pilot_xds_pushes{type="` + label + `"})` }
	return controlplane.Counters{
		Responses: map[convergence.Type]string{
			convergence.CDS: responses("cds"),
			convergence.EDS: responses("eds"),
			convergence.LDS: responses("lds"),
			convergence.RDS: responses("rds"),
		},
		Connected:           `sum(pilot_xds)`,
		ReplicaConnected:    `sum(pilot_xds{instance="$instance"})`,
		CertificateRequests: `sum(citadel_server_csr_count)`,
		Certificates:        `sum(citadel_server_success_cert_issuance_count)`,
	}
}
