package main

// controlPlane shows what the control plane and the cluster beneath it need
// while everything rolls out, and afterwards.
func controlPlane() board {
	const component = `component=~"$control_plane"`
	return board{
		uid: "scaler-control-plane", title: "scaler / Control plane at scale",
		about: "What the control plane needs while a mesh rolls out, and afterwards. The figures of a run's record are exact at the edges of phases; these are for seeing when and why.",
		rows: []row{
			{"Runs", []panel{
				{
					title: "Runs and their knobs", unit: "short", draw: values,
					about:   "What was rolled out. A mode is a preset of the knobs: strict is mTLS strict, scope declared, authorization declared. It is scope that makes configurations small, not mutual TLS. GOMAXPROCS, of the control plane, sets istiod's limits.",
					queries: []query{{"", `max by (run, mode, control_plane, pods, services, namespaces, mtls, scope, authz, xds, gomaxprocs) (last_over_time(` + sel("scaler_run_info") + `[$__range]))`}},
				},
				{
					title: "Phases", unit: "short", draw: states,
					about:   "baseline: control plane up, no mesh. rollout: first object created, to converged. settle: belongs to no figure. steady: nothing is touched. probe: changes are made and followed. none: between phases. Every figure of a record belongs to one phase.",
					queries: []query{{"{{run}} {{phase}}", sel("scaler_phase_info", `phase=~"$phase"`)}},
				},
			}},
			{"Cores and memory", []panel{
				{
					title: "Control plane: cores", unit: "suffix: cores", wide: true,
					about:   "Processor seconds used, user and system, per second (controlPlane.PHASE.cores). 1 is one processor busy all the time. Where threads waited for a processor, see below, a peak is a lower bound of the demand.",
					queries: []query{{"{{run}} {{component}}", perSecond(sel("scaler_component_cpu_seconds_total", component), "component")}},
				},
				{
					title: "Control plane: memory", unit: "bytes", wide: true,
					about: "Resident memory (controlPlane.PHASE.memoryBytes), and live heap (heapBytes): what the last garbage collection found in use. After a rollout, resident memory is the collector's high-water mark, not the need. Live heap follows from the collector's goal, goal / (1 + GOGC/100), and is absent where a memory limit has pulled the goal down.",
					queries: []query{
						{"{{run}} resident", gauge(sel("scaler_component_resident_memory_bytes", component))},
						{"{{run}} live heap", phased(`sum by (run, mode) (` + own("go_memstats_next_gc_bytes") + ` / (1 + ` + own("go_gc_gogc_percent") + ` / 100) and ` +
							own("go_gc_gogc_percent") + ` > 0 and ` + own("go_memstats_next_gc_bytes") + ` < 0.9 * ` + own("go_gc_gomemlimit_bytes") + `)`)},
					},
				},
				{
					title: "Threads waiting for a processor", unit: "suffix: threads", wide: true,
					about:   "Threads that were ready to run and waited for a processor, on average. Above zero the machine is the limit: times are upper bounds of the control plane's, peak cores lower bounds of its demand (saturation in a record is the share of a phase in which any waited).",
					queries: []query{{"{{run}} {{component}}", perSecond(sel("scaler_component_waiting_seconds_total"), "component")}},
				},
				{
					title: "Restarts", unit: "short", wide: true,
					about:   "Times that a process of a component took the place of an earlier one (controlPlane.PHASE.restarts). After a restart of the control plane all sidecars connect anew.",
					queries: []query{{"{{run}} {{component}}", gauge(sel("scaler_component_restarts_total"), "component")}},
				},
				{
					title: "All components: cores", unit: "suffix: cores", draw: stacked, wide: true,
					about:   "Cores of the control plane, the cluster and scaler itself. On one machine they take processors from each other: when they add up to all that there are, each would have used more.",
					queries: []query{{"{{run}} {{component}}", perSecond(sel("scaler_component_cpu_seconds_total"), "component")}},
				},
				{
					title: "All components: memory", unit: "bytes", draw: stacked, wide: true,
					about:   "Resident memory of the control plane, the cluster and scaler itself.",
					queries: []query{{"{{run}} {{component}}", gauge(sel("scaler_component_resident_memory_bytes"), "component")}},
				},
			}},
			{"What istiod says of itself (istiod only)", []panel{
				{
					title: "Pushes, by type", unit: "cps", draw: stacked,
					about:   "Responses that istiod sent, per second, answers to requests included (pilot_xds_pushes).",
					queries: []query{{"{{run}} {{type}}", perSecond(own("pilot_xds_pushes"), "type")}},
				},
				{
					title: "Causes of pushes", unit: "cps", draw: stacked,
					about:   "Causes of pushes that istiod counted, per second (pilot_push_triggers). One push may have many; proxy is a forced push to one pod's own sidecar when that pod turns ready.",
					queries: []query{{"{{run}} {{type}}", perSecond(own("pilot_push_triggers"), "type")}},
				},
				{
					title: "Updates received", unit: "cps", draw: stacked,
					about:   "Changes of configuration, endpoints and services that istiod received from the API server, per second (pilot_inbound_updates).",
					queries: []query{{"{{run}} {{type}}", perSecond(own("pilot_inbound_updates"), "type")}},
				},
				{
					title: "Debounce, mean", unit: "s", limit: 10,
					about:   "From the first event to the push being queued, on average; building the push context is part of it (pilot_debounce_time; own.PHASE.debounceSeconds). istiod waits for 100 ms of quiet, and at most 10 s, the line.",
					queries: []query{{"{{run}}", mean(own, "pilot_debounce_time")}},
				},
				{
					title: "Queue to sent, mean", unit: "s",
					about: "From a push being queued to its last send having returned, on average (pilot_proxy_convergence_time; own.PHASE.convergenceSeconds), and the part of it spent in the queue. Acknowledgements and first connects are in neither. What a sidecar sees of a change is compared with debounce plus this.",
					queries: []query{
						{"{{run}} queue to sent", mean(own, "pilot_proxy_convergence_time")},
						{"{{run}} in the queue", mean(own, "pilot_proxy_queue_time")},
					},
				},
				{
					title: "Push context, mean", unit: "s",
					about:   "Time to build the view of the whole mesh that pushes are made from, on average (pilot_pushcontext_init_seconds). It grows with services and configuration.",
					queries: []query{{"{{run}}", mean(own, "pilot_pushcontext_init_seconds")}},
				},
				{
					title: "Injections", unit: "cps",
					about:   "Pods that the injection webhook has changed, per second (sidecar_injection_success_total).",
					queries: []query{{"{{run}}", perSecond(own("sidecar_injection_success_total"))}},
				},
				{
					title: "Injection, mean", unit: "s",
					about:   "Time of an injection within istiod, on average (sidecar_injection_time_seconds). It is part of pod admission.",
					queries: []query{{"{{run}}", mean(own, "sidecar_injection_time_seconds")}},
				},
				{
					title: "Services known", unit: "short",
					about:   "Services that istiod knows of (pilot_services), those of the system included.",
					queries: []query{{"{{run}}", gauge(own("pilot_services"))}},
				},
			}},
			{"The cluster beneath", []panel{
				{
					title: "API server: requests", unit: "reqps", draw: stacked,
					about:   "Requests that the API server answered, per second, watches left out.",
					queries: []query{{"{{run}} {{verb}}", perSecond(sel("apiserver_request_total", `job="kube-apiserver"`, `verb!~"WATCH|CONNECT"`), "verb")}},
				},
				{
					title: "API server: time of a request, mean", unit: "s",
					about:   "Time that the API server took for a request, on average, watches left out; webhooks are part of it.",
					queries: []query{{"{{run}} {{verb}}", meanOf("apiserver_request_duration_seconds", "verb", `job="kube-apiserver"`, `verb!~"WATCH|CONNECT"`)}},
				},
				{
					title: "etcd: proposals", unit: "cps",
					about:   "Writes that etcd has taken over, per second: every object made and every status changed is one.",
					queries: []query{{"{{run}}", perSecond(sel("etcd_server_proposals_committed_total"))}},
				},
			}},
		},
	}
}
