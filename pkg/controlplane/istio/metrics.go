package istio

import "scaler.mesh/scaler/pkg/controlplane"

// OwnMetrics are istiod's own figures over a phase, laid beside scaler's.
// $window is replaced by the phase's length. Times are means, from sums over
// counts, because the buckets are too coarse for quantiles.
func OwnMetrics() []controlplane.Metric {
	increase := func(metric string) string { return "sum(increase(" + metric + "[$window]))" }
	mean := func(metric string) string {
		return "sum(increase(" + metric + "_sum[$window])) / (sum(increase(" + metric + "_count[$window])) > 0)"
	}
	return []controlplane.Metric{
		{Name: "debounceSeconds", Expr: mean("pilot_debounce_time")},
		{Name: "convergenceSeconds", Expr: mean("pilot_proxy_convergence_time")},
		{Name: "queueSeconds", Expr: mean("pilot_proxy_queue_time")},
		{Name: "pushContextSeconds", Expr: mean("pilot_pushcontext_init_seconds")},
		{Name: "pushes", Expr: increase("pilot_xds_pushes")},
		{Name: "rejects", Expr: increase("pilot_total_xds_rejects")},
		{Name: "pushTriggers", Expr: increase("pilot_push_triggers")},
		{Name: "certificates", Expr: increase("citadel_server_success_cert_issuance_count")},
		{Name: "certificateRequests", Expr: increase("citadel_server_csr_count")},
		{Name: "injections", Expr: increase("sidecar_injection_success_total")},
	}
}

// Counters are istiod's lifetime counts that scaler's own must equal when a
// mesh is converged and quiet: responses by type, connected proxies,
// certificate requests and certificates.
func Counters() []controlplane.Metric {
	return []controlplane.Metric{
		{Name: "responses.CDS", Expr: `sum(pilot_xds_pushes{type="cds"})`},
		{Name: "responses.EDS", Expr: `sum(pilot_xds_pushes{type="eds"})`},
		{Name: "responses.LDS", Expr: `sum(pilot_xds_pushes{type="lds"})`},
		{Name: "responses.RDS", Expr: `sum(pilot_xds_pushes{type="rds"})`},
		{Name: "connected", Expr: `sum(pilot_xds)`},
		{Name: "certificateRequests", Expr: `sum(citadel_server_csr_count)`},
		{Name: "certificates", Expr: `sum(citadel_server_success_cert_issuance_count)`},
	}
}
