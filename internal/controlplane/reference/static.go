package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// Size is the size of a mesh without a cluster. Its services and their pods
// are those of topology.Build with these numbers.
type Size struct{ Pods, Services int }

// topology returns the mesh itself.
func (s Size) topology() topology.Mesh {
	return topology.Build(topology.Spec{Pods: s.Pods, Services: s.Services}.Defaults())
}

// Validate states what cannot be.
func (s Size) Validate() error {
	if err := (topology.Spec{Pods: s.Pods, Services: s.Services}).Validate(); err != nil {
		return fmt.Errorf("parsing the size of a mesh: %w", err)
	}
	return nil
}

// mesh returns the mesh that the server serves: every pod is a healthy endpoint.
func (s Size) mesh() *server.Static {
	static := &server.Static{Endpoints: map[string][]server.Endpoint{}}
	first := 0
	for _, service := range s.topology().Services {
		described := server.Service{Namespace: service.Namespace, Name: service.Name, Account: service.Account}
		for _, p := range service.Ports {
			described.Ports = append(described.Ports, server.Port{Name: p.Name, Number: uint32(p.Number), Target: uint32(p.Target)})
			cluster := server.Cluster(service.Namespace, service.Name, p.Name)
			for i := range service.Pods {
				static.Endpoints[cluster] = append(static.Endpoints[cluster], server.Endpoint{Addr: podAddress(first+i, p.Target)})
			}
		}
		first += service.Pods
		static.Mesh.Services = append(static.Mesh.Services, described)
	}
	static.Mesh.Sort()
	return static
}

// podAddress returns an address for each pod, of the block for benchmarks (RFC 2544).
func podAddress(index, port int) netip.AddrPort {
	const base = 198<<24 | 18<<16 | 1
	n := uint32(base + index)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), uint16(port))
}

// StaticMesh is a running reference control plane whose mesh no cluster holds:
// the least that stands between a change and its push.
type StaticMesh struct {
	control *ControlPlane
	client  *http.Client // its connection is kept
	Mesh    topology.Mesh
}

// StartStatic starts a StaticMesh of a size. It does not use the options that are about a cluster.
func StartStatic(ctx context.Context, o controlplane.StartOptions, size Size) (*StaticMesh, error) {
	if err := size.Validate(); err != nil {
		return nil, err
	}
	c, err := prepare(o, size)
	if err != nil {
		return nil, err
	}
	if err := c.Restart(ctx); err != nil {
		return nil, err
	}
	s := &StaticMesh{control: c, client: &http.Client{Transport: &http.Transport{}}, Mesh: size.topology()}
	if c.root, err = s.call(ctx, http.MethodGet, "root", nil); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the reference control plane's root: %w", err), c.Life().Stop(interrupt.Uncancelled(ctx)))
	}
	return s, nil
}

// Usage returns a new source that reads what the server uses.
func (s *StaticMesh) Usage() measure.Source { return s.control.Life().Usage() }

// Stop ends the process.
func (s *StaticMesh) Stop(ctx context.Context) error {
	s.client.CloseIdleConnections()
	return s.control.Life().Stop(ctx)
}

// SetFaults makes the server delay pushes and lose some, from now on: a mesh must have
// converged before its updates are lost.
func (s *StaticMesh) SetFaults(ctx context.Context, f server.Faults) error {
	body, err := json.Marshal(f)
	if err == nil {
		_, err = s.call(ctx, http.MethodPut, "faults", body)
	}
	if err != nil {
		return fmt.Errorf("setting the faults of the reference control plane: %w", err)
	}
	return nil
}

// ProxyID returns the id of the proxy of a service's n-th pod.
func (s *StaticMesh) ProxyID(service, pod int) string {
	of := s.Mesh.Services[service]
	return of.Namespace + "/" + of.Name + "-" + strconv.Itoa(pod)
}

// NewProxy returns the simulated proxy of a service's n-th pod. It has no tokens.
func (s *StaticMesh) NewProxy(service, pod int, o controlplane.ProxyOptions, services controlplane.ProxyServices) (proxy.Proxy, error) {
	of, id := s.Mesh.Services[service], s.ProxyID(service, pod)
	spec := proxy.Spec{
		ID: id, NodeID: id,
		Address: address(s.control.ports.secure), ServerName: server.ServerName, RootPEM: s.control.root,
		NodeCluster: server.Workload(of.Namespace, of.Name),
		Identity:    server.SPIFFE(of.Namespace, of.Account),
		Keepalive:   keepalive,
	}
	o.Apply(&spec)
	return authority.NewProxy(spec, services)
}

// Wants is ControlPlane.Wants for the most permissive knobs.
func (s *StaticMesh) Wants(service int) []convergence.Want {
	return s.control.Wants(s.Mesh, controlplane.Modes["permissive"], service)
}

// Endpoints returns the endpoints of every service port at the start, by name as in Want.
func (s *StaticMesh) Endpoints() map[string]convergence.Endpoints {
	all := map[string]convergence.Endpoints{}
	for cluster, endpoints := range s.control.size.mesh().Endpoints {
		all[cluster] = convergence.Endpoints{}
		for _, e := range endpoints {
			all[cluster][e.Addr] = e.Health
		}
	}
	return all
}

// Change makes one change of an endpoint, which concerns every sidecar. It
// returns when the server has taken it, which does not wait for the push.
func (s *StaticMesh) Change(ctx context.Context, change convergence.Change) error {
	body, err := json.Marshal(server.EndpointChange{
		Cluster: change.Service, Addr: change.Addr, Health: change.Health, Absent: change.Absent,
	})
	if err == nil {
		_, err = s.call(ctx, http.MethodPost, "endpoint", body)
	}
	if err != nil {
		return fmt.Errorf("changing an endpoint: %w", err)
	}
	return nil
}

// Dropped returns the number of pushes that the server did not send because of Faults.
func (s *StaticMesh) Dropped(ctx context.Context) (pushes int64, err error) {
	text, err := s.call(ctx, http.MethodGet, "metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("reading the reference control plane's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return 0, fmt.Errorf("reading the reference control plane's metrics: %w", err)
	}
	for _, m := range families["reference_xds_dropped_pushes_total"].GetMetric() {
		pushes += int64(m.GetCounter().GetValue())
	}
	return pushes, nil
}

// Acknowledged returns when a sidecar of every pod has acknowledged everything it was
// sent, of every type of resource, and the server has processed that.
func (s *StaticMesh) Acknowledged(ctx context.Context) error {
	if _, err := s.call(ctx, http.MethodGet, "acknowledged?sidecars="+strconv.Itoa(s.control.size.Pods), nil); err != nil {
		return fmt.Errorf("waiting for all sidecars to acknowledge: %w", err)
	}
	return nil
}

// call sends a request over the connection that is kept.
func (s *StaticMesh) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	url := "http://" + address(s.control.ports.monitoring) + "/" + path
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return httpget.Do(s.client, request)
}
