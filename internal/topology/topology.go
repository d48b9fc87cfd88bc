// Package topology builds a mesh: its namespaces, its services, how many pods each has
// and which others it calls. It is pure and makes no objects: the adapter of a control
// plane makes the objects for a layout.
package topology

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"scaler.mesh/scaler/pkg/scenario"
)

// The shapes of a call graph.
const (
	// Star: the first service is called by all others, and calls none. The fan-out has no
	// effect.
	Star = "star"
	// Layers: the services are cut into four layers of equal size (the first ones take
	// the remainder). Each service calls FanOut services of the next layer, so the graph
	// has no cycle; the last layer calls none. All services of a layer are called equally
	// often, give or take one; the seed decides by whom.
	Layers = "layers"
	// Random: each service calls FanOut others, drawn by the seed without
	// replacement. Cycles are possible, calls to itself are not.
	Random = "random"
	// Captured is the shape of a mesh that is read from a file: who calls whom is not
	// known.
	Captured = "captured"
)

// layerCount is the number of layers of the shape Layers, if there are that many
// services.
const layerCount = 4

// Mesh is a layout.
type Mesh struct {
	Namespaces []string
	Services   []Service
	Profile    scenario.Parts // what it contains in addition; none is 0
	// Endpoints is the number of endpoints that the API server lists when all pods are
	// ready; 0 means that each pod is one endpoint of every port of its service.
	Endpoints int
	// Uncounted are service ports, NAMESPACE/NAME:PORT, whose endpoints Endpoints does not count.
	Uncounted map[string]bool `json:",omitempty"`
}

// Service is one service and the workload behind it. In a captured mesh it is a workload,
// which may be behind several services or none, and has no Ports.
type Service struct {
	Name      string // unique in the mesh, not only in its namespace
	Namespace string
	Workload  string // name of its workload's object; "" = Name
	Account   string // service account of its pods, in the same namespace
	Pods      int
	Real      int  `json:",omitempty"` // of Pods, those on real nodes, where an existing cluster has some
	Outside   bool // its pods have no sidecars
	ByNode    bool `json:",omitempty"` // its pods have the proxy of their node in place of sidecars
	Ports     []Port
	Listed    []Listing `json:",omitempty"` // the ports of Services that list its pods, in a captured mesh; else see Listings
	Calls     []int     // indices into Mesh.Services, ascending, without duplicates
	Gateway   bool      // its pods are gateways, which call every service; else sidecars
	Headless  bool      // it has no address of its own
	Address   int       // number of the address that it is given; 0 = the cluster chooses one
}

// Object returns the name of its workload's object.
func (s Service) Object() string { return cmp.Or(s.Workload, s.Name) }

// OwnProxy reports whether each of its pods has a proxy of its own.
func (s Service) OwnProxy() bool { return !s.Outside && !s.ByNode }

// RealObject returns the name of the object for those of its pods that are on real nodes.
func (s Service) RealObject() string { return s.Object() + "-real" }

// Sidecars returns the number of pods with a sidecar.
func (m Mesh) Sidecars() (n int) {
	for _, s := range m.Services {
		if !s.Outside {
			n += s.Pods
		}
	}
	return n
}

// Healthy returns the number of endpoints that are healthy when all pods are ready.
func (m Mesh) Healthy() (n int) {
	for _, s := range m.Services {
		n += s.Pods * len(s.Ports)
	}
	return max(n, m.Endpoints)
}

// Port is one port of a service.
type Port struct {
	Name   string
	Number int  // of the service
	Target int  // of its pods
	TCP    bool // bytes; else HTTP
}

// ServicePort returns the name of a service port whose endpoints are followed,
// "namespace/name:port", as a convergence.Want has it.
func (s Service) ServicePort(p Port) string { return s.Namespace + "/" + s.Name + ":" + p.Name }

// Listing is a port of a Service that lists the pods of a workload as its endpoints.
type Listing struct {
	Namespace, Service, Port string
	Target                   int `json:",omitempty"` // port of the pods
}

// String returns the listing as a convergence.Want has the service port.
func (l Listing) String() string { return l.Namespace + "/" + l.Service + ":" + l.Port }

// Listings returns the ports of Services that list the pods of s, as endpoints of each of which a pod comes and goes.
func (s Service) Listings() []Listing {
	all := s.Listed
	for _, p := range s.Ports {
		all = append(all, Listing{s.Namespace, s.Name, p.Name, p.Target})
	}
	return all
}

// Build returns the mesh that s describes: services are assigned to namespaces in turn
// (service i is in namespace i modulo their number), and pods are distributed evenly, the
// first services taking the remainder, unless the profile skews them. The same Spec
// always gives the same Mesh. s must be valid: see Spec.Validate.
func Build(s Spec) Mesh {
	s = s.Defaults()
	mesh := Mesh{
		Namespaces: make([]string, s.Namespaces),
		Services:   make([]Service, s.Services),
	}
	for i := range mesh.Namespaces {
		mesh.Namespaces[i] = fmt.Sprintf("mesh-%d", i)
	}
	calls := callGraph(s)
	profile := s.Resolved()
	dealt := s
	dealt.Pods -= Value(profile.Gateways)
	pods := dealt.shares(Value(profile.ReplicaSkew))
	for i := range mesh.Services {
		name := fmt.Sprintf("svc-%d", i)
		mesh.Services[i] = Service{
			Name:      name,
			Namespace: mesh.Namespaces[i%s.Namespaces],
			Account:   name,
			Pods:      pods[i],
			Ports:     []Port{{Name: "http", Number: 80, Target: 8080}},
			Calls:     calls[i],
		}
	}
	mesh.apply(profile)
	return mesh
}

// callGraph returns whom each service calls.
func callGraph(s Spec) [][]int {
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	switch s.Shape {
	case Star:
		return starCalls(s.Services)
	case Random:
		return randomCalls(s.Services, s.FanOut, rng)
	default:
		return layerCalls(s.Services, s.FanOut, rng)
	}
}

func starCalls(services int) [][]int {
	calls := make([][]int, services)
	for i := 1; i < services; i++ {
		calls[i] = []int{0}
	}
	return calls
}

func layerCalls(services, fanOut int, rng *rand.Rand) [][]int {
	calls := make([][]int, services)
	layers := min(layerCount, services)
	// start of layer k; for the layer after the last, the number of services
	start := func(k int) int { return k*(services/layers) + min(k, services%layers) }
	for k := range layers - 1 {
		next, width := start(k+1), start(k+2)-start(k+1)
		order := rng.Perm(width)
		turn := 0
		for i := start(k); i < next; i++ {
			for range min(fanOut, width) {
				calls[i] = append(calls[i], next+order[turn%width])
				turn++
			}
			slices.Sort(calls[i])
		}
	}
	return calls
}

func randomCalls(services, fanOut int, rng *rand.Rand) [][]int {
	calls := make([][]int, services)
	// Distances around the ring of all services. None is zero, so that no service calls
	// itself.
	distances := make([]int, services-1)
	for d := range distances {
		distances[d] = d + 1
	}
	for i := range calls {
		for d := range min(fanOut, len(distances)) {
			other := d + rng.IntN(len(distances)-d)
			distances[d], distances[other] = distances[other], distances[d]
			calls[i] = append(calls[i], (i+distances[d])%services)
		}
		slices.Sort(calls[i])
	}
	return calls
}
