package main

// born is what rates of the programs' own counters leave out: such a series is not
// there before it has counted.
const born = "What a series had counted when it was first scraped is in no rate."

// knownLimit is a bound of the control plane's own, where scaler knows one, as it is set.
func knownLimit(name string) query { return aggregate("max", metric(name)).as("limit") }

// controlPlane shows what the control plane and the cluster beneath it need
// while everything rolls out, and afterwards.
func controlPlane() board {
	goal, gogc, limit := own("go_memstats_next_gc_bytes"), own("go_gc_gogc_percent"), own("go_gc_gomemlimit_bytes")
	outside := own("go_memstats_sys_bytes") + " - " + own("go_memstats_heap_sys_bytes")
	// As package recorder has it, with the same conditions.
	liveHeap := aggregate("sum", own("go_gc_heap_live_bytes")+" or ("+
		goal+" / (1 + "+gogc+" / 100) and "+gogc+" > 0"+
		" and "+goal+" > 4 * 1024 * 1024 * "+gogc+" / 100"+
		" and "+goal+" + "+outside+" < 0.9 * "+limit+")")
	answered := of(`job="kube-apiserver"`, `verb!~"WATCH|CONNECT"`)
	return board{
		uid: "scaler-control-plane", title: "scaler / Control plane at scale",
		about: "What the control plane needs while a mesh rolls out, and afterwards. The figures of a run's record are exact at the edges of phases; these are for seeing when and why.",
		rows: []row{
			thirds("Runs",
				values("Runs and their knobs", "short",
					"What was rolled out. A mode is a preset of the knobs: strict is mTLS strict, scope declared, authorization declared. It is scope that makes configurations small, not mutual TLS. GOMAXPROCS, of the control plane, sets istiod's limits.",
					aggregate("max", last(metric("scaler_run_info")), "control_plane", "pods", "services", "namespaces", "mtls", "scope", "authz", "xds", "gomaxprocs")),
				states("Phases", "short",
					"baseline: control plane up, no mesh. rollout: first object created, to converged. settle: belongs to no figure. steady: nothing is touched. probe: changes are made and followed. none: between phases. Every figure of a record belongs to one phase.",
					query{expr: inPhase, by: []string{"phase"}}),
			),
			halves("Cores and memory",
				lines("Control plane: cores", "suffix: cores",
					"Processor seconds used, user and system, per second (controlPlane.PHASE.cores). 1 is one processor busy all the time. Where threads waited for a processor, see below, a peak is a lower bound of the demand. A point is a mean over 4 s or more, the record's peak over 1 s.",
					rate(process("scaler_component_cpu_seconds_total"), "component")),
				lines("Control plane: memory", "bytes",
					"Resident memory (controlPlane.PHASE.memoryBytes), and live heap (heapBytes): what the last garbage collection found in use. After a rollout, resident memory is the collector's high-water mark, not the need. Live heap follows from the collector's goal, goal / (1 + GOGC/100), and is absent where the goal is the smallest there is, or a memory limit has pulled it down.",
					sum(process("scaler_component_resident_memory_bytes")).as("resident"),
					liveHeap.as("live heap")),
				lines("Threads waiting for a processor", "suffix: threads",
					"Threads that were ready to run and waited for a processor, on average. Well above zero the processors given are the limit: times are upper bounds of the control plane's, peak cores lower bounds of its demand (saturation in a record is the share of a phase in which any waited).",
					rate(metric("scaler_component_waiting_seconds_total"), "component")),
				lines("Restarts", "short",
					"Times that a process of a component took the place of an earlier one, since the run began (controlPlane.PHASE.restarts are those of a phase). After a restart of the control plane all sidecars connect anew.",
					sum(metric("scaler_component_restarts_total"), "component")),
				stack("All components: cores", "suffix: cores",
					"Cores of the control plane, the cluster and scaler itself, not of the Prometheus that records. On one machine they take processors from each other: when they add up to nearly all that there are, each would have used more.",
					rate(metric("scaler_component_cpu_seconds_total"), "component")),
				stack("All components: memory", "bytes",
					"Resident memory of the control plane, the cluster and scaler itself.",
					sum(metric("scaler_component_resident_memory_bytes"), "component")),
			),
			thirds("What istiod says of itself (istiod only)",
				stack("Pushes, by type", "cps",
					"Responses that istiod sent, per second, answers to requests included (pilot_xds_pushes, but for its counts of what could not be sent). "+born,
					rate(own("pilot_xds_pushes", `type!~".+_senderr"`), "type")),
				lines("Causes of pushes, by sidecar", "cps",
					"Causes of pushes that istiod counted, per second (pilot_push_triggers): each counts once for every sidecar that is queued for it, those that then need nothing included, so it grows with pods times changes. proxy is a forced push to one pod's own sidecar when that pod turns ready. "+born,
					rate(own("pilot_push_triggers"), "type")),
				lines("Updates received", "cps",
					"What istiod was told of, per second (pilot_inbound_updates). config is every request for a push, those that changes of endpoints (eds) and services (svc) make among them: they do not add up. "+born,
					rate(own("pilot_inbound_updates"), "type")),
				lines("Debounce, mean", "s",
					"From the first event to the push being queued, on average; building the push context is part of it (pilot_debounce_time; own.PHASE.debounceSeconds). istiod waits for quiet, by default 100 ms, and for no longer than the limit, by default 10 s, before it looks whether the push before is over.",
					mean(own, "pilot_debounce_time"),
					knownLimit("scaler_limit_debounce_seconds")),
				lines("Queue to sent, mean", "s",
					"From a push being queued to its last send having returned, on average (pilot_proxy_convergence_time; own.PHASE.convergenceSeconds); and time in the queue, which is over all that was queued, what then needed no push included, and so no part of the other. Acknowledgements and first connects are in neither. What a sidecar sees of a change is compared with debounce plus this.",
					mean(own, "pilot_proxy_convergence_time").as("queue to sent"),
					mean(own, "pilot_proxy_queue_time").as("in the queue")),
				lines("Push context, mean", "s",
					"Time to build the view of the whole mesh that pushes are made from, on average (pilot_pushcontext_init_seconds). It grows with services and configuration.",
					mean(own, "pilot_pushcontext_init_seconds")),
				lines("Injections", "cps",
					"Reviews of pods that the injection webhook has answered, per second (sidecar_injection_success_total). "+born,
					rate(own("sidecar_injection_success_total"))),
				lines("Injection, mean", "s",
					"Time of an injection within istiod, on average (sidecar_injection_time_seconds). It is part of pod admission.",
					mean(own, "sidecar_injection_time_seconds")),
				lines("Services known", "short",
					"Services that istiod knows of (pilot_services), those of the system included.",
					sum(own("pilot_services"))),
			),
			thirds("The cluster beneath",
				stack("API server: requests", "reqps",
					"Requests that the API server answered, per second, watches left out.",
					rate(answered("apiserver_request_total"), "verb")),
				lines("API server: time of a request, mean", "s",
					"Time that the API server took for a request, on average, watches left out; webhooks are part of it.",
					mean(answered, "apiserver_request_duration_seconds", "verb")),
				lines("etcd: proposals", "cps",
					"Writes that etcd has taken over, per second: every object made and every status changed is one.",
					rate(metric("etcd_server_proposals_committed_total"))),
			),
		},
	}
}
