package main

import "slices"

// dataPlane shows what a pod and its sidecar wait for.
func dataPlane() board {
	connected := sum(metric("scaler_sidecars", `state="connected"`))
	return board{
		uid: "scaler-data-plane", title: "scaler / Data plane and proxies",
		about: "What pods and their proxies wait for until they can serve: sidecars, or in ambient mode ztunnels, the proxies of nodes. A simulated sidecar does all that a proxy does toward the control plane, and carries no traffic; a real one is Envoy with its agent.",
		rows: []row{
			thirds("Start of a pod",
				values("Whole runs", unit("s"),
					"Latencies of a run from its start to the end of the chosen time: p50 and p99. All that there were: pods of churn and faults, and certificates of renewals and storms, are among them. The record's are of the rollout alone, with what was lost; docs/reference/figures.md states from when to when each is.",
					slices.Concat(
						overall("admission", "scaler_pod_admission_seconds"),
						overall("certificate", "scaler_certificate_issuance_seconds"),
						overall("complete", "scaler_complete_configuration_seconds"),
						overall("ready", "scaler_pod_ready_seconds"))...),
				lines("Pods", figures("pods.created", "pods.ready"),
					"Pods of the run that were seen in scaler's watch, and those seen Ready. A pod is held unready until its sidecar is complete and certified, or until the ztunnel of its node holds it and its certificate.",
					sum(metric("scaler_pods"), "state")),
				lines("Pod admission", figures("latencies.podAdmission"),
					"From the create being sent, of the pod or of the object whose controller makes it, to the pod being seen. It holds the injection webhook and the controller's own pace.",
					quantiles("scaler_pod_admission_seconds")...),
				lines("Pod ready", figures("latencies.podReady"),
					"From a pod being first seen to it being seen Ready: what an application waits.",
					quantiles("scaler_pod_ready_seconds")...),
			),
			thirds("Simulated proxies",
				lines("Pods, by the state of their proxy", figures("pods.connected", "pods.complete", "pods.converged"),
					"Pods whose proxy has reached a state: connected, complete, converged. Real sidecars are among them. In ambient mode each pod counts as the ztunnel of its node.",
					sum(metric("scaler_sidecars"), "state")),
				lines("Becoming complete", unit("cps"),
					"Simulated sidecars that became complete, per second: all that was expected when they first asked was received and acknowledged. 0 in ambient mode, where ztunnels start before the mesh.",
					rate(metric("scaler_complete_configuration_seconds_count"))),
				lines("Not converged yet", unit("short"),
					"Pods whose proxy has connected and does not hold exactly what is expected of it now. It returns to zero when the mesh has converged; in steady it stays there.",
					combine(connected, "-", sum(metric("scaler_sidecars", `state="converged"`)))),
				lines("Certificate", figures("latencies.certificate"),
					"From the signing request being sent to the chain being received and verified. Renewals and storms are here too.",
					quantiles("scaler_certificate_issuance_seconds")...),
				completeConfiguration,
				lines("Received by a proxy", unit("binBps"),
					"Bytes of discovery responses that a simulated sidecar, or the proxy of a node, received per second, on average over all of them that have connected.",
					ratio(rate(metric("scaler_xds_response_bytes_total")), sum(metric("scaler_proxies")))),
			),
			thirds("Real sidecars (runs with --real-sidecars; 0 in others)",
				lines("Real sidecars", unit("short"),
					"Envoys that run as processes beside the simulated sidecars (sidecars.real.count), 0 in a run without any.",
					orZero(aggregate("count", envoys("scaler_component_resident_memory_bytes")+" > 0"))),
				lines("Memory, mean", unit("bytes"),
					"Resident memory of a real sidecar's Envoy and of its agent, on average over those that run. Envoy's grows with the configuration that it is sent.",
					orZero(aggregate("avg", envoys("scaler_component_resident_memory_bytes")+" > 0")).as("Envoy"),
					orZero(aggregate("avg", agents("scaler_component_resident_memory_bytes")+" > 0")).as("agent")),
				lines("Cores, all together", unit("suffix: cores"),
					"Processor time of all real sidecars' Envoys, and of their agents, per second.",
					orZero(rate(envoys("scaler_component_cpu_seconds_total"))).as("Envoys"),
					orZero(rate(agents("scaler_component_cpu_seconds_total"))).as("agents")),
			),
		},
	}
}

// The processes of real sidecars, by the names under which a run samples them.
var (
	envoys = of(`component=~"envoy .+"`)
	agents = of(`component=~"agent .+"`)
)

// orZero shows 0 where a run has no value, so that a panel is not empty.
func orZero(q query) query {
	return combine(q, "or 0 *", aggregate("max", metric("scaler_run_info")))
}

// overall returns the queries for two quantiles, each a column, of everything that a
// native histogram has counted in a run. Its counts begin at 0 with the run, so the last
// values cover the whole run.
func overall(column, histogram string) []query {
	var all []query
	for _, q := range []float64{0.5, 0.99} {
		all = append(all, quantile(q, aggregate("sum", last(metric(histogram)))).as(column+" "+percentile(q)))
	}
	return all
}
