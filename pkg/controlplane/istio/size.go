package istio

import (
	"strconv"
	"strings"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/topology"
)

// sizes predicts the bytes of one sidecar's resources from what they are made
// of: so much for the resource, so much for each part, and as many bytes for
// each letter of a name as the name occurs. The numbers were fitted by least
// squares to what this version sent for 8 meshes, in testdata/sizes; where the
// residuals vanish they are whole. What is not known before a mesh exists is
// taken at its mean: how long cluster IPs and pods' addresses are in letters.
type sizes struct {
	knobs   controlplane.Knobs
	own     topology.Service
	callers []topology.Service // of own
}

func newSizes(mesh topology.Mesh, knobs controlplane.Knobs, service int) sizes {
	s := sizes{knobs: knobs, own: mesh.Services[service]}
	for _, i := range callers(mesh)[service] {
		s.callers = append(s.callers, mesh.Services[i])
	}
	return s
}

// letters of a service's name and namespace. Its account is called as it is.
func letters(s topology.Service) float64 { return float64(len(s.Name) + len(s.Namespace)) }

// inboundCluster is the cluster of a port of the workload's own.
func (s sizes) inboundCluster() float64 { return 202 + 2*letters(s.own) }

// cluster is an outbound cluster of a host with so many letters in name and
// namespace.
func cluster(letters float64, port int) float64 {
	return 922 + 6*letters + 4*digits(port)
}

// accounts is what a cluster has more when its endpoints have an identity: the
// SPIFFE URI of their service account.
func accounts(letters float64) float64 { return 35 + letters }

// http2 is what a cluster has more when its port's protocol says HTTP/2.
const http2 = 148

// endpoints are a load assignment of so many pods.
func endpoints(cluster string, s topology.Service) float64 {
	return noEndpoints(cluster) + 9.46 + float64(s.Pods)*(124.98+1.68*letters(s))
}

func noEndpoints(cluster string) float64 { return 2 + float64(len(cluster)) }

// outboundListener is the listener of an HTTP port on any address. It carries
// the proxy's own name, for its statistics.
func (s sizes) outboundListener(port int) float64 {
	return 2405.3 + 3.33*digits(port) + letters(s.own)
}

// opaqueListener is the listener of a TCP port on a service's address.
func opaqueListener(b beside, port int) float64 {
	return 230 + 2*float64(len(b.address)+len(b.host)) + 3*digits(port)
}

// route is a route configuration but for its virtual hosts.
const route = 76.23

// virtualHost is a service's part of it: there are more domains where the proxy
// is in the same namespace.
func (s sizes) virtualHost(callee topology.Service) float64 {
	bytes := 412.03 + 6.74*float64(len(callee.Name)) + 6.46*float64(len(callee.Namespace))
	if callee.Namespace == s.own.Namespace {
		bytes += 7.01
	}
	return bytes
}

// besideHost is the virtual host of a service that is no part of the mesh.
func besideHost(b beside) float64 { return 611 - route + float64(len(b.address)) }

// inboundListener is the listener of what reaches the workload. Strict mutual
// TLS leaves out the filter chains that take plaintext; policies are repeated
// in each chain that is left.
func (s sizes) inboundListener() float64 {
	bytes, filters := 12521+6*letters(s.own), 7.0
	if s.knobs.MTLS == "strict" {
		bytes, filters = 6924+3*letters(s.own), 3.0
	}
	switch {
	case s.knobs.Authz != "declared":
		return bytes
	case len(s.callers) == 0:
		return bytes + filters*(174.6+letters(s.own))
	}
	bytes += filters * 127.4
	for _, caller := range s.callers {
		// The policy's name holds both services, its principal the caller.
		bytes += filters * (84.9 + 1.06*letters(s.own) + 0.965*(float64(len(caller.Name))+letters(caller)))
	}
	return bytes
}

// ownFilters are the bytes of a resource that make the filters of Istio's own
// Envoy, which Options.UpstreamEnvoy leaves out: the difference between what was
// sent with and without, the same for every resource of a kind.
func (s sizes) ownFilters(t convergence.Type, name string) float64 {
	switch {
	case t == convergence.CDS && name == "PassthroughCluster":
		return 214
	case t == convergence.CDS && strings.HasPrefix(name, "outbound|"):
		return 235
	case t != convergence.LDS:
		return 0
	case name == virtualOutbound:
		return 114
	case name == virtualInbound && s.knobs.MTLS == "strict":
		return 1671
	case name == virtualInbound:
		return 3321
	case strings.HasPrefix(name, "0.0.0.0_"):
		return 583
	default: // of a TCP port
		return 57
	}
}

func digits(port int) float64 { return float64(len(strconv.Itoa(port))) }

// besideLetters are the letters of name and namespace in a host.
func besideLetters(host string) float64 {
	name, rest, _ := strings.Cut(host, ".")
	namespace, _, _ := strings.Cut(rest, ".")
	return float64(len(name) + len(namespace))
}
