package reference

import (
	"encoding/json"
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
)

// HostObjects returns the service accounts and, for each workload, a ConfigMap with
// its listeners and the endpoints that they lead to.
func (c *ControlPlane) HostObjects(services []controlplane.HostService, workloads []controlplane.HostWorkload) []*unstructured.Unstructured {
	serving := map[string]server.HostService{}
	strict := map[string][]string{} // the callers of those that are
	for _, s := range services {
		described := server.HostService{Name: s.Namespace + "/" + s.Name, Host: s.Host, Port: uint32(s.Port), HTTP2: s.HTTP2}
		for _, w := range workloads {
			if w.Namespace != s.Namespace || w.Serves != s.Name {
				continue
			}
			described.Account = server.SPIFFE(w.Namespace, w.Account)
			if addr, err := netip.ParseAddr(w.Address); err == nil {
				described.Endpoints = append(described.Endpoints, netip.AddrPortFrom(addr, uint16(w.ListenPort)))
			}
		}
		serving[described.Name] = described
		if s.Strict {
			strict[described.Name] = []string{}
			for _, account := range s.Callers {
				strict[described.Name] = append(strict[described.Name], server.SPIFFE(s.Namespace, account))
			}
		}
	}
	var objects []*unstructured.Unstructured
	accounts := map[string]bool{}
	for _, w := range workloads {
		if account := w.Namespace + "/" + w.Account; !accounts[account] {
			accounts[account] = true
			objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": w.Account, "namespace": w.Namespace},
			}})
		}
		host := server.Host{Address: w.Address}
		if w.Serves != "" {
			host.ListenPort, host.AppPort = uint32(w.ListenPort), uint32(w.AppPort)
			host.HTTP2 = serving[w.Namespace+"/"+w.Serves].HTTP2
			host.Callers, host.Strict = strict[w.Namespace+"/"+w.Serves]
		}
		for _, e := range w.Egress {
			host.Egress = append(host.Egress, serving[e.Namespace+"/"+e.Name])
		}
		text, err := json.Marshal(host)
		if err != nil {
			continue // numbers and strings alone
		}
		objects = append(objects, config(server.HostConfig, w.Namespace, w.Name, map[string]any{"host": string(text)}))
	}
	return objects
}
