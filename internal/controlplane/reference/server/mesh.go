package server

import (
	"net/netip"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/convergence"
)

// The objects that configure the mesh in addition to its Services and EndpointSlices
// are ConfigMaps with this label, whose value states which of the kinds they are.
const ConfigLabel = "reference.scaler.mesh/config"

// The values of ConfigLabel, and the keys of data that each may have.
const (
	// MeshConfig holds the Settings of the mesh: "mtls", "scope", "authz".
	// Where it is and what it is called does not matter; of several the last by
	// namespace and name counts.
	MeshConfig = "mesh"
	// WorkloadConfig says of the service of the same namespace and name which
	// service account its pods have, "account", and whom it calls, "calls":
	// "namespace/name", separated by spaces.
	WorkloadConfig = "workload"
	// RouteConfig names the route to a service of the same namespace,
	// "service", as "name" says.
	RouteConfig = "route"
	// PolicyConfig adds a policy to a service of the same namespace, "service",
	// that is called "name" and is evaluated but not enforced; with EveryService, to
	// every service of the mesh.
	PolicyConfig = "policy"
)

// EveryService stands for all services where a policy names its service.
const EveryService = "*"

// Settings are the knobs of a mesh; the zero value is the most permissive one.
type Settings struct {
	StrictMTLS    bool // plaintext is refused
	DeclaredScope bool // a sidecar is configured for the services that it calls alone
	DeclaredAuthz bool // a service may be called only by those that declare it
}

// Port is one port of a service.
type Port struct {
	Name   string
	Number uint32 // of the service
	Target uint32 // of its pods
}

// Service is one service and the workload behind it.
type Service struct {
	Namespace, Name string
	Ports           []Port
	Account         string   // service account of its pods; "" means that it is not known
	Calls           []string // workloads, as Workload names them
	Routes          []string // names that its route is to have
	Policies        []string // names of policies that are evaluated only
}

// Endpoint is one endpoint of a service port.
type Endpoint struct {
	Addr   netip.AddrPort
	Health convergence.Health
}

// Mesh is all that the structure of the configuration follows from: everything
// but endpoints.
type Mesh struct {
	Settings Settings
	Services []Service       // sorted by Workload, without duplicates
	Hosts    map[string]Host // by HostWorkload
}

// TrustDomain is the trust domain of all identities.
const TrustDomain = "cluster.local"

// SPIFFE returns the identity of a service account.
func SPIFFE(namespace, account string) string {
	return "spiffe://" + TrustDomain + "/ns/" + namespace + "/sa/" + account
}

// Workload names the workload behind a service: the node cluster of its
// sidecars.
func Workload(namespace, service string) string { return namespace + "/" + service }

// The names of resources, which tests and the adapter's expectations share.
const (
	OutboundListener = "outbound"
	InboundListener  = "inbound"
)

// Cluster names the cluster of a service port and its load assignment.
func Cluster(namespace, service, port string) string {
	return Workload(namespace, service) + ":" + port
}

// Domains returns the domains by which a service port is called in HTTP; first
// reports that it is the service's first port, which may be left out.
func Domains(namespace, service, number string, first bool) []string {
	host := service + "." + namespace
	if first {
		return []string{host, host + ":" + number}
	}
	return []string{host + ":" + number}
}

// Route names the route configuration of a workload's sidecars: one for all of
// the mesh, or one of its own where its scope is what it declared.
func Route(declaredScope bool, workload string) string {
	if declaredScope {
		return OutboundListener + "/" + workload
	}
	return OutboundListener
}

// Health returns the health of an endpoint with these conditions; ok is false for one that is
// not sent. An endpoint that terminates drains for as long as it serves.
func Health(ready, serving, terminating bool) (health convergence.Health, ok bool) {
	switch {
	case terminating:
		return convergence.Draining, serving
	case ready:
		return convergence.Healthy, true
	default:
		return convergence.Unhealthy, true
	}
}

func (s Service) workload() string { return Workload(s.Namespace, s.Name) }

// targets returns the ports on which the workload is called, sorted.
func (s Service) targets() []uint32 {
	var targets []uint32
	for _, p := range s.Ports {
		targets = append(targets, p.Target)
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// Sort puts the services in the order that a Mesh needs.
func (m *Mesh) Sort() {
	slices.SortFunc(m.Services, func(a, b Service) int { return strings.Compare(a.workload(), b.workload()) })
}

// service finds a service by its workload; nil if there is none.
func (m Mesh) service(workload string) *Service {
	i, ok := slices.BinarySearchFunc(m.Services, workload, func(s Service, w string) int { return strings.Compare(s.workload(), w) })
	if !ok {
		return nil
	}
	return &m.Services[i]
}

// callees returns the services that a sidecar of s is configured for.
func (m Mesh) callees(s Service) []Service {
	var callees []Service
	for _, workload := range slices.Compact(slices.Sorted(slices.Values(s.Calls))) {
		if callee := m.service(workload); callee != nil {
			callees = append(callees, *callee)
		}
	}
	return callees
}

// callers returns the identities that declare to call each workload, sorted.
func (m Mesh) callers() map[string][]string {
	callers := map[string][]string{}
	for _, s := range m.Services {
		if s.Account == "" {
			continue
		}
		for _, callee := range s.Calls {
			callers[callee] = append(callers[callee], SPIFFE(s.Namespace, s.Account))
		}
	}
	for callee, identities := range callers {
		slices.Sort(identities)
		callers[callee] = slices.Compact(identities)
	}
	return callers
}
