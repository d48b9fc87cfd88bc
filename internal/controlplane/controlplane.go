// Package controlplane states what a service mesh's control plane is to scaler,
// in plain types. Each control plane has a package of its own below this one,
// which owns all that is peculiar to it: how it is installed and started, what
// knobs become, how a proxy's identity and credentials read, what a proxy of
// its version must come to hold, and which metrics are its own.
package controlplane

import (
	"cmp"
	"context"
	"crypto"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// ControlPlane is a running control plane: its parts. A part that is nil is one
// that it does not have; whoever needs it checks, and states what is not supported.
// Parts of several methods are interfaces, also where one control plane alone has
// such a part: this package knows none of them.
type ControlPlane struct {
	Server  Server  // never nil
	Mesh    Mesh    // never nil
	Proxies Proxies // never nil
	// Running are its programs; the zero value = none is known.
	Running
	Sidecars Membership   // of pods that have a sidecar each
	Nodes    *NodeProxies // nil: every pod of the mesh has a proxy of its own
	Probes   Probes       // nil: no change of it can be followed by a marker
	// Unprobed is why a captured mesh has no change of a kind; nil where the mesh is synthetic.
	Unprobed func(kind ProbeKind) string
	// Distributed is the part of a captured mesh, as in "DestinationRule shop/cart", that sends connections to a Service to
	// endpoints of some localities, so that one without a locality is not held by all; "" = there is none. nil where the mesh is synthetic.
	Distributed func(topology.Listing) string
	Real        *RealProxies // nil: it has no real proxies on this machine
	Revision    Revision     // nil: it is the only one of its mesh
	Captured    *Captured    // nil: captured meshes cannot be replayed
	// MakeGateway makes the pods of a template gateways in place of workloads with a sidecar; nil: it
	// has no gateways.
	MakeGateway func(template *corev1.PodTemplateSpec)
}

// Running are the programs of a control plane: Program, Replicas or Instances, and Helpers.
type Running struct {
	Program   Program    // that runs here; nil: it does not, or there are Replicas
	Replicas  Replicas   // nil: it was not started as several
	Instances []Instance // that run elsewhere; nil: there are none, or they are not known
	// Helpers are further programs that were started with it, which do not serve proxies; nil =
	// none. What they use is not part of its own usage.
	Helpers []Helper
}

// Membership has the labels and annotations by which the pods of a namespace are part of the mesh.
type Membership struct {
	NamespaceLabels map[string]string // that the namespace needs; nil = none
	PodLabels       map[string]string // that each pod needs, by which it is also that of a Revision; nil = none
	PodAnnotations  map[string]string // likewise; nil = none
}

// Captured adapts a captured mesh to a control plane.
type Captured struct {
	// Prepare installs the kinds of the mesh's configuration that the control plane's own
	// installation does not have.
	Prepare func(ctx context.Context, mesh *capture.Mesh) error
	// Replay describes the mesh to the control plane: a service of topology.Mesh is a workload
	// of the captured one, and knobs do not count. Of what the mesh has and Wants says nothing of
	// it returns what is not checked.
	Replay func(mesh *capture.Mesh) (Mesh, []record.NotChecked)
	// Nodes are the proxies of nodes, and waypoints, where pods of the mesh have these; nil: it has no such proxies.
	Nodes func(mesh *capture.Mesh) *NodeProxies
	// Machines are the endpoints that services have besides those which the API server lists, by
	// "namespace/name:port".
	Machines func(mesh *capture.Mesh) map[string]convergence.Endpoints
	// Probes are changes of what the mesh has, and why it has none of a kind.
	Probes func(mesh *capture.Mesh) (p Probes, unprobed func(kind ProbeKind) string)
	// Distributed is ControlPlane.Distributed of the mesh.
	Distributed func(mesh *capture.Mesh) func(topology.Listing) string
	// Explain is the object of the mesh, as in "EnvoyFilter shop/timeout", by which sidecars hold a resource otherwise than
	// Replay expects; "" = none is known. nil: none ever is.
	Explain func(mesh *capture.Mesh, d convergence.Difference) string
	// Templates are the names of the templates that pods can be injected by.
	Templates func(ctx context.Context) ([]string, error)
	// Assigned are the objects of the mesh that the control plane assigned addresses to, with these.
	Assigned func(ctx context.Context) ([]record.AddressedObject, error)
}

// NodeProxies are the proxies of a mesh whose pods, or some of them, have no proxy of their own.
type NodeProxies struct {
	Nodes
	Waypoints Waypoints // nil: there are none
}

// Nodes are the proxies of nodes, in place of those of pods, or of the pods of some namespaces. They are pods, too, without the
// label of a service, which Proxies.Spec specifies the proxies of.
type Nodes interface {
	// Objects returns the objects that make one proxy for each fake node. Neither they nor their pods carry
	// a run label yet.
	Objects() (*corev1.ServiceAccount, *appsv1.DaemonSet)
	// PodHealth returns the health that the control plane gives a pod as the endpoint of a service.
	PodHealth(ready, terminating bool) convergence.Health
	// Serves reports whether the pods of a namespace of the mesh are served by their node's proxy, and
	// what the namespace and its pods have for that. Else each of its pods has a sidecar, unless topology.Service.ByNode says otherwise.
	Serves(mesh topology.Mesh, namespace string) (m Membership, ok bool)
	// Wants are the resources that every proxy must come to hold. The endpoints of the mesh's
	// services are those of their pods, as the service port has them; those of pods without
	// a service, the proxies' own, are of the service port Serviceless, with port 0.
	Wants(mesh topology.Mesh, knobs scenario.Settings) []convergence.Want
	// Holds are the keys of all resources that every proxy holds when converged, where the
	// pods that are there are given as "namespace/name"; nil if the adapter does not know.
	Holds(mesh topology.Mesh, knobs scenario.Settings, pods []string) []convergence.Key
	// Discovered are the keys of what a sidecar of the mesh may hold of the pods that are there, in addition
	// to Mesh.Holds, and whether it holds all of them; nothing where Serves is true of each namespace.
	Discovered(pods []string) (keys []convergence.Key, all bool)
	// ServiceProbe is a change of a service that changes no traffic, made or taken back; nil: there is none.
	ServiceProbe(mesh topology.Mesh, service int, made bool) *ServiceChange
}

// ServiceChange is a change of a Service.
type ServiceChange struct {
	Namespace, Name string          // of the Service
	Patch           []byte          // a merge patch
	Changes         convergence.Key // the resource of every proxy that changes with it
}

// Membership states which labels and annotations make the pods of a namespace part of the mesh, and whether they have the proxy of
// their node in place of a sidecar.
func (c *ControlPlane) Membership(mesh topology.Mesh, namespace string) (m Membership, byNode bool) {
	if c.Nodes != nil {
		if m, byNode = c.Nodes.Serves(mesh, namespace); byNode {
			return m, true
		}
	}
	return c.Sidecars, false
}

// ServedByNode reports whether the pods of a service have no sidecar, but the proxy of their node.
func (c *ControlPlane) ServedByNode(mesh topology.Mesh, s topology.Service) bool {
	_, byNode := c.Membership(mesh, s.Namespace)
	return byNode || s.ByNode
}

// NamespaceLabels returns the labels that Membership gives a namespace.
func (c *ControlPlane) NamespaceLabels(mesh topology.Mesh, namespace string) map[string]string {
	m, _ := c.Membership(mesh, namespace)
	return m.NamespaceLabels
}

// PodAnnotations returns the annotations that Membership gives pods.
func (c *ControlPlane) PodAnnotations(mesh topology.Mesh, namespace string) map[string]string {
	m, _ := c.Membership(mesh, namespace)
	return m.PodAnnotations
}

// Mixed reports whether nodes have proxies, and some pods of the mesh have sidecars. These
// receive the endpoints that the API server lists, see Listed.
func (c *ControlPlane) Mixed(mesh topology.Mesh) bool {
	return c.Nodes != nil && slices.ContainsFunc(mesh.Services, func(s topology.Service) bool { return !s.Outside && !c.ServedByNode(mesh, s) })
}

// Waypoints returns the waypoints of Nodes; nil = there are none.
func (c *ControlPlane) Waypoints() Waypoints {
	if c.Nodes == nil {
		return nil
	}
	return c.Nodes.Waypoints
}

// EndpointHealth returns the health that the control plane gives an endpoint with these conditions; ok is
// false for one that it does not send. Where nodes have proxies, endpoints are the pods of the mesh, as
// Nodes.Wants has them, in place of those that the API server lists.
func (c *ControlPlane) EndpointHealth(ready, serving, terminating bool) (health convergence.Health, ok bool) {
	if c.Nodes != nil {
		return c.Nodes.PodHealth(ready, terminating), true
	}
	return c.Mesh.EndpointHealth(ready, serving, terminating)
}

// Waypoints are proxies of namespaces or services, in addition to those of nodes. They are
// pods, too, whose label kwok.ServiceLabel is Waypoint.Label, and which Proxies.Spec
// specifies the proxies of.
type Waypoints interface {
	// List are the waypoints of a mesh.
	List(mesh topology.Mesh) []Waypoint
	// Objects returns the objects that make the waypoints, with the run's label wherever it belongs. They are
	// made when there are the mesh's namespaces, and nothing else of it.
	Objects(mesh topology.Mesh, run string) []*unstructured.Unstructured
	// Labels returns the labels by which a namespace (service "") or a service uses its waypoint.
	Labels(namespace, service string) map[string]string
	// Wants are the resources that a waypoint must come to hold. Endpoints of services are
	// those that the API server lists, see Listed.
	Wants(mesh topology.Mesh, w Waypoint) []convergence.Want
	// Holds are the keys of all resources that a waypoint holds when converged, where the pods
	// that are there are given as "namespace/name"; nil if the adapter does not know.
	Holds(mesh topology.Mesh, w Waypoint, pods []string) []convergence.Key
}

// Waypoint is one of Waypoints, which has a Service of its name.
type Waypoint struct {
	Namespace, Name string          // of its own Service
	Label           string          // value of kwok.ServiceLabel of its pods, which no service and no other waypoint has
	Pods            int             // 1 or more
	Services        []int           // that it serves, as indices of a mesh
	Ports           []topology.Port // of its own Service
}

// Listed is a service port, as in convergence.Want, with the endpoints that the API server lists,
// where that by itself has those of pods: see Nodes.Wants.
func Listed(servicePort string) string { return listedPrefix + servicePort }

const listedPrefix = "listed: "

// Unlisted is the service port without what Listed adds.
func Unlisted(servicePort string) string { return strings.TrimPrefix(servicePort, listedPrefix) }

// Serviceless is the service port, as in convergence.Want, of pods without a service.
const Serviceless = "pods without a service:"

// Revision is one of several versions of a control plane that serve a mesh at the same
// time, each its own pods.
type Revision interface {
	// Serves reports whether a pod is its own, by Membership.PodLabels.
	Serves(pod *corev1.Pod) bool
	// Promote makes it the one that pods belong to which name none.
	Promote(ctx context.Context) error
	// Remove deletes its objects, once its program has ended.
	Remove(ctx context.Context) error
}

// Server describes the process that serves the mesh.
type Server interface {
	// Describe states which program it is and how it is set.
	Describe() Description
	// Endpoints states where this one is asked about itself.
	Endpoints() Endpoints
}

// Mesh makes the configuration of a mesh for a control plane, and states what sidecars then hold.
type Mesh interface {
	// Objects returns the configuration that the settings become for a mesh, in addition to its workloads. They
	// carry no run label yet. Knobs at the control plane's defaults may need
	// none.
	Objects(mesh topology.Mesh, knobs scenario.Settings) []*unstructured.Unstructured
	// Wants are the resources that every sidecar of the service with this index
	// must come to hold.
	Wants(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Want
	// Holds are the keys of all resources that a sidecar of the service with
	// this index holds when converged, no more and no fewer: the wanted ones and
	// those that the control plane adds by itself. nil if the adapter does not know.
	Holds(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Key
	// EndpointHealth returns the health that the control plane gives an endpoint with these conditions that the
	// API server lists; ok is false for one that it does not send.
	EndpointHealth(ready, serving, terminating bool) (health convergence.Health, ok bool)
}

// Proxies specifies simulated proxies. Proxy.New makes them.
type Proxies interface {
	// Spec is the simulated proxy of a pod that has its IP. It fails for a pod that is
	// not part of the mesh. Of the pod no more is kept than the proxy needs.
	Spec(pod *corev1.Pod) (proxy.Spec, error)
}

// ProxyServices are shared by the simulated proxies that run in one process.
type ProxyServices struct {
	Observer proxy.Observer  // receives the events of proxies
	Store    *xdsprobe.Store // resources and counters of proxies that speak xDS
	// Keys provides private keys for certificates.
	Keys func() (crypto.Signer, error)
	// Tokens is the source of a proxy's tokens; nil = there is no API server to
	// request them from.
	Tokens func(proxy.TokenRequest) proxy.TokenSource
	// Backends are the Services that the address of a specification may be one of; nil =
	// it is none.
	Backends *proxy.Backends
}

// ProxyOptions are the settings that a run gives its simulated proxies.
type ProxyOptions struct {
	XDS                 string         // "delta" or "sotw"; "" = what the mesh's proxies speak
	CertificateLifetime time.Duration  // that is requested; 0 = the agent's own
	Address             string         // host:port to connect to; "" = the control plane's own
	Metadata            map[string]any // takes the place of entries of the node's metadata; nil = none
	// Slowdown is the factor K by which time is slowed down: proxies wait K times as long.
	Slowdown proxy.Slowdown
}

// Apply puts the options that are about a proxy itself into its specification.
func (o ProxyOptions) Apply(spec *proxy.Spec) {
	spec.XDS, spec.CertificateLifetime = o.XDS, o.CertificateLifetime
	spec.Address = cmp.Or(o.Address, spec.Address)
	spec.Slowdown = o.Slowdown
	spec.Keepalive, spec.Drain = o.Slowdown.Of(spec.Keepalive), o.Slowdown.Of(spec.Drain)
	if len(o.Metadata) > 0 {
		spec.Metadata = maps.Clone(spec.Metadata)
		maps.Copy(spec.Metadata, o.Metadata)
	}
}

// ProbeKind is a kind of configuration change that is followed by a marker.
type ProbeKind string

// The kinds of probe; names as in the record's latencies.push.
const (
	RouteProbe  ProbeKind = "route"  // how a service is reached: concerns those who may call it
	PolicyProbe ProbeKind = "policy" // who may call a service: concerns its own sidecars
	MeshProbe   ProbeKind = "mesh"   // a setting of the whole mesh: concerns every sidecar, whatever the service
)

// Probes are changes made to be followed.
type Probes interface {
	// Probe is an object that changes no traffic and whose marker shows in the
	// configuration of every sidecar of the concerned services (indices into
	// the mesh) and of no other. The same service gives the same object but for
	// the marker, so that one probe is an update of the one before. nil where the
	// control plane has no change of this kind.
	Probe(kind ProbeKind, mesh topology.Mesh, knobs scenario.Settings, service int, marker string) (object *unstructured.Unstructured, concerned []int)
}

// Issuer has certificate signing requests of one proxy signed, on a connection
// of its own that stays open until Close.
type Issuer interface {
	proxy.Issuer
	io.Closer
}

// Description states which control plane was measured and how it was set.
type Description struct {
	Name    string // as in --control-plane, and of its process
	Version string // as the program reports
	// Unchecked states what the adapter cannot check of this version, because its
	// expectations are of others; "" = nothing.
	Unchecked string
	// ProxyVersion is the one that simulated sidecars report of themselves; "" = none.
	ProxyVersion string
	Replicas     int               // that serve the mesh
	MaxProcs     int               // GOMAXPROCS
	Settings     map[string]string // that differ from its stock ones, or that figures depend on
	Limits       *record.Limits    // that this version holds itself to, so set; nil = none is known
	Retries      int               // how often a sidecar tries again to connect to its application before it answers for it
}

// Endpoints are URLs of one control plane.
type Endpoints struct {
	Proxies string // host:port that simulated proxies connect to; "" = it is not known
	Metrics string // where its own metrics are scraped; "" = it has none
	// Collect makes the program collect its garbage before it answers; "" = it cannot
	// be asked to.
	Collect string
	// Sync reads from the program which proxies are behind; nil = it does not report that.
	Sync *Sync
}

// Metrics state the meaning of a control plane's own metrics.
type Metrics struct {
	Phase []Metric // evaluated over each phase
	// Push names those of Phase whose sum is the mean time from when it learns of
	// a change until it has sent it, in seconds; none = it does not report it.
	Push []string
	// Counters are PromQL of lifetime counts that scaler counts too. When a mesh
	// is quiet and the program was not restarted, the two are equal. "" = the
	// control plane does not count it.
	Counters Counters
}

// Counters are PromQL expressions.
type Counters struct {
	Responses map[convergence.Type]string // responses sent, by type
	// AlsoCounts are further types that the responses of a type contain; nil = none.
	AlsoCounts          map[convergence.Type][]convergence.Type
	Connected           string // proxies connected now
	CertificateRequests string
	Certificates        string
	// ReplicaConnected is Connected of one of several replicas; $instance stands for its
	// name.
	ReplicaConnected string
}

// Modes are the presets of settings, by name.
var Modes = map[string]scenario.Settings{
	"permissive": {MTLS: "permissive", Scope: "all", Authz: "none"},
	"strict":     {MTLS: "strict", Scope: scenario.ScopeDeclared, Authz: "declared"},
}

// Metric is one of a control plane's own figures, evaluated over a phase.
type Metric struct {
	Name string // as it appears in the record under "own"
	Expr string // PromQL; $window stands for the phase's length
}
