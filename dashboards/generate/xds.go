package main

import (
	"slices"

	"scaler.mesh/scaler/internal/controlplane"
)

// xdsAndCertificates shows the traffic between the control plane and the sidecars.
func xdsAndCertificates() board {
	return board{
		uid: "scaler-xds-certificates", title: "scaler / xDS and certificates",
		about: "What goes between the control plane and the proxies (sidecars, or in ambient mode ztunnels and waypoints), as the simulated ones see it, and what the control plane itself reports about it.",
		rows: []row{
			thirds("Responses", slices.Concat([]panel{
				stack("Responses, by type", rateOf("xds.responses.TYPE"),
					"Discovery responses that simulated proxies received, per second. Address and Authorization are those of ztunnels.",
					rate(metric("scaler_xds_responses_total"), "type")),
				stack("Bytes, by type", rateOf("xds.bytes.TYPE"),
					"Bytes of those responses as messages, before any compression.",
					rate(metric("scaler_xds_response_bytes_total"), "type")),
				lines("Wasted responses", shareOf("xds.wastedResponses"),
					"The share of responses that held resources, each of them equal to what the proxy held already: work that changed nothing.",
					ratio(rate(metric("scaler_xds_wasted_responses_total")), rate(metric("scaler_xds_responses_total")))),
				lines("Acknowledged and rejected", rateOf("xds.acks", "xds.nacks"),
					"Responses that proxies accepted (ACK) and rejected (NACK), per second. Any rejected one means that the control plane sent what its proxies cannot use.",
					rate(metric("scaler_xds_acks_total")).as("accepted"),
					rate(metric("scaler_xds_nacks_total")).as("rejected")),
				lines("Size of a response, mean", unit("bytes"),
					"Bytes of a response on average, by type, as proxies received it.",
					ratio(rate(metric("scaler_xds_response_bytes_total"), "type"), rate(metric("scaler_xds_responses_total"), "type"))),
			}, ownPanels(controlplane.PanelResponses))...),
			thirds("Streams",
				lines("Pods, by the state of their proxy", figures("pods.connected", "pods.complete", "pods.converged"),
					"Pods whose proxy has reached a state, real sidecars among them; in ambient mode each pod counts as the ztunnel of its node. connected: has been. complete: held, and had acknowledged, all that was expected when it first asked. converged: holds exactly what is expected now, and has its certificate.",
					sum(metric("scaler_sidecars"), "state")),
				lines("Proxies first served, and istiod's limit", unit("cps"),
					"Proxies that got their first response, per second, and the rate at which istiod admits new streams: min(15 + 5 x GOMAXPROCS, 100) unless it is set otherwise, after which it refuses and they try again with backoff. At the limit, waiting for it is what completeConfiguration measures. Streams of proxies that come back count toward the limit and are not among the served. Control planes other than istiod have no such line.",
					rate(metric("scaler_first_configuration_seconds_count")).as("served"),
					knownLimit("scaler_limit_streams_per_second")),
				lines("Refusals and reconnects", rateOf("xds.refusals", "xds.reconnects"),
					"Streams that the control plane refused before any response, and streams opened by proxies that had lost one, per second.",
					rate(metric("scaler_xds_refusals_total")).as("refused"),
					rate(metric("scaler_xds_reconnects_total")).as("again")),
				lines("Connect", figures("latencies.connect"),
					"From dialling to TLS and HTTP/2 settings done, every attempt. Quantiles of the moment; those of the record are of a whole phase.",
					quantiles("scaler_connect_seconds")...),
				lines("First configuration", figures("latencies.firstConfiguration"),
					"From a proxy's first request to its first response. Waiting for the control plane's limiter and for the check of the token lie here, not in connect.",
					quantiles("scaler_first_configuration_seconds")...),
				completeConfiguration,
			),
			thirds("Changes followed to the proxies (phase probe)",
				lines("Push, by kind of change: p50", figures("latencies.push.KIND"),
					"From a change to a proxy concerned having it: route, policy and service from the API write having returned, endpoint changes from the EndpointSlice, or in ambient mode the pod, being seen in scaler's own watch. 100 ms of it are istiod's debounce. Needs --probes above 0.",
					quantile(0.5, rate(metric("scaler_push_seconds"), "kind"))),
				lines("Push, by kind of change: p99", figures("latencies.push.KIND"),
					"The same at the 99th percentile. A proxy without a change after 30 s has lost it, which the record counts and no quantile here holds.",
					quantile(0.99, rate(metric("scaler_push_seconds"), "kind"))),
				lines("Propagation to the last proxy: p50", figures("latencies.propagation.KIND.last"),
					"From a change to the last of all proxies concerned having it, one observation for each change that reached them all.",
					quantile(0.5, rate(metric("scaler_propagation_last_seconds"), "kind"))),
			),
			thirds("Certificates", slices.Concat([]panel{
				lines("Certificate requests", rateOf("certificates.issued", "certificates.attempts"),
					"Certificate signing requests that were answered or failed, per second. istiod has the API server review a token for each, and another for each stream, through one client that is limited, by default to 80 a second after a burst of 160: in a rollout that is 40 certificates a second, in a storm 80. See token reviews.",
					rate(metric("scaler_certificate_requests_total"), "outcome")),
				lines("Issuance", figures("latencies.certificate"),
					"From the signing request being sent to the chain being received and verified; making the key, getting the token and waiting are no part of it. Renewals and storms are here too.",
					quantiles("scaler_certificate_issuance_seconds")...),
				lines("Token request", figures("latencies.token"),
					"From a pod-bound token being requested to it being received, scaler's own waiting left out.",
					quantiles("scaler_token_request_seconds")...),
				lines("Token reviews at the API server", unit("reqps"),
					"Reviews of tokens, per second: istiod asks for one for each certificate and for each stream, after a burst of 160 at most as many as the limit. "+born,
					rate(metric("apiserver_request_total", `job="kube-apiserver"`, `resource="tokenreviews"`)),
					knownLimit("scaler_limit_token_reviews_per_second")),
			}, ownPanels(controlplane.PanelCertificates))...),
		},
	}
}

// completeConfiguration is shown on two dashboards.
var completeConfiguration = lines("Complete configuration", figures("latencies.completeConfiguration"),
	"From a sidecar's first request to the last resource that was expected at that moment being received and acknowledged. Absent in ambient mode, where ztunnels start before the mesh.",
	quantiles("scaler_complete_configuration_seconds")...)
