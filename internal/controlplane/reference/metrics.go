package reference

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
)

// Endpoints is part of controlplane.Server.
func (c *ControlPlane) Endpoints() controlplane.Endpoints {
	return controlplane.Endpoints{Metrics: "http://" + address(c.ports.monitoring) + "/metrics"}
}

// metrics returns the queries of the reference control plane's own metrics.
func metrics() controlplane.Metrics {
	increase := func(metric string) string { return "sum(increase(" + metric + "[$window]))" }
	responses := map[convergence.Type]string{}
	for _, t := range []convergence.Type{convergence.CDS, convergence.EDS, convergence.LDS, convergence.RDS} {
		responses[t] = `sum(reference_xds_responses_total{type="` + t.String() + `"})`
	}
	return controlplane.Metrics{
		Phase: []controlplane.Metric{
			{Name: "responses", Expr: increase("reference_xds_responses_total")},
			{Name: "rejects", Expr: increase("reference_xds_rejects_total")},
			{Name: "droppedPushes", Expr: increase("reference_xds_dropped_pushes_total")},
			{Name: "delayedPushes", Expr: increase("reference_xds_delayed_pushes_total")},
			{Name: "updates", Expr: increase("reference_updates_total")},
			{Name: "certificateRequests", Expr: increase("reference_certificate_requests_total")},
			{Name: "certificates", Expr: increase("reference_certificates_total")},
		},
		Counters: controlplane.Counters{
			Responses:           responses,
			Connected:           `sum(reference_xds_streams)`,
			CertificateRequests: `sum(reference_certificate_requests_total)`,
			Certificates:        `sum(reference_certificates_total)`,
		},
	}
}
