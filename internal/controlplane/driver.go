package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Driver is one kind of control plane that scaler can measure: what is known of
// it before it runs, and how it is started. Each is one literal, in its own
// package; package drivers lists them. Nothing else knows a control plane by its
// name.
type Driver struct {
	Name    string // as in --control-plane, and of its process and its metrics
	Summary string // one line, for people

	Programs        []string // components that it starts, its own first; nil = none
	SidecarPrograms []string // components of a real sidecar; nil = it has no real sidecars
	Modes           []Mode   // presets of knobs that it has, at least one; the first is the default
	// OwnKnobs reports that the knobs of its Modes have values of its own, which Knobs does
	// not define, or none. Then a mode is chosen as a whole, and no knob can be set
	// by itself.
	OwnKnobs bool
	// XDS are the variants that its proxies speak, "delta" or "sotw", at least one; the
	// first is the default. nil = both, delta by default.
	XDS []string
	// NoXDS reports that its proxies do not speak xDS. Then there is no variant, nothing is
	// acknowledged, and Types are the methods that proxies call.
	NoXDS bool

	// Profiles reports that it has objects and expectations for the parts of a
	// topology.Profile.
	Profiles bool

	// HostWorkloads reports that real proxies of workloads of this host can be part of
	// its mesh, which `scaler latency` needs.
	HostWorkloads bool
	// Intercepts states how its real proxies run as in pods, which have a network namespace each and
	// whose connections are redirected; nil = they cannot. `scaler latency` needs this or HostWorkloads.
	Intercepts *Intercepts

	// Replicas reports that it can run as several processes; see StartOptions.Replicas.
	Replicas bool
	// Revisions reports that several versions of it can serve one mesh at the same time,
	// each its own pods. Then it starts with StartOptions.Revision.
	Revisions bool

	// CheckMesh checks the configuration of a captured mesh: its error names the object, the field
	// and what is wanted. nil: captured meshes cannot be replayed. Needs ControlPlane.Captured.
	CheckMesh func(*capture.Mesh) error
	// MeshEnv are the settings (NAME=VALUE) that a captured mesh needs; nil = none.
	MeshEnv func(*capture.Mesh) []string

	// Helpers are the names of ControlPlane.Helpers; nil = none.
	Helpers []string

	// Controllers are those of the cluster's controller-manager that it needs, in addition to
	// those that every cluster has; nil = none.
	Controllers []string

	// External reports that it is there already, at an address that --control-plane
	// has after its name, as in NAME://HOST:PORT. It takes no settings, no share of
	// this machine and no objects, and cannot be ended.
	External bool
	// NoCertificates reports that its sidecars ask for no certificate.
	NoCertificates bool
	// DeliversCertificates reports that it decides when a sidecar gets a certificate and
	// for how long, as over SDS: sidecars can neither request a new one nor a lifetime.
	DeliversCertificates bool
	// FixedLifetime reports that sidecars request certificates, but not for how long.
	FixedLifetime bool
	// NoTokens reports that its sidecars request no tokens.
	NoTokens bool
	// Check looks at where it is, for one that is External. Its error names the
	// flag, the value and what is wanted.
	Check func(Remote) error

	// CheckProxyVersion states what is wrong with a version that simulated sidecars are to
	// report; nil = they report none.
	CheckProxyVersion func(version string) error

	// ConnectionAge is that at which it closes a sidecar's connection, so that the sidecar
	// reconnects; 0 = it does not, or that is not known.
	ConnectionAge time.Duration
	// Limits are the bounds that it holds itself to with this environment
	// (NAME=VALUE), which plans take for records without any; nil = none is known.
	Limits func(env []string) *record.Limits

	// ProxyName is what a proxy is called, in messages and records; "" = sidecar.
	ProxyName string
	// Dataplanes are what it can serve in place of sidecars; nil = sidecars alone. See Of.
	Dataplanes []Dataplane
	// Mixed reports, of a driver that Of returned, that pods of some namespaces have sidecars and
	// those of others the proxy of their node: a mesh needs MixedNamespaces or more.
	Mixed bool

	// Types are the resource types that its proxies subscribe to; nil = Envoy's.
	Types func() (*xdsprobe.Types, error)
	// NewProxy makes the simulated proxy of a specification, as its adapter made it;
	// the proxy does not run yet. This may be another process than that of Start. It
	// fails for a specification that cannot work.
	NewProxy func(spec proxy.Spec, services ProxyServices) (proxy.Proxy, error)

	// Work is what its programs do, helpers included, in a clause; "" = that is not known.
	Work string
	// Meanings are what figures mean with it, by their paths in record.AcrossControlPlanes, where that is
	// not what is said there; nil = nowhere.
	Meanings map[string]string

	// Metrics are its own metrics that records hold; the zero value = none.
	Metrics Metrics
	// Panels are its own metrics on the dashboards; nil = none.
	Panels []Panel

	// Dilate slows down what is a matter of time in it by k, for a machine that stands
	// for one with so many processors, which are its GOMAXPROCS; nil = that is not known
	// of it.
	Dilate func(env []string, processors int, k float64) Dilated
	// RestsInRealTime reports that what it does at rest is decided by timers that Dilate does not slow down. Phases in
	// which nothing happens are then not slowed down, and show what it uses at rest.
	RestsInRealTime bool

	// Installed is how one is used that a cluster has already; nil = that is not possible.
	Installed *Installed

	// Start starts one and returns once it serves. What it started joined the
	// options' Group, also with an error.
	Start func(ctx context.Context, o StartOptions) (*ControlPlane, error)
}

// MixedNamespaces is how many namespaces a mesh has at least of which some have sidecars and others do not.
const MixedNamespaces = 2

// Sidecars is the data plane of a driver as it is: each pod has a proxy of its own.
const Sidecars = "sidecar"

// Dataplane is another data plane than sidecars.
type Dataplane struct {
	Name string // as in --dataplane
	// Of is the driver as it serves this data plane.
	Of func(Driver) Driver
	// Waypoints is the driver of Of as it serves waypoints, too; nil = there are none.
	Waypoints func(Driver) Driver
}

// Values of --waypoints: what has a waypoint each.
const (
	NoWaypoints        = "none"
	NamespaceWaypoints = "namespace"
	ServiceWaypoints   = "service"
)

// Of is the driver as it serves a data plane, Sidecars or one of Dataplanes ("" = Sidecars),
// with waypoints ("" = NoWaypoints). Its error names the flag.
func (d Driver) Of(dataplane, waypoints string) (Driver, error) {
	var has *Dataplane
	for i := range d.Dataplanes {
		if d.Dataplanes[i].Name == dataplane {
			has = &d.Dataplanes[i]
		}
	}
	switch waypoints {
	case "", NoWaypoints:
	case NamespaceWaypoints, ServiceWaypoints:
		if has == nil || has.Waypoints == nil {
			return d, fmt.Errorf("parsing --waypoints %q: want %s with --dataplane %s", waypoints, NoWaypoints, cmp.Or(dataplane, Sidecars))
		}
		return has.Waypoints(has.Of(d)), nil
	default:
		return d, fmt.Errorf("parsing --waypoints %q: want %s, %s or %s", waypoints, NoWaypoints, NamespaceWaypoints, ServiceWaypoints)
	}
	switch {
	case has != nil:
		return has.Of(d), nil
	case dataplane == "" || dataplane == Sidecars:
		return d, nil
	}
	return d, fmt.Errorf("parsing --dataplane %q: want %s with --control-plane %s", dataplane, strings.Join(d.DataplaneNames(), " or "), d.Name)
}

// DataplaneNames are the data planes that it can serve, the first being the default.
func (d Driver) DataplaneNames() []string {
	names := []string{Sidecars}
	for _, one := range d.Dataplanes {
		names = append(names, one.Name)
	}
	return names
}

// Meanings of several drivers: see Driver.Meanings.
const (
	// OnlyReady is of one that sends no endpoint that is not ready.
	OnlyReady = "only endpoints that are ready are sent: one that turns unready is removed, and an added one is sent once its pod is ready"
	// NoAgents is of one whose real sidecars are Envoys by themselves.
	NoAgents = "Envoys without agents"
	// NotInjected is of one whose injection webhook does not run.
	NotInjected = "from the create request to the pod's being seen; no injection webhook is called"
)

// Dilated is how a control plane is set so that it runs slower by a factor.
type Dilated struct {
	Env      []string // NAME=VALUE, in place of those that it was asked with
	Args     []string // further arguments of its program
	Scaled   []string // what is slowed down, in words
	Unscaled []string // what is a matter of time and cannot be
}

// Mode is a preset of knobs.
type Mode struct {
	Name  string
	Knobs Knobs
}

// StandardModes are the modes of a control plane that has all knobs.
func StandardModes() []Mode {
	return []Mode{{"permissive", Modes["permissive"]}, {"strict", Modes["strict"]}}
}

// Mode is the mode of this name.
func (d Driver) Mode(name string) (Mode, bool) {
	for _, m := range d.Modes {
		if m.Name == name {
			return m, true
		}
	}
	return Mode{}, false
}

// NewStore is what proxies that speak xDS share, for the types of its proxies.
func (d Driver) NewStore() (*xdsprobe.Store, error) {
	if d.Types == nil {
		return xdsprobe.NewStore(), nil
	}
	types, err := d.Types()
	if err != nil {
		return nil, fmt.Errorf("reading the resource types of %s: %w", d.Name, err)
	}
	return xdsprobe.NewStoreOf(types), nil
}

// Variants are those of XDS, in their order; "" where there is none.
func (d Driver) Variants() []string {
	if d.NoXDS {
		return []string{""}
	}
	if d.XDS == nil {
		return []string{string(xdsprobe.Delta), string(xdsprobe.SotW)}
	}
	return d.XDS
}

// ModeNames are those of its modes, in their order.
func (d Driver) ModeNames() []string {
	var names []string
	for _, m := range d.Modes {
		names = append(names, m.Name)
	}
	return names
}

// StartOptions state where a control plane runs and what it is given.
type StartOptions struct {
	Programs   map[string]string   // paths of Driver.Programs, by component
	Versions   *component.Versions // knows what programs report; nil = they are asked
	Scaler     string              // scaler's own version, for control planes that are part of it
	Kubeconfig string              // file that the control plane reads
	REST       *rest.Config        // the same cluster, for scaler's own requests
	Group      *process.Group      // the children that it joins
	LogDir     string              // takes its logs
	Progress   func(string)        // nil = silent
	Resources  Resources           // what it is given of this machine; zero = all
	Knobs      Knobs               // of the mesh that it is to serve; zero = not known
	Mesh       topology.Mesh       // that it is to serve; zero = not known

	// Replicas is how many processes share the work, reached as through a Service: the
	// ControlPlane then has Replicas in place of Program. 0 = one, which is reached directly.
	Replicas int
	// Name is that of its process, in metrics and of its log, where another one runs in its
	// cluster; "" = the driver's.
	Name string
	// Revision is the name by which its pods know it, where several versions serve one mesh; ""
	// = it is the only one. Its Programs are of that revision. Needs Driver.Revisions.
	Revision string
	// Next reports that another one serves the mesh already: another revision or, without
	// a Revision, the one whose place it takes.
	Next bool
	// SpareReplicas are made in addition and not started.
	SpareReplicas int

	Remote Remote // where it is, if it is External

	// ProxyVersion is the one that simulated sidecars report; "" = that of the control plane.
	ProxyVersion string

	// Dataplane is what it is to serve, one of Driver.DataplaneNames; "" = sidecars.
	Dataplane string

	// Waypoints is what has a waypoint each, as in --waypoints; "" = nothing.
	Waypoints string

	// RealSidecars reports that real proxies join, which are upstream's Envoy. False
	// leaves the control plane as its project configures it.
	RealSidecars bool
}

// Remote is where an external control plane is and how its sidecars reach it.
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

// Find is the driver that a value of --control-plane names and, of an external
// one, its address.
func Find(all []Driver, value string) (d Driver, address string, ok bool) {
	for _, d := range all {
		if !d.External && d.Name == value {
			return d, "", true
		}
		if address, ok := strings.CutPrefix(value, d.Name+"://"); d.External && ok {
			return d, address, true
		}
	}
	return Driver{}, "", false
}

// Values are those of --control-plane that choose the drivers, in their order.
func Values(all []Driver) []string {
	var values []string
	for _, d := range all {
		if d.External {
			values = append(values, d.Name+"://HOST:PORT")
		} else {
			values = append(values, d.Name)
		}
	}
	return values
}

// Intercepts is what is known of real proxies to which the connections of their pods are redirected,
// before there are any.
type Intercepts struct {
	User uint32 // that the proxies run as, by which rules know them
	// CallerHeader is the header in which the proxy of a server names the identity of the caller (proxy.Spec) to the
	// application; "" = in none.
	CallerHeader string
	// GivenProxy is what the program of the proxies is called where scaler does not have it, so that
	// the user gives it; "" = it is among Driver.SidecarPrograms.
	GivenProxy string
	// Workers is how many worker threads an injected proxy has; 0 = as many as an Envoy of Istio.
	Workers int
}

// GivenProxy is what the program of the real proxies is called where the user gives it; "" = scaler has it.
func (d Driver) GivenProxy() string {
	if d.Intercepts == nil {
		return ""
	}
	return d.Intercepts.GivenProxy
}

// ForLatency are the drivers whose real proxies can carry the requests of applications of this host.
func ForLatency(all []Driver) []Driver {
	var some []Driver
	for _, d := range all {
		if d.HostWorkloads || d.Intercepts != nil {
			some = append(some, d)
		}
	}
	return some
}

// Names are those of the drivers, in their order.
func Names(all []Driver) []string {
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names
}

// Choices are the Values of the drivers as help prints them: "a, b or c".
func Choices(all []Driver) string {
	names := Values(all)
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
