package istio

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/record"
)

// uncheckedKinds states what objects of a kind change that Wants does not include.
var uncheckedKinds = map[string]record.Unchecked{
	"AuthorizationPolicy":   record.UncheckedInbound,
	"PeerAuthentication":    record.UncheckedInbound,
	"RequestAuthentication": record.UncheckedInbound,
	"VirtualService":        record.UncheckedRoutes,
	"HTTPRoute":             record.UncheckedRoutes,
	"GRPCRoute":             record.UncheckedRoutes,
	"TLSRoute":              record.UncheckedRoutes,
	"TCPRoute":              record.UncheckedRoutes,
	"DestinationRule":       record.UncheckedClusters,
	"BackendTLSPolicy":      record.UncheckedClusters,
	"WorkloadEntry":         record.UncheckedEntries,
	"EnvoyFilter":           record.UncheckedPatches,
	"WasmPlugin":            record.UncheckedPatches,
	"TrafficExtension":      record.UncheckedPatches,
	"Telemetry":             record.UncheckedPatches,
	"ProxyConfig":           record.UncheckedPatches,
}

// maxExamples bounds the examples of one part.
const maxExamples = 3

// uncheckedParts gathers what is not checked.
type uncheckedParts struct{ all []record.NotChecked }

func (u *uncheckedParts) add(what record.Unchecked, count int, example string) {
	i := slices.IndexFunc(u.all, func(n record.NotChecked) bool { return n.What == what })
	if i < 0 {
		i = len(u.all)
		u.all = append(u.all, record.NotChecked{What: what})
	}
	u.all[i].Count += count
	if example != "" && len(u.all[i].Examples) < maxExamples {
		u.all[i].Examples = append(u.all[i].Examples, example)
	}
}

// notChecked returns the parts of the mesh that Wants does not include.
func (r *replayed) notChecked() []record.NotChecked {
	var u uncheckedParts
	u.add(record.UncheckedNames, 0, "")
	if served := r.mesh.Served(); served == nil || served.MeshConfig == nil {
		u.add(record.UncheckedMeshConfig, 0, "")
	}
	for _, v := range r.services {
		id := v.Namespace + "/" + v.Name
		switch {
		case v.external():
			u.add(record.UncheckedExternal, 1, id)
		default:
			what := record.UncheckedListeners
			if v.headless() {
				what = record.UncheckedHeadless
			}
			for _, p := range v.Spec.Ports {
				if kindOf(p) != routed && p.Protocol != corev1.ProtocolUDP {
					u.add(what, 1, id+":"+p.Name)
				}
			}
		}
		if v.some() || v.doubles != nil || v.sliced && v.waypoint >= 0 {
			example := id
			if v.distributed != "" {
				example += " by " + v.distributed
			}
			u.add(record.UncheckedEndpoints, 1, example)
		}
	}
	for i, w := range r.mesh.Workloads {
		switch w.Spec.Proxy {
		case capture.Ambient, capture.Ztunnel, capture.Waypoint:
			if !w.Member() {
				u.add(record.UncheckedAmbient, w.Spec.Replicas, w.ID())
			}
		}
		if w.Spec.Proxy == capture.Gateway {
			u.add(record.UncheckedGateways, w.Spec.Replicas, w.ID())
		}
		e := r.scopes[i]
		if w.Spec.OwnProxyConfig() || !e.redirected {
			u.add(record.UncheckedProxies, 1, w.ID())
		}
		if w.Spec.HasSidecar() && (e.partial || e.ingress) {
			u.add(record.UncheckedScope, 1, e.name+" for "+w.ID())
		}
	}
	for _, e := range r.entries {
		if !r.compared(e) {
			u.add(record.UncheckedEntries, 1, e.host+" of "+e.Namespace+"/"+e.Name)
		}
	}
	machines := r.comparedMachines()
	for _, o := range r.mesh.Objects {
		id := identity(o)
		if what, ok := uncheckedKinds[o.GetKind()]; ok && !slices.Contains(machines, id) {
			u.add(what, 1, id)
		}
	}
	for _, d := range r.mesh.Dangling() {
		u.add(record.UncheckedDangling, 1, d.From+" "+d.Field+" "+d.To)
	}
	return u.all
}
