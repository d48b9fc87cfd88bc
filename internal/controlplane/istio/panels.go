package istio

import "scaler.mesh/scaler/internal/controlplane"

// panels are istiod's own metrics on the dashboards.
func panels() []controlplane.Panel {
	rate := func(metric string, by ...string) controlplane.PanelSeries {
		return controlplane.PanelSeries{Value: controlplane.ValueRate, Metric: metric, By: by}
	}
	mean := func(metric string, by ...string) controlplane.PanelSeries {
		return controlplane.PanelSeries{Value: controlplane.ValueMean, Metric: metric, By: by}
	}
	named := func(name string, s controlplane.PanelSeries) controlplane.PanelSeries {
		s.Name = name
		return s
	}
	pushes := rate("pilot_xds_pushes", "type")
	pushes.Matchers = []string{`type!~".+_senderr"`}
	return []controlplane.Panel{
		{
			Place: controlplane.PanelOwn, Title: "Pushes, by type", Unit: "cps", Stack: true,
			About:  "Responses that istiod sent, per second, answers to requests included (pilot_xds_pushes, but for its counts of what could not be sent).",
			Series: []controlplane.PanelSeries{pushes},
		}, {
			Place: controlplane.PanelOwn, Title: "Causes of pushes, by sidecar", Unit: "cps",
			About:  "Causes of pushes that istiod counted, per second (pilot_push_triggers): each counts once for every sidecar that is queued for it, those that then need nothing included, so it grows with pods times changes. proxy is a forced push to one pod's own sidecar when that pod turns ready.",
			Series: []controlplane.PanelSeries{rate("pilot_push_triggers", "type")},
		}, {
			Place: controlplane.PanelOwn, Title: "Updates received", Unit: "cps",
			About:  "Events that istiod received, per second (pilot_inbound_updates). config is every request for a push, those that changes of endpoints (eds) and services (svc) make among them: they do not add up.",
			Series: []controlplane.PanelSeries{rate("pilot_inbound_updates", "type")},
		}, {
			Place: controlplane.PanelOwn, Title: "Debounce, mean", Unit: "s",
			About:  "From the first event to the push being queued, on average; building the push context is part of it (pilot_debounce_time; own.PHASE.debounceSeconds). istiod waits for quiet, by default 100 ms, and for no longer than the limit, by default 10 s, before it looks whether the push before is over.",
			Series: []controlplane.PanelSeries{mean("pilot_debounce_time")}, Limit: "scaler_limit_debounce_seconds",
		}, {
			Place: controlplane.PanelOwn, Title: "Queue to sent, mean", Unit: "s",
			About:  "From a push being queued to its last send having returned, on average (pilot_proxy_convergence_time; own.PHASE.convergenceSeconds); and time in the queue, which is over all that was queued, what then needed no push included, and so no part of the other. Acknowledgements and first connects are in neither. What a sidecar sees of a change is compared with debounce plus this.",
			Series: []controlplane.PanelSeries{named("queue to sent", mean("pilot_proxy_convergence_time")), named("in the queue", mean("pilot_proxy_queue_time"))},
		}, {
			Place: controlplane.PanelOwn, Title: "Push context, mean", Unit: "s",
			About:  "Time to build the view of the whole mesh that pushes are made from, on average (pilot_pushcontext_init_seconds). It grows with services and configuration.",
			Series: []controlplane.PanelSeries{mean("pilot_pushcontext_init_seconds")},
		}, {
			Place: controlplane.PanelOwn, Title: "Injections", Unit: "cps",
			About:  "Reviews of pods that the injection webhook has answered, per second (sidecar_injection_success_total).",
			Series: []controlplane.PanelSeries{rate("sidecar_injection_success_total")},
		}, {
			Place: controlplane.PanelOwn, Title: "Injection, mean", Unit: "s",
			About:  "Time of an injection within istiod, on average (sidecar_injection_time_seconds). It is part of pod admission.",
			Series: []controlplane.PanelSeries{mean("sidecar_injection_time_seconds")},
		}, {
			Place: controlplane.PanelOwn, Title: "Services known", Unit: "short",
			About:  "Services that istiod knows of (pilot_services), those of the system included.",
			Series: []controlplane.PanelSeries{{Value: controlplane.ValueSum, Metric: "pilot_services"}},
		}, {
			Place: controlplane.PanelResponses, Title: "Time of a push in istiod, mean", Unit: "s",
			About:  "Time that istiod took to generate and send a response, on average (pilot_xds_push_time), answers to requests included; and the time that sending took, over all types (pilot_xds_send_time).",
			Series: []controlplane.PanelSeries{mean("pilot_xds_push_time", "type"), named("sending", mean("pilot_xds_send_time"))},
		}, {
			Place: controlplane.PanelCertificates, Title: "CSRs at istiod", Unit: "cps",
			About:  "Signing requests that istiod received, and certificates that it issued, per second.",
			Series: []controlplane.PanelSeries{named("received", rate("citadel_server_csr_count")), named("issued", rate("citadel_server_success_cert_issuance_count"))},
		}, {
			Place: controlplane.PanelCertificates, Title: "Root certificate expires in", Unit: "s",
			About:  "Time until istiod's root certificate expires. When it has, no sidecar can connect.",
			Series: []controlplane.PanelSeries{{Value: controlplane.ValueLeast, Metric: "citadel_server_root_cert_expiry_seconds"}},
		},
	}
}
