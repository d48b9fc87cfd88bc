package record

import "strings"

// Across states whether figures of two control planes mean the same.
type Across struct {
	// Path is the path of a figure in the catalogue, or the beginning of the paths of several figures. Paths of
	// latencies and of the control plane also apply to churn and faults, which put their own path before them.
	// "faults." applies to every fault.
	Path string
	// Means states what the figures measure with a control plane that does not state otherwise; "" = the same
	// with every control plane.
	Means string
}

// AcrossControlPlanes has every figure of the catalogue. Of several paths that fit, the longest counts.
// What means the same with every control plane is measured outside of it: by the kernel, by the API server, by
// what a proxy receives, or by scaler. A test checks that no figure is missing.
var AcrossControlPlanes = []Across{
	{Path: "phases"}, {Path: "arrival"}, {Path: "pods"}, {Path: "cluster"}, {Path: "instrument"}, {Path: "replicas"},
	{Path: "churn"}, {Path: "faults"},
	{Path: "latencies.podReady"}, {Path: "latencies.podReadyWithoutKwok"}, {Path: "latencies.token"}, {Path: "latencies.clientWait"},
	{Path: "latencies.rolloutPush.endpointAdd"}, {Path: "latencies.rolloutPush.endpointRemove"},
	{Path: "latencies.push.endpointAdd"}, {Path: "latencies.push.endpointRemove"},
	{Path: "latencies.pushFromWrite.endpointRemove"},
	{Path: "latencies.propagation.endpointAdd"}, {Path: "latencies.propagation.endpointRemove"},
	{Path: "latencies.pushIntervals"},

	{Path: "controlPlane", Means: "one program, which does all work of the control plane"},
	{Path: "sidecars", Means: "Envoys with their agents"},
	{Path: "proxies", Means: "the proxies of nodes"},
	{Path: "upgrade", Means: "two versions of the control plane"},
	{Path: "change", Means: "the kind of change of scenario.load.changes; " + AcrossObjects},
	{Path: "cycle", Means: "the control plane closes each connection after a time, and certificates are renewed"},
	{Path: "churn.attempts", Means: AcrossADS}, {Path: "churn.refusals", Means: AcrossADS},
	{Path: "faults.attempts", Means: AcrossADS}, {Path: "faults.refusals", Means: AcrossADS},
	{Path: "faults.bytes", Means: AcrossADS}, {Path: "xds", Means: AcrossADS},
	{Path: "certificates", Means: "certificate signing requests, and the certificates that answered them"},
	{Path: "latencies.certificate", Means: "from the certificate signing request on a connection that is up to the chain, received and verified"},
	{Path: "latencies.key", Means: "from the need of a private key to the signed request, in scaler"},
	{Path: "latencies.podAdmission", Means: "from the create request to the pod's being seen, with the control plane's injection webhook"},
	{Path: "latencies.connect", Means: "from the dial to TLS and HTTP/2 settings"},
	{Path: "latencies.connectTotal", Means: "from the first dial to TLS and HTTP/2 settings of the attempt that succeeded"},
	{Path: "latencies.reconnect", Means: "from the loss of the stream to the answers for all types on another one"},
	{Path: "latencies.firstConfiguration", Means: "from the first request on the ADS stream to the first response"},
	{Path: "latencies.completeConfiguration", Means: "from the first request on the ADS stream to the last resource expected at that moment, without certificates"},
	{Path: "latencies.rolloutPush", Means: AcrossHealth}, {Path: "latencies.push.endpointHealth", Means: AcrossHealth},
	{Path: "latencies.pushFromWrite", Means: AcrossHealth}, {Path: "latencies.propagation.endpointHealth", Means: AcrossHealth},
	{Path: "latencies.clusterPart", Means: AcrossHealth},
	{Path: "latencies.push", Means: AcrossObjects}, {Path: "latencies.propagation", Means: AcrossObjects},
	{Path: "latencies.changeWrite", Means: AcrossObjects}, {Path: "latencies.explained", Means: "by the control plane's own metrics"},
}

// What several entries of AcrossControlPlanes mean; see AcrossWith.
const (
	AcrossADS     = "connections, streams and messages of ADS, in the variant of scenario.mesh.sidecars.xds"
	AcrossHealth  = "endpoints that are not ready are sent, too, where the control plane is set so"
	AcrossObjects = "changes of a route or a policy of the mesh, by Istio's objects"
)

// AcrossWith are meanings by the paths of AcrossControlPlanes: of the entries that mean what several do, with another
// meaning in its place. others has it by AcrossADS, AcrossHealth or AcrossObjects.
func AcrossWith(others map[string]string) map[string]string {
	all := map[string]string{}
	for _, a := range AcrossControlPlanes {
		for shared, other := range others {
			if strings.Contains(a.Means, shared) {
				all[a.Path] = strings.Replace(a.Means, shared, other, 1)
			}
		}
	}
	return all
}

// AcrossOf returns the entry of AcrossControlPlanes for a figure's path, which may have names in place of the words
// in capitals.
func AcrossOf(path string) (found Across, ok bool) {
	path = acrossPath(path)
	for _, a := range AcrossControlPlanes {
		if Within(path, a.Path) && len(a.Path) > len(found.Path) {
			found, ok = a, true
		}
	}
	return found, ok
}

// acrossPath returns a path without the name of a fault, and without what comes before latencies and the
// control plane's usage.
func acrossPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "faults."); ok {
		if _, phase, named := strings.Cut(rest, "@"); named { // NAME@PHASE; a name may have dots
			rest = phase
		}
		_, rest, _ = strings.Cut(rest, ".")
		path = "faults." + rest
	}
	for _, above := range []string{"faults.", "churn."} {
		if rest, ok := strings.CutPrefix(path, above); ok && (Within(rest, "latencies") || Within(rest, "controlPlane")) {
			return rest
		}
	}
	return path
}
