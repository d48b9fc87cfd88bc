package main

import "slices"

// born explains what rates of the programs' own counters leave out: such a series does
// not exist before its first count.
const born = "What a series had counted when it was first scraped is in no rate."

// knownLimit returns the query for a limit of the control plane, with its configured
// value, if scaler knows it.
func knownLimit(name string) query { return aggregate("max", metric(name)).as("limit") }

// controlPlane shows the needs of the control plane and the cluster during the rollout,
// and afterwards.
func controlPlane() board {
	goal, gogc, limit := own("go_memstats_next_gc_bytes"), own("go_gc_gogc_percent"), own("go_gc_gomemlimit_bytes")
	outside := own("go_memstats_sys_bytes") + " - " + own("go_memstats_heap_sys_bytes")
	// The same query as in package recorder, with the same conditions.
	liveHeap := aggregate("sum", own("go_gc_heap_live_bytes")+" or ("+
		goal+" / (1 + "+gogc+" / 100) and "+gogc+" > 0"+
		" and "+goal+" > 4 * 1024 * 1024 * "+gogc+" / 100"+
		" and "+goal+" + "+outside+" < 0.9 * "+limit+")")
	answered := of(`job="kube-apiserver"`, `verb!~"WATCH|CONNECT"`)
	return board{
		uid: "scaler-control-plane", title: "scaler / Control plane at scale",
		about: "What the control plane needs while a mesh rolls out, and afterwards. The figures of a run's record are exact at the edges of phases; these are for seeing when and why.",
		rows: slices.Concat([]row{
			thirds("Runs",
				values("Runs and their knobs", unit("short"),
					"What was rolled out. A mode is a preset of the knobs: strict is mTLS strict, scope declared, authorization declared. It is scope that makes configurations small, not mutual TLS. GOMAXPROCS, of the control plane, sets istiod's limits.",
					aggregate("max", last(metric("scaler_run_info")), "control_plane", "pods", "services", "namespaces", "mtls", "scope", "authz", "xds", "gomaxprocs")),
				states("Phases", unit("short"),
					"baseline: control plane up, no mesh. rollout: first object created, to converged. settle: belongs to no figure. steady: nothing is touched. probe: changes are made and followed. Nothing is drawn between phases. Every figure of a record belongs to one phase.",
					phaseNumbers()),
			),
			halves("Cores and memory",
				lines("Control plane: cores", figures("controlPlane.PHASE.cores"),
					"Processor seconds used, user and system, per second. 1 is one processor busy all the time. Where threads waited for a processor, see below, a peak is a lower bound of the demand. A point is a mean over four scrapes or more, the record's peak over 1 s.",
					rate(process("scaler_component_cpu_seconds_total"), "component")),
				lines("Control plane: memory", figures("controlPlane.PHASE.memoryBytes", "controlPlane.PHASE.heapBytes"),
					"Resident memory, and live heap: what the last garbage collection found in use. After a rollout, resident memory is the collector's high-water mark, not the need. Live heap follows from the collector's goal, goal / (1 + GOGC/100), and is absent where the goal is the smallest there is, or a memory limit has pulled it down.",
					sum(process("scaler_component_resident_memory_bytes")).as("resident"),
					liveHeap.as("live heap")),
				lines("Threads waiting for a processor", unit("suffix: threads"),
					"Threads that were ready to run and waited for a processor, on average. Well above zero the processors given are the limit: times are upper bounds of the control plane's, peak cores lower bounds of its demand (saturation in a record is the share of a phase in which any waited).",
					rate(metric("scaler_component_waiting_seconds_total"), "component")),
				lines("Restarts", figures("controlPlane.PHASE.restarts"),
					"Times that a process of a component took the place of an earlier one, since the run began, not the phase. After a restart of the control plane all sidecars connect anew.",
					sum(metric("scaler_component_restarts_total"), "component")),
				stack("All components: cores", unit("suffix: cores"),
					"Cores of the control plane, the cluster and scaler itself, not of the Prometheus that records. On one machine they take processors from each other: when they add up to nearly all that there are, each would have used more.",
					rate(metric("scaler_component_cpu_seconds_total"), "component")),
				stack("All components: memory", unit("bytes"),
					"Resident memory of the control plane, the cluster and scaler itself.",
					sum(metric("scaler_component_resident_memory_bytes"), "component")),
			),
		}, ownRows(), []row{
			thirds("The cluster beneath",
				stack("API server: requests", unit("reqps"),
					"Requests that the API server answered, per second, watches left out.",
					rate(answered("apiserver_request_total"), "verb")),
				lines("API server: time of a request, mean", unit("s"),
					"Time that the API server took for a request, on average, watches left out; webhooks are part of it.",
					mean(answered, "apiserver_request_duration_seconds", "verb")),
				lines("etcd: proposals", unit("cps"),
					"Writes that etcd has taken over, per second: every object made and every status changed is one.",
					rate(metric("etcd_server_proposals_committed_total"))),
			),
		}),
	}
}
