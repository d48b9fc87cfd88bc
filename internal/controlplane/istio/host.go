package istio

import (
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
)

const (
	hostServiceLabel  = "scaler.mesh/host-service"  // that a workload of this host is part of
	hostWorkloadLabel = "scaler.mesh/host-workload" // its name
	httpPort          = "http"

	// inboundRetries is the number of retries on the routes to a sidecar's own application, after
	// failures before a request was sent (BuildDefaultHTTPInboundRoute of istiod's
	// pilot/pkg/networking/core/route). Outbound routes retry as often, but not because of
	// a status code: a sidecar's 503 reaches the client.
	inboundRetries = 2
)

// hostLabels returns the labels of a workload of this host: its WorkloadEntry's and, as
// they must agree, its proxy's.
func hostLabels(w controlplane.HostWorkload) map[string]string {
	labels := map[string]string{
		hostWorkloadLabel:                     w.Name,
		"security.istio.io/tlsMode":           "istio",
		"service.istio.io/canonical-name":     w.Name,
		"service.istio.io/canonical-revision": "latest",
	}
	if w.Serves != "" {
		labels[hostServiceLabel] = w.Serves
	}
	return labels
}

// HostObjects returns a ServiceEntry for each service, and for a strict one a
// PeerAuthentication and an AuthorizationPolicy; for each workload its service
// account, a Sidecar with its listeners, which bind to its address since nothing
// is intercepted here, and a WorkloadEntry: Kubernetes has no endpoints on
// loopback addresses.
func (c realProxies) HostObjects(services []controlplane.HostService, workloads []controlplane.HostWorkload) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	ports := map[string]controlplane.HostService{}
	for _, s := range services {
		ports[s.Namespace+"/"+s.Name] = s
		objects = append(objects, object("networking.istio.io/v1", "ServiceEntry", s.Namespace, s.Name, map[string]any{
			"hosts":            []any{s.Host},
			"location":         "MESH_INTERNAL",
			"resolution":       "STATIC",
			"ports":            []any{map[string]any{"number": int64(s.Port), "name": httpPort, "protocol": protocol(s)}},
			"workloadSelector": map[string]any{"labels": map[string]any{hostServiceLabel: s.Name}},
		}))
		if s.Strict {
			objects = append(objects, strictness(s)...)
		}
	}
	accounts := map[string]bool{}
	for _, w := range workloads {
		if account := w.Namespace + "/" + w.Account; !accounts[account] {
			accounts[account] = true
			objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": w.Account, "namespace": w.Namespace},
			}})
		}
		objects = append(objects, hostScope(w, ports[w.Namespace+"/"+w.Serves]), hostEntry(w))
	}
	return objects
}

// strictness returns the objects that make one service strict: the mesh's other services keep
// the knobs' mode.
func strictness(s controlplane.HostService) []*unstructured.Unstructured {
	selector := map[string]any{"matchLabels": map[string]any{hostServiceLabel: s.Name}}
	principals := []any{}
	for _, account := range s.Callers {
		principals = append(principals, trustDomain+"/ns/"+s.Namespace+"/sa/"+account)
	}
	allow := map[string]any{"selector": selector, "action": "ALLOW"} // without rules nobody
	if len(principals) > 0 {
		allow["rules"] = []any{map[string]any{"from": []any{map[string]any{"source": map[string]any{"principals": principals}}}}}
	}
	return []*unstructured.Unstructured{
		object("security.istio.io/v1", "PeerAuthentication", s.Namespace, s.Name, map[string]any{
			"selector": selector, "mtls": map[string]any{"mode": "STRICT"},
		}),
		object("security.istio.io/v1", "AuthorizationPolicy", s.Namespace, s.Name, allow),
	}
}

func protocol(s controlplane.HostService) string {
	if s.HTTP2 {
		return "HTTP2"
	}
	return "HTTP"
}

// hostEntry returns the WorkloadEntry of a workload.
func hostEntry(w controlplane.HostWorkload) *unstructured.Unstructured {
	labels := map[string]any{}
	for name, value := range hostLabels(w) {
		labels[name] = value
	}
	spec := map[string]any{"address": w.Address, "labels": labels, "serviceAccount": w.Account}
	if w.Serves != "" {
		spec["ports"] = map[string]any{httpPort: int64(w.ListenPort)}
	}
	entry := object("networking.istio.io/v1", "WorkloadEntry", w.Namespace, w.Name, spec)
	// A workload that serves is found by its entry's own labels.
	entry.SetLabels(hostLabels(w))
	return entry
}

// hostScope returns the Sidecar of a workload: its listeners, and nothing else.
func hostScope(w controlplane.HostWorkload, served controlplane.HostService) *unstructured.Unstructured {
	spec := map[string]any{"workloadSelector": map[string]any{"labels": map[string]any{hostWorkloadLabel: w.Name}}}
	if w.Serves != "" {
		spec["ingress"] = []any{map[string]any{
			"port":            map[string]any{"number": int64(w.ListenPort), "name": httpPort, "protocol": protocol(served)},
			"bind":            w.Address,
			"captureMode":     "NONE",
			"defaultEndpoint": net.JoinHostPort("127.0.0.1", strconv.Itoa(w.AppPort)),
		}}
	}
	var egress []any
	for port, called := range byPort(w.Egress) {
		var hosts []any
		for _, s := range called {
			hosts = append(hosts, s.Namespace+"/"+s.Host)
		}
		egress = append(egress, map[string]any{
			// Only services that have the listener's port are found at it.
			"port":        map[string]any{"number": int64(port), "name": httpPort, "protocol": protocol(called[0])},
			"bind":        w.Address,
			"captureMode": "NONE",
			"hosts":       hosts,
		})
	}
	if egress == nil {
		egress = []any{map[string]any{"hosts": []any{nowhere}}}
	}
	spec["egress"] = egress
	return object("networking.istio.io/v1", "Sidecar", w.Namespace, w.Name, spec)
}

func byPort(services []controlplane.HostService) map[int][]controlplane.HostService {
	all := map[int][]controlplane.HostService{}
	for _, s := range services {
		all[s.Port] = append(all[s.Port], s)
	}
	return all
}
