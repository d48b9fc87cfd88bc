package linkerd

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/linkerd/linkerdproxy"
	"scaler.mesh/scaler/pkg/convergence"
)

// metrics returns the queries of the programs' own metrics. Destination does not report how long a change waits.
func metrics() controlplane.Metrics {
	increase := func(metric string) string {
		return "((sum(" + metric + ") - (sum(" + metric + " offset $window) or vector(0))) >= 0)"
	}
	method := func(metric, name, more string) string { return metric + `{grpc_method="` + name + `"` + more + `}` }
	sent := func(name string) string { return method("grpc_server_msg_sent_total", name, "") }
	certify := func(metric, more string) string { return method(metric, "Certify", more) }
	seconds := "grpc_server_handling_seconds"
	return controlplane.Metrics{
		Phase: []controlplane.Metric{
			{Name: "addressMessages", Expr: increase(sent("Get"))},
			{Name: "profileMessages", Expr: increase(sent("GetProfile"))},
			{Name: "endpointUpdates", Expr: increase("endpoints_updates")},
			{Name: "profileUpdates", Expr: increase("profile_updates")},
			{Name: "certificateSeconds", Expr: increase(certify(seconds+"_sum", "")) + " / (" + increase(certify(seconds+"_count", "")) + " > 0)"},
			{Name: "injectedPods", Expr: increase(`proxy_inject_admission_responses_total{skip="false"}`)},
			{Name: "certificates", Expr: increase(certify("grpc_server_handled_total", `,grpc_code="OK"`))},
		},
		Counters: controlplane.Counters{
			Responses: map[convergence.Type]string{
				linkerdproxy.Addresses: "sum(" + sent("Get") + ")",
				linkerdproxy.Profile:   "sum(" + sent("GetProfile") + ")",
			},
			CertificateRequests: "sum(" + certify("grpc_server_started_total", "") + ")",
			Certificates:        "sum(" + certify("grpc_server_handled_total", `,grpc_code="OK"`) + ")",
		},
	}
}
