package main

// dataPlane shows what a pod and its sidecar wait for.
func dataPlane() board {
	return board{
		uid: "scaler-data-plane", title: "scaler / Data plane and sidecars",
		about: "What pods and their sidecars wait for until they can serve. A simulated sidecar does all that a proxy does toward the control plane, and carries no traffic; a real one is Envoy with its agent.",
		rows: []row{
			{"Start of a pod", []panel{
				{
					title: "Whole runs", unit: "s", draw: values,
					about: "Latencies of all pods of a run, from its start to the end of the chosen time: p50 and p99. The record has them by phase, with what was lost; docs/definitions.md says from where to where each goes.",
					queries: []query{
						{"admission p50", overall(0.5, "scaler_pod_admission_seconds")},
						{"admission p99", overall(0.99, "scaler_pod_admission_seconds")},
						{"certificate p50", overall(0.5, "scaler_certificate_issuance_seconds")},
						{"certificate p99", overall(0.99, "scaler_certificate_issuance_seconds")},
						{"complete p50", overall(0.5, "scaler_complete_configuration_seconds")},
						{"complete p99", overall(0.99, "scaler_complete_configuration_seconds")},
						{"ready p50", overall(0.5, "scaler_pod_ready_seconds")},
						{"ready p99", overall(0.99, "scaler_pod_ready_seconds")},
					},
				},
				{
					title: "Pods", unit: "short",
					about:   "Pods of the run that were seen in scaler's watch, and those seen Ready (pods.created, pods.ready). A pod is held unready until its sidecar is complete and certified.",
					queries: []query{{"{{run}} {{state}}", gauge(sel("scaler_pods"), "state")}},
				},
				{
					title: "Pod admission", unit: "s",
					about:   "From the create being sent, of the pod or of the object whose controller makes it, to the pod being seen (latencies.podAdmission). It holds the injection webhook and the controller's own pace.",
					queries: quantiles("scaler_pod_admission_seconds"),
				},
				{
					title: "Pod ready", unit: "s",
					about:   "From a pod being first seen to it being seen Ready (latencies.podReady): what an application waits.",
					queries: quantiles("scaler_pod_ready_seconds"),
				},
			}},
			{"Simulated sidecars", []panel{
				{
					title: "Sidecars", unit: "short",
					about:   "Simulated sidecars that have reached a state: connected, complete, converged.",
					queries: []query{{"{{run}} {{state}}", gauge(sel("scaler_sidecars"), "state")}},
				},
				{
					title: "Becoming complete", unit: "cps",
					about:   "Sidecars that became complete, per second: all that was expected when they first asked was received and acknowledged.",
					queries: []query{{"{{run}}", perSecond(sel("scaler_complete_configuration_seconds_count"))}},
				},
				{
					title: "Not converged yet", unit: "short",
					about:   "Sidecars that have connected and do not hold exactly what is expected of them now. It returns to zero when the mesh has converged; in steady it stays there.",
					queries: []query{{"{{run}}", phased(`sum by (run, mode) (` + sel("scaler_sidecars", `state="connected"`) + `) - sum by (run, mode) (` + sel("scaler_sidecars", `state="converged"`) + `)`)}},
				},
				{
					title: "Certificate", unit: "s",
					about:   "From the signing request being sent to the chain being received and verified (latencies.certificate).",
					queries: quantiles("scaler_certificate_issuance_seconds"),
				},
				{
					title: "Complete configuration", unit: "s",
					about:   "From a sidecar's first request to the last resource that was expected at that moment being received and acknowledged (latencies.completeConfiguration).",
					queries: quantiles("scaler_complete_configuration_seconds"),
				},
				{
					title: "Received by a sidecar", unit: "Bps",
					about:   "Bytes of discovery responses that a sidecar received per second, on average over those that have connected.",
					queries: []query{{"{{run}}", phased(sumRate(sel("scaler_xds_response_bytes_total")) + ` / (sum by (run, mode) (` + sel("scaler_sidecars", `state="connected"`) + `) > 0)`)}},
				},
			}},
			{"Real sidecars (runs with --real-sidecars; 0 in others)", []panel{
				{
					title: "Real sidecars", unit: "short",
					about:   "Envoys that run as processes beside the simulated sidecars (sidecars.real.count), 0 in a run without any.",
					queries: []query{{"{{run}}", orZero(`count by (run, mode) (` + sel("scaler_component_resident_memory_bytes", envoys) + `)`)}},
				},
				{
					title: "Memory, mean", unit: "bytes",
					about: "Resident memory of a real sidecar's Envoy and of its agent, on average over those that run. Envoy's grows with the configuration that it is sent.",
					queries: []query{
						{"{{run}} Envoy", orZero(`avg by (run, mode) (` + sel("scaler_component_resident_memory_bytes", envoys) + `)`)},
						{"{{run}} agent", orZero(`avg by (run, mode) (` + sel("scaler_component_resident_memory_bytes", agents) + `)`)},
					},
				},
				{
					title: "Cores, all together", unit: "suffix: cores",
					about: "Processor time of all real sidecars' Envoys, and of their agents, per second.",
					queries: []query{
						{"{{run}} Envoys", orZero(sumRate(sel("scaler_component_cpu_seconds_total", envoys)))},
						{"{{run}} agents", orZero(sumRate(sel("scaler_component_cpu_seconds_total", agents)))},
					},
				},
			}},
		},
	}
}

// The processes of real sidecars, by the names under which a run samples them.
const (
	envoys = `component=~"envoy .+"`
	agents = `component=~"agent .+"`
)

// orZero is 0 where a run has nothing of the kind, so that a panel says so.
func orZero(expr string) string {
	return phased(expr + ` or 0 * max by (run, mode) (` + sel("scaler_run_info") + `)`)
}

// overall is a quantile of all that a native histogram has counted in a run.
// Its counts begin at 0 with the run, so the last are those of all of it.
func overall(q float64, metric string) string {
	return "histogram_quantile(" + number(q) + ", sum by (run, mode) (last_over_time(" + sel(metric) + "[$__range])))"
}
