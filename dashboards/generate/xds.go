package main

// streamLimit is the rate at which istiod admits new streams; it depends on its
// GOMAXPROCS alone (features.RequestLimit in pilot/pkg/features).
var streamLimit = `max by (run, mode) (clamp_max(15 + 5 * ` + own("go_sched_gomaxprocs_threads", `job="istiod"`) + `, 100))`

// reviewLimit is the rate of token reviews that istiod's client of the API
// server is limited to, after a burst of 160.
const reviewLimit = 80

// xdsAndCertificates shows what goes between the control plane and the sidecars.
func xdsAndCertificates() board {
	return board{
		uid: "scaler-xds-certificates", title: "scaler / xDS and certificates",
		about: "What goes between the control plane and the sidecars, as the simulated sidecars see it, with what the control plane says beside it.",
		rows: []row{
			{"Responses", []panel{
				{
					title: "Responses, by type", unit: "cps", draw: stacked,
					about:   "Discovery responses that simulated sidecars received, per second (xds.responses).",
					queries: []query{{"{{run}} {{type}}", perSecond(sel("scaler_xds_responses_total"), "type")}},
				},
				{
					title: "Bytes, by type", unit: "Bps", draw: stacked,
					about:   "Bytes of those responses as messages, before any compression (xds.bytes).",
					queries: []query{{"{{run}} {{type}}", perSecond(sel("scaler_xds_response_bytes_total"), "type")}},
				},
				{
					title: "Wasted responses", unit: "percentunit",
					about:   "The share of responses that held resources, each of them equal to what the sidecar held already (xds.wastedResponses): work that changed nothing.",
					queries: []query{{"{{run}}", phased(sumRate(sel("scaler_xds_wasted_responses_total")) + ` / (` + sumRate(sel("scaler_xds_responses_total")) + ` > 0)`)}},
				},
				{
					title: "Acknowledged and rejected", unit: "cps",
					about: "Responses that sidecars accepted (ACK) and rejected (NACK), per second (xds.acks, xds.nacks). Any rejected one means that the control plane sent what its sidecars cannot use.",
					queries: []query{
						{"{{run}} accepted", perSecond(sel("scaler_xds_acks_total"))},
						{"{{run}} rejected", perSecond(sel("scaler_xds_nacks_total"))},
					},
				},
				{
					title: "Size of a response, mean", unit: "bytes",
					about:   "Bytes of a response on average, by type, as sidecars received it.",
					queries: []query{{"{{run}} {{type}}", phased(sumRate(sel("scaler_xds_response_bytes_total"), "type") + ` / (` + sumRate(sel("scaler_xds_responses_total"), "type") + ` > 0)`)}},
				},
				{
					title: "Time of a push in istiod, mean (istiod only)", unit: "s",
					about: "Time that istiod took to generate and send a response, on average (pilot_xds_push_time), answers to requests included; and the part of it that sending took (pilot_xds_send_time).",
					queries: []query{
						{"{{run}} {{type}}", mean(own, "pilot_xds_push_time", "type")},
						{"{{run}} sending", mean(own, "pilot_xds_send_time")},
					},
				},
			}},
			{"Streams", []panel{
				{
					title: "Sidecars", unit: "short",
					about:   "Simulated sidecars that have reached a state. connected: has been. complete: held, and had acknowledged, all that was expected when it first asked. converged: holds exactly what is expected now, and has its certificate.",
					queries: []query{{"{{run}} {{state}}", gauge(sel("scaler_sidecars"), "state")}},
				},
				{
					title: "Sidecars first served, and istiod's limit", unit: "cps",
					about: "Sidecars that got their first response, per second, and the rate at which istiod admits new streams: min(15 + 5 x GOMAXPROCS, 100), after which it refuses and they try again with backoff. At the limit, waiting for it is what completeConfiguration measures. Control planes other than istiod have no such line.",
					queries: []query{
						{"{{run}} served", perSecond(sel("scaler_first_configuration_seconds_count"))},
						{"{{run}} limit", phased(streamLimit)},
					},
				},
				{
					title: "Refusals and reconnects", unit: "cps",
					about: "Streams that the control plane refused before any response, and streams opened by sidecars that had lost one, per second (xds.refusals, xds.reconnects).",
					queries: []query{
						{"{{run}} refused", perSecond(sel("scaler_xds_refusals_total"))},
						{"{{run}} again", perSecond(sel("scaler_xds_reconnects_total"))},
					},
				},
				{
					title: "Connect", unit: "s",
					about:   "From dialling to TLS and HTTP/2 settings done, every attempt (latencies.connect). Quantiles of the moment; those of the record are of a whole phase.",
					queries: quantiles("scaler_connect_seconds"),
				},
				{
					title: "First configuration", unit: "s",
					about:   "From a sidecar's first request to its first response (latencies.firstConfiguration). Waiting for the control plane's limiter and for the check of the token lie here, not in connect.",
					queries: quantiles("scaler_first_configuration_seconds"),
				},
				{
					title: "Complete configuration", unit: "s",
					about:   "From a sidecar's first request to the last resource that was expected at that moment being received and acknowledged (latencies.completeConfiguration).",
					queries: quantiles("scaler_complete_configuration_seconds"),
				},
			}},
			{"Changes followed to the sidecars (phase probe)", []panel{
				{
					title: "Push, by kind of change: p50", unit: "s",
					about:   "From a change to a sidecar concerned having it (latencies.push): route and policy from the API write having returned, endpoint changes from the EndpointSlice being seen in scaler's own watch. 100 ms of it are istiod's debounce. Needs --probes above 0.",
					queries: []query{{"{{run}} {{kind}}", quantile(0.5, sel("scaler_push_seconds"), "kind")}},
				},
				{
					title: "Push, by kind of change: p99", unit: "s",
					about:   "The same at the 99th percentile. A sidecar without a change after 30 s has lost it, which the record counts and no quantile here holds.",
					queries: []query{{"{{run}} {{kind}}", quantile(0.99, sel("scaler_push_seconds"), "kind")}},
				},
				{
					title: "Propagation to the last sidecar: p50", unit: "s",
					about:   "From a change to the last of all sidecars concerned having it (latencies.propagation.KIND.last), one observation for each change.",
					queries: []query{{"{{run}} {{kind}}", quantile(0.5, sel("scaler_propagation_last_seconds"), "kind")}},
				},
			}},
			{"Certificates", []panel{
				{
					title: "Certificate requests", unit: "cps", limit: reviewLimit,
					about:   "Certificate signing requests that were answered or failed, per second (certificates.issued, .attempts). istiod has the API server review a token for each, through a client limited to 80 a second, the line, after a burst of 160: that is this limit, not the CA's speed.",
					queries: []query{{"{{run}} {{outcome}}", perSecond(sel("scaler_certificate_requests_total"), "outcome")}},
				},
				{
					title: "Issuance", unit: "s",
					about:   "From the signing request being sent to the chain being received and verified (latencies.certificate); making the key, getting the token and waiting are no part of it.",
					queries: quantiles("scaler_certificate_issuance_seconds"),
				},
				{
					title: "Token request", unit: "s",
					about:   "From a pod-bound token being requested to it being received, scaler's own waiting left out (latencies.token).",
					queries: quantiles("scaler_token_request_seconds"),
				},
				{
					title: "Token reviews at the API server", unit: "reqps", limit: reviewLimit,
					about:   "Reviews of tokens, per second: istiod asks for one for each certificate and for each stream, at most 80 a second, the line, after a burst of 160.",
					queries: []query{{"{{run}}", perSecond(sel("apiserver_request_total", `job="kube-apiserver"`, `resource="tokenreviews"`))}},
				},
				{
					title: "CSRs at istiod (istiod only)", unit: "cps",
					about: "Signing requests that istiod received, and certificates that it issued, per second.",
					queries: []query{
						{"{{run}} received", perSecond(own("citadel_server_csr_count"))},
						{"{{run}} issued", perSecond(own("citadel_server_success_cert_issuance_count"))},
					},
				},
				{
					title: "Root certificate expires in (istiod only)", unit: "s",
					about:   "Time until istiod's root certificate expires. When it has, no sidecar can connect.",
					queries: []query{{"{{run}}", phased(`min by (run, mode) (` + own("citadel_server_root_cert_expiry_seconds") + `)`)}},
				},
			}},
		},
	}
}
