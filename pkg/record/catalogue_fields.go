package record

// Field is a part of a record that is no figure of the catalogue: the specification of the run, its environment, and
// descriptions of figures.
type Field struct {
	// Path is its path in the JSON, with the placeholders of Figure.Path; [] is each element of a list, and
	// LATENCY the path of any latency. It includes everything below it, except what Fields and Figures list.
	Path       string
	Definition string
}

// Fields are the parts of a run that are no figures, and the top-level parts that contain figures, whose paths have no dot. A test
// checks that every field of Run is a figure or one of these.
var Fields = []Field{
	{"apiVersion", "`scaler.mesh/v1`."},
	{"kind", "`Run`."},
	{"schema", "The [version](record-schema.md#versions) within `apiVersion`."},
	{"name", "The name of the run and of its folder."},
	{"status", "How the run ended: see [the record](definitions/record.md#the-record)."},
	{"reason", "Why it failed or was interrupted."},
	{"started", "Wall-clock time of the start of the run, before the cluster is started."},
	{"finished", "Wall-clock time at which all was taken down again; absent while a run lasts, and if it was killed."},
	{"scenario", "What was asked of this run, with all defaults and what scaler chose, as a [scenario](scenario.md) that `-f` reads; secrets of the environment are masked."},
	{"repeat", "Which of several like runs it is, from 1; absent where there is one."},
	{"parts", "What a synthetic mesh contains in addition to uniform services, at this size: see [profile](definitions/conventions.md#knobs-and-profile)."},
	{"mesh", "The [captured mesh](definitions/capture.md#captured-meshes) that was rolled out, and what of it is not checked."},
	{"environment", "Machine, versions and knobs; [the machine's speed](definitions/machine.md#speed-of-the-machine); [the control plane](definitions/control-plane.md#resources-of-the-control-plane) with its settings and limits; [dilation](definitions/dilation.md#time-dilation); the settings of the [cluster](embedded-cluster.md), or the [existing cluster](definitions/existing-clusters.md#existing-clusters) that the run used."},
	{"warnings", "What limits the accuracy, by path of the figure: see [warnings](definitions/record.md#warnings)."},
	{"own", "The control plane's own metrics by phase, under the names that its adapter gives them: see [what programs need](definitions/control-plane.md#resources-of-the-control-plane)."},

	{"phases", "The measured windows of the run, in order of time: see [phases](definitions/phases.md#phases)."},
	{"phases[].name", "Name of the phase."},
	{"phases[].start", "Wall-clock time of its start, for comparing the run with other data."},
	{"phases[].end", "Wall-clock time of its end; absent while it lasts."},
	{"phases[].seconds", "Its length on the monotonic clock. With time dilation that of the modelled machine."},
	{"phases[].endedBy", "Why it ended: `duration`, `converged`, `quiescent`, `timeout`, `interrupt` or `failure`."},
	{"phases[].differences", "The resources by which sidecars differed from what is expected of them, where it ended by [quiescence](definitions/phases.md#quiescent): `type`, name (`resource`), number of `sidecars`, one of them (`example`) with what differs (`detail`), and the `object` that explains it, if one is known. At most 50."},
	{"phases[].moreDifferences", "How many further ones there were."},

	{"controlPlane", "What the control plane used, by phase."},
	{"cluster", "What the programs of the cluster used, by program and phase."},
	{"replicas", "Each of several [replicas](definitions/programs.md#replicas) of the control plane, and how evenly streams are spread over them. Absent where it is one program."},
	{"latencies", "Distributions of times. The summary of each has [these figures](#figures-of-a-latency); the whole is in `latencies/`."},
	{"LATENCY.unit", "`s`."},
	{"LATENCY.clamped", "Of `count`: observations outside 0 to 24 h, which count as that bound. With more than a few of them the latency is [not known](definitions/conventions.md#latencies)."},
	{"LATENCY.unmet", "Observations that are neither in `count` nor in `lost`: of sidecars that never held what is expected of them while the control plane is [at rest](definitions/phases.md#quiescent)."},
	{"xds", "What was sent over ADS: counts of the whole run, those of faults and churn among them."},
	{"xds.configurationBytes.note", "Why it is absent, or what it does not cover."},
	{"certificates", "Counts of the whole run, those of faults and churn among them; see [certificates and tokens](definitions/connections.md#certificates-and-tokens)."},
	{"certificates.note", "Why counts are absent, or what they do not cover."},
	{"certificates.storm.sidecars", "How many sidecars were asked to request a new certificate."},
	{"certificates.storm.issued", "The certificates that they received."},
	{"certificates.storm.attempts", "Their requests that ended."},
	{"certificates.storm.boundBy", "The `limit` of the control plane that explains the length of the storm: what it allows per second (`perSecond`) and before that `atOnce`, and the time in which it allows the certificates issued (`seconds`). The storm took that long, or up to a quarter longer. Absent when no limit is known or none explains the length."},
	{"sidecars", "What proxies themselves used: see [real sidecars](definitions/programs.md#what-programs-need)."},
	{"sidecars.real.count", "How many of the run's pods have a real sidecar."},
	{"sidecars.real.envoy", "Version of their Envoy."},
	{"sidecars.real.source", "Where the Envoy came from; in an existing cluster the image of the sidecars."},
	{"sidecars.real.each[]", "Each real sidecar: `pod`, `service`, unexpected ends after which it was started again (`crashes`), the use of Envoy alone (`proxy`) and of its `agent`, and in an existing cluster its `node` and what its [`container`](definitions/existing-clusters.md#existing-clusters) used, by phase."},
	{"change", "[Changes at a rate](definitions/changes.md#changes-at-a-rate), and when they arrived."},
	{"change.kind", "What is changed, as requested."},
	{"cycle", "[A steady mesh with reconnects](definitions/changes.md#a-steady-mesh-with-reconnects)."},
	{"cycle.sidecars", "Simulated sidecars that were connected when it began."},
	{"cycle.ageSeconds", "The age at which the control plane closes a connection."},
	{"cycle.renewalSeconds", "The time after which a sidecar renews its certificate; 0 = never."},
	{"cycle.renewals", "Certificates that were to be renewed in the phase: sidecars x `ageSeconds` / `renewalSeconds`; none where sidecars renew more often than that, as they do so in steady too."},
	{"churn", "Pods that were replaced at a rate: see [faults and churn](definitions/faults.md#faults-and-churn)."},
	{"faults", "What was broken, and the recovery: see [faults and churn](definitions/faults.md#faults-and-churn). In `run.json` a list, in order of time."},
	{"faults.FAULT.name", "The fault, as requested."},
	{"faults.FAULT.phase", "Its phase, as requested."},
	{"faults.FAULT.at", "The moment at which it began, wall-clock time."},
	{"faults.FAULT.replicas.PROGRAM.serves", "Whether the replica serves when the mesh has converged again."},
	{"upgrade", "The move to another version of the control plane: see [upgrades](definitions/upgrades.md#upgrades)."},
	{"upgrade.from", "The old version: the name of its `program` in the samples, its `version` and its `revision`."},
	{"upgrade.to", "The new version, likewise."},
	{"upgrade.stages.STAGE.moved", "What a wave moved: `kind` is `nodes` (the proxies of nodes) or `waypoints`, or of a [captured mesh](../guides/upgrade.md#a-captured-mesh) `revision`, `namespace` or `tag`, with its `name`, its `namespaces` and `pods`."},
	{"upgrade.room.coresStage", "The stage of the greatest `peakCores`."},
	{"upgrade.room.memoryStage", "The stage of the greatest `peakMemoryBytes`."},
	{"pods", "How many pods reached which state."},
	{"proxies", "The proxies that serve the pods of their node, where pods have none of their own: see [data plane](definitions/data-plane.md#data-plane)."},
	{"proxies.configurationBytes.note", "Why it is absent, or what it does not cover."},
	{"proxies.waypoints.configurationBytes.note", "Why it is absent, or what it does not cover."},
	{"proxies.name", "What such a proxy is called, as in ztunnel."},
	{"proxies.namespaces", "The namespaces whose pods they serve, where the pods of others have sidecars."},
	{"arrival", "How pods arrived: see [pods](definitions/pods.md#pods)."},
	{"instrument", "scaler measured by itself: see [the instrument](definitions/instrument.md#the-instrument)."},
	{"instrument.floor", "Figures measured against a control plane that costs next to nothing, by their paths: see [calibration](definitions/instrument.md#calibration)."},
	{"instrument.workers[]", "With `--workers` above 1, each process that ran simulated sidecars; the first is scaler itself, unless they are pods of a cluster. The sidecars that it started (`sidecars`), and of that process alone `cores`, `memoryBytes`, `openFiles` and `lag`. A worker states its lag once a second: a rollout that is shorter may have none. Its `clock` is [compared with scaler's](definitions/instrument.md#the-instrument)."},
}
