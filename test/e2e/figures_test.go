//go:build e2e

package e2e

import (
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// figures returns the paths of all figures that a completed rollout without probes
// has, in its record.
func figures() []string {
	paths := []string{
		"apiVersion", "kind", "name", "status", "started", "finished",
		"scenario.mesh.pods", "scenario.mesh.services", "scenario.mesh.namespaces", "scenario.mesh.topology", "scenario.mesh.fanOut", "scenario.mesh.seed",
		"scenario.mesh.mode", "scenario.mesh.sidecars.xds", "scenario.load.arrival", "environment.processor.model", "environment.processor.before.speed",
		"environment.cpus", "environment.memoryBytes", "environment.kernel", "environment.kubernetes", "environment.kwok", "environment.scaler",
		"environment.controlPlane.name", "environment.controlPlane.version", "environment.controlPlane.replicas",
		"environment.controlPlane.gomaxprocs", "environment.controlPlane.settings",
		"environment.knobs.mtls", "environment.knobs.scope", "environment.knobs.authz",
		"pods.requested", "arrival.achievedPerSecond",
		"xds.acks", "xds.nacks", "xds.attempts", "xds.refusals", "xds.reconnects", "xds.wastedResponses", "xds.perSidecar.responses", "xds.perSidecar.bytes",
		"certificates.issued", "certificates.failed", "certificates.attempts", "certificates.perSecond",
		"own.note", "own.rollout.debounceSeconds", "own.rollout.convergenceSeconds", "own.rollout.pushes", "own.steady.pushes",
		"instrument.cores", "instrument.memoryBytes", "instrument.bytesPerSidecar", "instrument.openFiles",
	}
	for _, phase := range []string{"0", "1", "2", "3"} {
		for _, figure := range []string{"name", "start", "end", "seconds", "endedBy"} {
			paths = append(paths, "phases."+phase+"."+figure)
		}
	}
	for _, kind := range []string{"CDS", "EDS", "LDS", "RDS", "ECDS"} {
		paths = append(paths, "xds.responses."+kind, "xds.bytes."+kind)
	}
	for _, latency := range []string{
		"latencies.podAdmission", "latencies.podReady", "latencies.podReadyWithoutKwok", "latencies.certificate", "latencies.key", "latencies.token", "latencies.clientWait",
		"latencies.connect", "latencies.connectTotal", "latencies.firstConfiguration", "latencies.completeConfiguration", "instrument.lag",
	} {
		for _, figure := range []string{"unit", "count", "lost", "min", "mean", "p50", "p90", "p99", "p999", "max"} {
			paths = append(paths, latency+"."+figure)
		}
	}
	for _, program := range programs() {
		for _, phase := range measured {
			paths = append(paths, program+"."+string(phase)+".saturation", program+"."+string(phase)+".restarts")
		}
	}
	return append(paths, positive()...)
}

// positive returns the paths of those that cannot be zero.
func positive() []string {
	paths := []string{
		"environment.cpus", "environment.memoryBytes", "arrival.achievedPerSecond", "certificates.perSecond",
		"xds.acks", "xds.attempts", "xds.configurationBytes.mean", "xds.configurationBytes.max",
		"xds.responses.CDS", "xds.responses.EDS", "xds.responses.LDS", "xds.responses.RDS",
		"instrument.cores", "instrument.memoryBytes", "instrument.bytesPerSidecar", "instrument.openFiles", "instrument.lag.max",
		"latencies.certificate.min", "latencies.token.min", "latencies.connect.min", "latencies.completeConfiguration.min",
		"controlPlane.steady.heapBytes.collected",
	}
	for _, program := range programs() {
		for _, phase := range measured {
			for _, figure := range []string{"cpuSeconds", "cores.mean", "cores.peak", "memoryBytes.mean", "memoryBytes.peak", "memoryBytes.end"} {
				paths = append(paths, program+"."+string(phase)+"."+figure)
			}
			// Before its first collection a program has no live heap: what a
			// program of the cluster allocates before the baseline may not be
			// enough for one.
			if phase != record.PhaseBaseline || program == "controlPlane" {
				paths = append(paths, program+"."+string(phase)+".heapBytes.mean", program+"."+string(phase)+".heapBytes.end")
			}
		}
	}
	return paths
}

// measured are the phases of such a run that have figures.
var measured = []record.PhaseName{record.PhaseBaseline, record.PhaseRollout, record.PhaseSteady}

// programs returns the paths of what is measured of each program.
func programs() []string {
	return []string{
		"controlPlane", "cluster.etcd", "cluster.kube-apiserver", "cluster.kube-controller-manager", "cluster.kube-scheduler", "cluster.kwok",
	}
}

// at returns the value at a path in a JSON document; nil if there is none.
func at(document any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch d := document.(type) {
		case map[string]any:
			document = d[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(d) {
				return nil
			}
			document = d[i]
		default:
			return nil
		}
	}
	return document
}
