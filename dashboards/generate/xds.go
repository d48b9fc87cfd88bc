package main

// streamLimit is the rate at which istiod admits new streams; it depends on its
// GOMAXPROCS alone (features.RequestLimit in pilot/pkg/features).
var streamLimit = aggregate("max", "clamp_max(15 + 5 * "+own("go_sched_gomaxprocs_threads", `job="istiod"`)+", 100)")

// reviewLimit is the rate of token reviews that istiod's client of the API
// server is limited to, after a burst of 160.
const reviewLimit = 80

// xdsAndCertificates shows what goes between the control plane and the sidecars.
func xdsAndCertificates() board {
	return board{
		uid: "scaler-xds-certificates", title: "scaler / xDS and certificates",
		about: "What goes between the control plane and the sidecars, as the simulated sidecars see it, with what the control plane says beside it.",
		rows: []row{
			thirds("Responses",
				stack("Responses, by type", "cps",
					"Discovery responses that simulated sidecars received, per second (xds.responses).",
					rate(metric("scaler_xds_responses_total"), "type")),
				stack("Bytes, by type", "Bps",
					"Bytes of those responses as messages, before any compression (xds.bytes).",
					rate(metric("scaler_xds_response_bytes_total"), "type")),
				lines("Wasted responses", "percentunit",
					"The share of responses that held resources, each of them equal to what the sidecar held already (xds.wastedResponses): work that changed nothing.",
					ratio(rate(metric("scaler_xds_wasted_responses_total")), rate(metric("scaler_xds_responses_total")))),
				lines("Acknowledged and rejected", "cps",
					"Responses that sidecars accepted (ACK) and rejected (NACK), per second (xds.acks, xds.nacks). Any rejected one means that the control plane sent what its sidecars cannot use.",
					rate(metric("scaler_xds_acks_total")).as("accepted"),
					rate(metric("scaler_xds_nacks_total")).as("rejected")),
				lines("Size of a response, mean", "bytes",
					"Bytes of a response on average, by type, as sidecars received it.",
					ratio(rate(metric("scaler_xds_response_bytes_total"), "type"), rate(metric("scaler_xds_responses_total"), "type"))),
				lines("Time of a push in istiod, mean (istiod only)", "s",
					"Time that istiod took to generate and send a response, on average (pilot_xds_push_time), answers to requests included; and the part of it that sending took (pilot_xds_send_time).",
					mean(own, "pilot_xds_push_time", "type"),
					mean(own, "pilot_xds_send_time").as("sending")),
			),
			thirds("Streams",
				lines("Sidecars", "short",
					"Simulated sidecars that have reached a state. connected: has been. complete: held, and had acknowledged, all that was expected when it first asked. converged: holds exactly what is expected now, and has its certificate.",
					sum(metric("scaler_sidecars"), "state")),
				lines("Sidecars first served, and istiod's limit", "cps",
					"Sidecars that got their first response, per second, and the rate at which istiod admits new streams: min(15 + 5 x GOMAXPROCS, 100), after which it refuses and they try again with backoff. At the limit, waiting for it is what completeConfiguration measures. Control planes other than istiod have no such line.",
					rate(metric("scaler_first_configuration_seconds_count")).as("served"),
					streamLimit.as("limit")),
				lines("Refusals and reconnects", "cps",
					"Streams that the control plane refused before any response, and streams opened by sidecars that had lost one, per second (xds.refusals, xds.reconnects).",
					rate(metric("scaler_xds_refusals_total")).as("refused"),
					rate(metric("scaler_xds_reconnects_total")).as("again")),
				lines("Connect", "s",
					"From dialling to TLS and HTTP/2 settings done, every attempt (latencies.connect). Quantiles of the moment; those of the record are of a whole phase.",
					quantiles("scaler_connect_seconds")...),
				lines("First configuration", "s",
					"From a sidecar's first request to its first response (latencies.firstConfiguration). Waiting for the control plane's limiter and for the check of the token lie here, not in connect.",
					quantiles("scaler_first_configuration_seconds")...),
				completeConfiguration,
			),
			thirds("Changes followed to the sidecars (phase probe)",
				lines("Push, by kind of change: p50", "s",
					"From a change to a sidecar concerned having it (latencies.push): route and policy from the API write having returned, endpoint changes from the EndpointSlice being seen in scaler's own watch. 100 ms of it are istiod's debounce. Needs --probes above 0.",
					quantile(0.5, rate(metric("scaler_push_seconds"), "kind"))),
				lines("Push, by kind of change: p99", "s",
					"The same at the 99th percentile. A sidecar without a change after 30 s has lost it, which the record counts and no quantile here holds.",
					quantile(0.99, rate(metric("scaler_push_seconds"), "kind"))),
				lines("Propagation to the last sidecar: p50", "s",
					"From a change to the last of all sidecars concerned having it (latencies.propagation.KIND.last), one observation for each change.",
					quantile(0.5, rate(metric("scaler_propagation_last_seconds"), "kind"))),
			),
			thirds("Certificates",
				lines("Certificate requests", "cps",
					"Certificate signing requests that were answered or failed, per second (certificates.issued, .attempts). istiod has the API server review a token for each, through a client limited to 80 a second, the line, after a burst of 160: that is this limit, not the CA's speed.",
					rate(metric("scaler_certificate_requests_total"), "outcome")).limited(reviewLimit),
				lines("Issuance", "s",
					"From the signing request being sent to the chain being received and verified (latencies.certificate); making the key, getting the token and waiting are no part of it.",
					quantiles("scaler_certificate_issuance_seconds")...),
				lines("Token request", "s",
					"From a pod-bound token being requested to it being received, scaler's own waiting left out (latencies.token).",
					quantiles("scaler_token_request_seconds")...),
				lines("Token reviews at the API server", "reqps",
					"Reviews of tokens, per second: istiod asks for one for each certificate and for each stream, at most 80 a second, the line, after a burst of 160.",
					rate(metric("apiserver_request_total", `job="kube-apiserver"`, `resource="tokenreviews"`))).limited(reviewLimit),
				lines("CSRs at istiod (istiod only)", "cps",
					"Signing requests that istiod received, and certificates that it issued, per second.",
					rate(own("citadel_server_csr_count")).as("received"),
					rate(own("citadel_server_success_cert_issuance_count")).as("issued")),
				lines("Root certificate expires in (istiod only)", "s",
					"Time until istiod's root certificate expires. When it has, no sidecar can connect.",
					aggregate("min", own("citadel_server_root_cert_expiry_seconds"))),
			),
		},
	}
}

// completeConfiguration is of interest on two dashboards.
var completeConfiguration = lines("Complete configuration", "s",
	"From a sidecar's first request to the last resource that was expected at that moment being received and acknowledged (latencies.completeConfiguration).",
	quantiles("scaler_complete_configuration_seconds")...)
