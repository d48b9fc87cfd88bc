package osm

import (
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// metrics returns the queries of the controller's own metrics. It reports neither how long a change waits
// nor how many certificates it issued; the injector counts those for bootstrapping.
func metrics() controlplane.Metrics {
	increase := func(metric string) string {
		return "((sum(" + metric + ") - (sum(" + metric + " offset $window) or vector(0))) >= 0)"
	}
	mean := func(metric, labels string) string {
		return increase(metric+"_sum"+labels) + " / (" + increase(metric+"_count"+labels) + " > 0)"
	}
	responses := map[convergence.Type]string{}
	for _, t := range xdsprobe.EnvoyTypesWithSecrets() {
		if t.Name != convergence.ECDS { // it sends none
			responses[t.Name] = fmt.Sprintf("sum(osm_proxy_response_send_success_count{type=%q})", t.URL)
		}
	}
	return controlplane.Metrics{
		Phase: []controlplane.Metric{
			{Name: "configSeconds", Expr: mean("osm_proxy_config_update_time", `{success="true"}`)},
			{Name: "broadcasts", Expr: increase("osm_proxy_broadcast_event_count")},
			{Name: "responses", Expr: increase("osm_proxy_response_send_success_count")},
			{Name: "requests", Expr: increase("osm_proxy_xds_request_count")},
			{Name: "sendErrors", Expr: increase("osm_proxy_response_send_error_count")},
			{Name: "kubernetesEvents", Expr: increase("osm_k8s_api_event_count")},
			{Name: "errors", Expr: increase(`osm_error_err_code_count{job="` + Name + `"}`)},
			{Name: "bootstrapCertificates", Expr: increase("osm_cert_issued_count")},
			{Name: "bootstrapCertificateSeconds", Expr: mean("osm_cert_issued_time", "")},
		},
		Counters: controlplane.Counters{Responses: responses, Connected: "sum(osm_proxy_connect_count)"},
	}
}
