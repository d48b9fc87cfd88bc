package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/dilation"

	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Driver is one kind of control plane that scaler can measure: what is known of it before it runs, and
// how it is started. Each is one literal in its own package, and package drivers lists them. Nothing else
// knows a control plane by its name. A part that is nil is a capability that the control plane does not have.
type Driver struct {
	Name    string // as in --control-plane, and of its process and its metrics
	Summary string // one line, for people

	// Programs are the programs that a run starts; the zero value = none.
	Programs Programs
	// Dataplane is the data plane that it serves: sidecars, until Of chooses one of Dataplanes.
	Dataplane
	// Dataplanes are the data planes that it can serve in place of sidecars; nil = sidecars alone.
	Dataplanes []OtherDataplane

	// CheckKnobs checks knobs of which some were set by themselves; nil = a mode is chosen as a
	// whole, and the knobs of Modes may have other values than scenario.Settings lists.
	CheckKnobs func(scenario.Settings) error
	// CheckSetting checks a setting (PATH=VALUE) of its configuration, as StartOptions.Set has them. Its error states what is
	// wanted in place of it; nil = it has no such settings.
	CheckSetting func(setting string) error
	// Profiles reports that it has objects and expectations for scenario.Parts.
	Profiles bool
	// Captured states how it replays captured meshes, with ControlPlane.Captured; nil = it cannot.
	Captured *CapturedMeshes

	// Replicas reports that it can run as several processes; see StartOptions.Replicas.
	Replicas bool
	// Dilation states how it is slowed down; nil = it is not known which of its settings are times.
	Dilation *Dilation
	// External is set for a control plane that exists at an address, which --control-plane has after the
	// name, as in NAME://HOST:PORT; nil = a run starts it. Such a control plane takes no settings, no share of this machine and
	// no objects, and cannot be stopped. The function checks the address. Its error names the flag, the value and what is wanted.
	External func(Remote) error
	// Installed states how to use one that a cluster has already; nil = that is not possible.
	Installed *Installed

	// FewerPushes are environment variables with which it pushes less often while pods become ready. The final configuration is the
	// same. nil = none are known.
	FewerPushes []string

	// Variables lists the variables of the environment that a program of it reads, with their defaults; nil = that is not
	// known. It asks the program, of those that Programs names.
	Variables func(ctx context.Context, programs map[string]string) (map[string]string, error)

	// Sized returns how to apply the resources that a plan requests; nil = that is not known.
	Sized func(capacity.Target, capacity.Request) *capacity.Install

	// Figures describe how its figures differ in meaning; the zero value = they mean what they mean with every other one.
	Figures Figures

	// Start starts one and returns once it serves. What it started joined the
	// options' Group, also with an error.
	Start func(ctx context.Context, o StartOptions) (*ControlPlane, error)
}

// Programs are the programs that a run starts for a control plane.
type Programs struct {
	Own     []string // components, by name, the control plane's own first; nil = none
	Helpers []string // names of Running.Helpers; nil = none
	// Controllers are the controllers of the cluster's controller-manager that it needs, in addition to
	// those that every cluster has; nil = none.
	Controllers []string
}

// Dataplane is a kind of proxy that a control plane serves, and what depends on it.
type Dataplane struct {
	Modes []Mode // presets of knobs, at least one; the first is the default
	Proxy Proxy
	// SidecarPrograms are the components of a real sidecar; nil = there are no real sidecars.
	SidecarPrograms []string
	// Latency states how its real proxies carry requests of applications of this host, which `scaler latency`
	// needs; nil = they cannot.
	Latency *LatencyPath
	// Revisions reports that several versions of the control plane can serve one mesh at the same
	// time, each its own pods. Then each starts with StartOptions.Revision.
	Revisions bool
	// Mixed reports that pods of some namespaces have sidecars and those of others the proxy of
	// their node: a mesh needs MixedNamespaces or more.
	Mixed bool
	// Metrics are the control plane's own metrics that records hold; the zero value = none.
	Metrics Metrics
}

// MixedNamespaces is the least number of namespaces of a mesh in which some have sidecars and others do not.
const MixedNamespaces = 2

// MixedSidecars reports whether the pods of a namespace of a synthetic mesh have sidecars where those of others do not: those of every
// other namespace do, beginning with the first.
func MixedSidecars(mesh topology.Mesh, namespace string) bool {
	return slices.Index(mesh.Namespaces, namespace)%2 == 0
}

// Proxy describes the proxies of a data plane.
type Proxy struct {
	Name string // what a proxy is called, in messages and records; "" = sidecar
	// XDS states how they speak xDS; nil = they do not. Then nothing is acknowledged, and Types are the
	// methods that they call.
	XDS *XDS
	// Types are the resource types that they subscribe to; nil = Envoy's.
	Types func() (*xdsprobe.Types, error)
	// Certificates state how they get their certificates; nil = they have none.
	Certificates *Certificates
	Tokens       bool // they request tokens
	// CheckVersion states what is wrong with a version that simulated ones are to report; nil =
	// they report none.
	CheckVersion func(version string) error
	// ConnectionAge is the age at which the control plane closes a proxy's connection, so that the
	// proxy reconnects; 0 = it does not, or it is not known.
	ConnectionAge time.Duration
	// New makes the simulated proxy of a specification, as its adapter made it; the proxy does
	// not run yet. This may be another process than that of Start. It fails for a specification
	// that cannot work.
	New func(spec proxy.Spec, services ProxyServices) (proxy.Proxy, error)
}

// XDS states how proxies speak xDS.
type XDS struct {
	Variants []string // of "delta" and "sotw", at least one; the first is the default
}

// BothVariants returns the XDS of proxies that speak either variant, delta by default.
func BothVariants() *XDS {
	return &XDS{Variants: []string{string(xdsprobe.Delta), string(xdsprobe.SotW)}}
}

// Certificates state how proxies get their certificates.
type Certificates struct {
	// Requested reports that a proxy requests one whenever it wants one. Otherwise the control plane
	// delivers them, as over SDS, and decides when and for how long.
	Requested bool
	// ForLifetime reports that a request says for how long. Otherwise the control plane decides.
	ForLifetime bool
}

// RequestsCertificates reports whether proxies request their certificates.
func (p Proxy) RequestsCertificates() bool { return p.Certificates != nil && p.Certificates.Requested }

// Variants returns the variants of XDS, in their order; "" where there is none.
func (p Proxy) Variants() []string {
	if p.XDS == nil {
		return []string{""}
	}
	return p.XDS.Variants
}

// CapturedMeshes are the captured meshes that a control plane replays.
type CapturedMeshes struct {
	// Check checks the configuration of one: its error names the object, the field and what is wanted.
	Check func(*capture.Mesh) error
	// Env are the settings (NAME=VALUE) that one needs; nil = none.
	Env func(*capture.Mesh) []string
}

// Dilation states how to slow down a control plane.
type Dilation struct {
	// Dilate slows down the times of the control plane by k. It runs with GOMAXPROCS set to processors,
	// the number of processors of the modelled machine.
	Dilate func(env []string, processors int, k float64) Dilated
	// Cost is the processor time that its programs need for a rollout, by which a factor is chosen; nil = it is not known.
	Cost *dilation.Cost
	// RestsInRealTime reports that what it does at rest is decided by timers that Dilate does not slow down.
	// Phases in which nothing happens are then not slowed down, and show what it uses at rest.
	RestsInRealTime bool
}

// Figures describe a control plane's figures, and the panels that show them.
type Figures struct {
	// Work describes the work of its programs, helpers included, in a clause; "" = it is not known.
	Work string
	// Meanings has the meanings of figures, by their paths in record.AcrossControlPlanes, where they differ
	// from those stated there; nil = nowhere.
	Meanings map[string]string
	// Panels are its own metrics on the dashboards; nil = none.
	Panels []Panel
	// Limits are the bounds that it holds itself to with this environment (NAME=VALUE), which
	// plans take for records without any; nil = none is known.
	Limits func(env []string) *record.Limits
}

// Sidecars is the data plane of a driver as it is: each pod has a proxy of its own.
const Sidecars = "sidecar"

// OtherDataplane is another data plane than sidecars.
type OtherDataplane struct {
	Name string // as in --dataplane
	Dataplane
	// Waypoints is the data plane with waypoints, too; nil = there are none.
	Waypoints *Dataplane
}

// What has a waypoint each, as a scenario states it.
const (
	NoWaypoints        = "none"
	NamespaceWaypoints = "namespace"
	ServiceWaypoints   = "service"
	CapturedWaypoints  = "captured" // those of a captured mesh
)

// Of returns the driver as it serves a data plane, Sidecars or one of Dataplanes ("" = Sidecars),
// with waypoints ("" = NoWaypoints). Its error names the field of a scenario.
func (d Driver) Of(dataplane, waypoints string) (Driver, error) {
	at := slices.IndexFunc(d.Dataplanes, func(one OtherDataplane) bool { return one.Name == dataplane })
	switch waypoints {
	case "", NoWaypoints:
	case NamespaceWaypoints, ServiceWaypoints, CapturedWaypoints:
		switch {
		case at >= 0 && d.Dataplanes[at].Waypoints != nil:
			d.Dataplane = *d.Dataplanes[at].Waypoints
		case at >= 0 && waypoints == CapturedWaypoints: // sidecars of this data plane request the same types as waypoints
			d.Dataplane = d.Dataplanes[at].Dataplane
		default:
			return d, scenario.Refuse("mesh.waypoints", waypoints, "%s with mesh.dataplane %s", NoWaypoints, cmp.Or(dataplane, Sidecars))
		}
		return d, nil
	default:
		return d, scenario.Refuse("mesh.waypoints", waypoints, "%s, %s, %s or %s", NoWaypoints, NamespaceWaypoints, ServiceWaypoints, CapturedWaypoints)
	}
	switch {
	case at >= 0:
		d.Dataplane = d.Dataplanes[at].Dataplane
		return d, nil
	case dataplane == "" || dataplane == Sidecars:
		return d, nil
	}
	return d, scenario.Refuse("mesh.dataplane", dataplane, "%s with controlPlane.name %s", strings.Join(d.DataplaneNames(), " or "), d.Name)
}

// DataplaneNames returns the data planes that it can serve, the first being the default.
func (d Driver) DataplaneNames() []string {
	names := []string{Sidecars}
	for _, one := range d.Dataplanes {
		names = append(names, one.Name)
	}
	return names
}

// Meanings of several drivers: see Figures.Meanings.
const (
	// OnlyReady is the meaning with a control plane that sends ready endpoints only.
	OnlyReady = "only endpoints that are ready are sent: one that turns unready is removed, and an added one is sent once its pod is ready"
	// NoAgents is the meaning with a control plane whose real sidecars are Envoys without agents.
	NoAgents = "Envoys without agents"
	// NotInjected is the meaning with a control plane whose injection webhook does not run.
	NotInjected = "from the create request to the pod's being seen; no injection webhook is called"
)

// Dilated has the settings of a control plane that runs slower by a factor.
type Dilated struct {
	Env      []string // NAME=VALUE, in place of those that it was asked with
	Args     []string // further arguments of its program
	Scaled   []string // what is slowed down, in words
	Unscaled []string // what is a matter of time and cannot be
	// LimiterWait is the time for which a new stream waits for the limiter of new streams before it is
	// refused. It is not slowed down. 0 = there is no such wait.
	LimiterWait time.Duration
}

// Mode is a preset of knobs.
type Mode struct {
	Name  string
	Knobs scenario.Settings
}

// StandardModes returns the modes of a control plane that has all knobs.
func StandardModes() []Mode {
	return []Mode{{"permissive", Modes["permissive"]}, {"strict", Modes["strict"]}}
}

// Mode returns the mode of this name.
func (d Dataplane) Mode(name string) (Mode, bool) {
	for _, m := range d.Modes {
		if m.Name == name {
			return m, true
		}
	}
	return Mode{}, false
}

// NewStore returns a store that proxies that speak xDS share, for the types of its proxies.
func (d Driver) NewStore() (*xdsprobe.Store, error) {
	if d.Proxy.Types == nil {
		return xdsprobe.NewStore(), nil
	}
	types, err := d.Proxy.Types()
	if err != nil {
		return nil, fmt.Errorf("reading the resource types of %s: %w", d.Name, err)
	}
	return xdsprobe.NewStoreOf(types), nil
}

// ModeNames returns the names of its modes, in their order.
func (d Dataplane) ModeNames() []string {
	var names []string
	for _, m := range d.Modes {
		names = append(names, m.Name)
	}
	return names
}

// StartOptions state where a control plane runs and what it is given.
type StartOptions struct {
	Programs   map[string]string   // paths of Driver.Programs.Own, by component
	Versions   *component.Versions // knows what programs report; nil = they are asked
	Scaler     string              // scaler's own version, for control planes that are part of it
	Kubeconfig string              // file that the control plane reads
	REST       *rest.Config        // the same cluster, for scaler's own requests
	Group      *process.Group      // the children that it joins
	LogDir     string              // takes its logs
	Progress   func(string)        // nil = silent
	Resources  Resources           // what it is given of this machine; zero = all
	Knobs      scenario.Settings   // of the mesh that it is to serve; zero = not known
	Mesh       topology.Mesh       // that it is to serve; zero = not known

	// As is the captured control plane whose configuration it has; nil = that of a stock installation.
	As *capture.Revision
	// Set are settings (PATH=VALUE) of its configuration, in place of those that it would have; see Driver.CheckSetting.
	Set []string

	// Replicas is the number of processes that share the work, reached as through a Service: the
	// ControlPlane then has Replicas in place of Program. 0 = one, which is reached directly.
	Replicas int
	// Name is the name of its process, in metrics and of its log, where its cluster has another
	// control plane; "" = the driver's.
	Name string
	// Revision is the name by which its pods know it, where several versions serve one mesh; ""
	// = it is the only one. Its Programs are of that revision. Needs Dataplane.Revisions.
	Revision string
	// Next reports that another one serves the mesh already: another revision or, without
	// a Revision, the one whose place it takes.
	Next bool
	// SpareReplicas are made in addition and not started.
	SpareReplicas int

	Remote Remote // where it is, if it is External

	// ProxyVersion is the one that simulated sidecars report; "" = that of the control plane.
	ProxyVersion string

	// Dataplane is the data plane to serve, one of Driver.DataplaneNames; "" = sidecars.
	Dataplane string

	// Waypoints is the kind of object that has a waypoint each, as in --waypoints; "" = no waypoints.
	Waypoints string

	// RealSidecars reports that real proxies join, which are upstream's Envoy. False
	// leaves the control plane as its project configures it.
	RealSidecars bool
}

// Report reports progress.
func (o StartOptions) Report(step string) {
	if o.Progress != nil {
		o.Progress(step)
	}
}

// Remote states where an external control plane is and how its sidecars reach it.
type Remote struct {
	Address         string // HOST:PORT
	Plaintext       bool   // no TLS and no token
	TLSCA           string // file with the roots of the server's certificate, in PEM; needed without Plaintext
	TLSCert, TLSKey string // files with the certificate that sidecars show, and its key, in PEM; "" = none
	TokenFile       string // file with the bearer token of all sidecars, read again for new streams; "" = none
	ServerName      string // that the server's certificate must carry; "" = the host of Address

	// Templates of what a sidecar reports of itself; "" = the adapter's.
	NodeID, NodeCluster, Metadata string

	Expect string // file that states what each sidecar must receive; "" = all that it asks for
}

// Find returns the driver that a value of --control-plane names and, of an external
// one, its address.
func Find(all []Driver, value string) (d Driver, address string, ok bool) {
	for _, d := range all {
		if d.External == nil && d.Name == value {
			return d, "", true
		}
		if address, ok := strings.CutPrefix(value, d.Name+"://"); d.External != nil && ok {
			return d, address, true
		}
	}
	return Driver{}, "", false
}

// Values returns the values of --control-plane that choose the drivers, in their order.
func Values(all []Driver) []string {
	var values []string
	for _, d := range all {
		if d.External != nil {
			values = append(values, d.Name+"://HOST:PORT")
		} else {
			values = append(values, d.Name)
		}
	}
	return values
}

// LatencyPath states how real proxies carry requests of applications of this host.
type LatencyPath struct {
	// Intercepts states how connections of their pods, which have a network namespace each, are redirected
	// to them; nil = the applications address their proxies, as RealProxies.Host has them.
	Intercepts *Intercepts
}

// Intercepts describes real proxies to which the connections of their pods are redirected,
// before there are any.
type Intercepts struct {
	User uint32 // that the proxies run as, by which rules know them
	// CallerHeader is the header in which the proxy of a server names the identity of the caller (proxy.Spec) to the
	// application; "" = in none.
	CallerHeader string
	// GivenProxy is the name of the proxies' program where scaler does not have it, so that
	// the user gives it; "" = it is among Dataplane.SidecarPrograms.
	GivenProxy string
	// Workers is the number of worker threads of an injected proxy; 0 = as many as an Envoy of Istio.
	Workers int
}

// GivenProxy returns the name of the real proxies' program where the user gives it; "" = scaler has it.
func (d Driver) GivenProxy() string {
	if d.Latency == nil || d.Latency.Intercepts == nil {
		return ""
	}
	return d.Latency.Intercepts.GivenProxy
}

// ForLatency returns the drivers whose real proxies can carry the requests of applications of this host.
func ForLatency(all []Driver) []Driver {
	var some []Driver
	for _, d := range all {
		if d.Latency != nil {
			some = append(some, d)
		}
	}
	return some
}

// Choices returns the Values of the drivers as help prints them: "a, b or c".
func Choices(all []Driver) string {
	names := Values(all)
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
