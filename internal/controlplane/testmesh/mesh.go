package testmesh

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The mesh's own settings, in ConfigMaps with the label configLabel.
const (
	configLabel = "testmesh.scaler.mesh/config"

	meshConfig   = "mesh"   // data: isolation = none or namespace
	routeConfig  = "route"  // data: service, marker
	policyConfig = "policy" // data: service, marker
)

// mesh is what the control plane has read of the cluster.
type mesh struct {
	isolated bool      // sidecars are configured for their own namespace, and only it may call them
	services []service // sorted by namespace and name
}

// service is a Kubernetes Service with its endpoints.
type service struct {
	namespace, name string
	ports           []port
	route, policy   string // markers; "" = none
}

// port is one port of a service.
type port struct {
	name           string
	number, target uint32
	endpoints      []netip.AddrPort // that are ready, sorted
}

// Names of resources, in the manner of Open Service Mesh.
const (
	outboundListener = "outbound-listener"
	inboundListener  = "inbound-listener"
	outboundRoutes   = "rds-outbound"
	inboundRoutes    = "rds-inbound"
)

// clusterName names a service port as its callers see it, and its load assignment.
func clusterName(namespace, service string, number int) string {
	return namespace + "/" + service + "|" + strconv.Itoa(number)
}

// localName names a service port as its own sidecars see it.
func localName(namespace, service string, number int) string {
	return clusterName(namespace, service, number) + "|local"
}

// certificateName names the secret with the certificate of a service account.
func certificateName(namespace, account string) string {
	return "service-cert:" + namespace + "/" + account
}

// rootName names the secret with the roots that a service is verified with, or that a
// service verifies its callers with.
func rootName(direction, namespace, service string) string {
	return "root-cert-for-mtls-" + direction + ":" + namespace + "/" + service
}

// domain is how a service port is called.
func domain(namespace, service string, number int) string {
	return service + "." + namespace + ":" + strconv.Itoa(number)
}

// scope are the services that a sidecar is configured for.
func (m *mesh) scope(w workload) []service {
	if !m.isolated {
		return m.services
	}
	return slices.DeleteFunc(slices.Clone(m.services), func(s service) bool { return s.namespace != w.namespace })
}

// own is the service that a workload belongs to; one without ports if there is none
// yet.
func (m *mesh) own(w workload) service {
	for _, s := range m.services {
		if s.namespace == w.namespace && s.name == w.service {
			return s
		}
	}
	return service{namespace: w.namespace, name: w.service}
}

func (m *mesh) sort() {
	slices.SortFunc(m.services, func(a, b service) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
}
