// Package scenario defines the document that states all that is asked of a run: the
// mesh, its control plane, the load on it, where the run happens and how it is measured.
//
// [Scenario] is the typed document. [Document] reads one from YAML, sets single fields by
// their paths, and keeps which fields were given. [Parameters] is the table of all fields:
// flags, help, completion, the JSON Schema, the reference page and the conditions in which
// runs must be alike to be compared are made from it.
//
// The package has no opinion on control planes: whether one supports what is asked, and
// whether a file or a cluster that is named exists, is checked by who runs the scenario.
package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// APIVersion and Kind identify a scenario document.
const (
	APIVersion = "scaler.mesh/v1"
	Kind       = "Scenario"
)

// Scenario states all that is asked of one run or, where lists have several values, of
// several. [Default] has the defaults. The zero value of a field means "not stated" where its
// JSON may omit it.
type Scenario struct {
	APIVersion   string       `json:"apiVersion"`
	Kind         string       `json:"kind"`
	Repeats      int          `json:"repeats,omitempty"` // runs of each size, mode and data plane
	Mesh         Mesh         `json:"mesh"`
	ControlPlane ControlPlane `json:"controlPlane"`
	Load         Load         `json:"load"`
	Phases       Phases       `json:"phases"`
	Place        Place        `json:"place,omitzero"`
	Latency      Requests     `json:"latency,omitzero"`
	Instrument   Instrument   `json:"instrument"`
	// Thresholds are bounds that the figures of every run must meet, as FIGURE<VALUE or FIGURE>VALUE.
	// They change no figure.
	Thresholds []string `json:"thresholds,omitempty"`
}

// Mesh describes the mesh to roll out: a synthetic one, or a captured one if File is set.
type Mesh struct {
	Pods       List[int]    `json:"pods,omitempty"`       // each with a sidecar; one run for each size
	Services   int          `json:"services,omitempty"`   // 0 = one for every 10 pods
	Namespaces int          `json:"namespaces,omitempty"` // 0 = one for every 50 services
	Topology   string       `json:"topology,omitempty"`   // call graph: star, layers or random
	FanOut     int          `json:"fanOut,omitempty"`     // services that each service calls
	Seed       uint64       `json:"seed"`                 // of the call graph
	Mode       List[string] `json:"mode,omitempty"`       // named settings; one run for each; "both" = all modes
	Settings   Settings     `json:"settings,omitzero"`
	Dataplane  List[string] `json:"dataplane,omitempty"` // sidecar, ambient or mixed; one run for each
	// PodsPerNode is the number of pods for which there is a fake node where nodes have proxies.
	PodsPerNode int       `json:"podsPerNode,omitempty"`
	Waypoints   string    `json:"waypoints,omitempty"` // none, namespace or service
	Profile     string    `json:"profile,omitempty"`   // plain or typical
	Parts       Parts     `json:"parts,omitzero"`
	Sidecars    Sidecars  `json:"sidecars,omitzero"`
	File        string    `json:"file,omitempty"`  // of a captured mesh, which then decides all above but Sidecars
	Scale       List[int] `json:"scale,omitempty"` // copies of each namespace of a captured mesh; one run for each number
	Share       Share     `json:"share,omitempty"` // of the pods of each workload of a captured mesh; 0 = all
	// Revision is the name of a revision of a captured mesh. Its control plane runs and serves its own pods only; "" = one control plane
	// serves the pods of all revisions.
	Revision string `json:"revision,omitempty"`
}

// Settings are the three settings of a mesh, independent of each other. In a scenario they replace those of the mode, and "" leaves the mode's. A
// control plane may have other values, which its adapter defines.
type Settings struct {
	MTLS string `json:"mtls,omitempty"` // permissive or strict: whether plaintext is accepted
	// Scope is all: a sidecar is configured for every service; or declared: only for those it calls; "" where there are no sidecars.
	Scope string `json:"scope,omitempty"`
	Authz string `json:"authz,omitempty"` // none, or declared: only declared calls are allowed
}

// ScopeDeclared is Settings.Scope where a sidecar is configured only for what it calls.
const ScopeDeclared = "declared"

// Text states the settings in words.
func (s Settings) Text() string {
	return fmt.Sprintf("mtls %s, scope %s, authz %s", cmp.Or(s.MTLS, "none"), cmp.Or(s.Scope, "none"), cmp.Or(s.Authz, "none"))
}

// Validate states which setting has a value that it cannot have in a mesh with sidecars or without them.
func (s Settings) Validate() error {
	if s.Scope == "" {
		s.Scope = "all"
	}
	for _, one := range []struct {
		name, value string
		want        [2]string
	}{
		{"mtls", s.MTLS, [2]string{"permissive", "strict"}},
		{"scope", s.Scope, [2]string{"all", ScopeDeclared}},
		{"authz", s.Authz, [2]string{"none", "declared"}},
	} {
		if one.value != one.want[0] && one.value != one.want[1] {
			return Refuse("mesh.settings."+one.name, one.value, "%s or %s", one.want[0], one.want[1])
		}
	}
	return nil
}

// Parts are the contents of a mesh in addition to uniform HTTP services. A part that is not
// stated is as the profile has it; 0 leaves it out.
type Parts struct {
	VirtualServices  *int      `json:"virtualServices,omitempty"`
	DestinationRules *int      `json:"destinationRules,omitempty"`
	ServiceEntries   *int      `json:"serviceEntries,omitempty"`
	EnvoyFilters     *int      `json:"envoyFilters,omitempty"`
	Telemetries      *int      `json:"telemetries,omitempty"`
	TCPServices      *int      `json:"tcpServices,omitempty"`
	HeadlessServices *int      `json:"headlessServices,omitempty"`
	ExternalNames    *int      `json:"externalNames,omitempty"`
	Gateways         *int      `json:"gateways,omitempty"`
	Zones            *int      `json:"zones,omitempty"`
	OutsidePods      *int      `json:"outsidePods,omitempty"`
	OutsideChurn     *float64  `json:"outsideChurn,omitempty"` // pods a second
	ReplicaSkew      *float64  `json:"replicaSkew,omitempty"`  // exponent of Zipf's law
	GracePeriod      *Duration `json:"gracePeriod,omitempty"`
}

// Over returns the parts over those of a base, as of a named profile: one that is stated takes the place of the
// base's. Parts that are 0 then are left out.
func (p Parts) Over(base Parts) Parts {
	own, all := reflect.ValueOf(p), reflect.ValueOf(&base).Elem()
	for i := range all.NumField() {
		field := all.Field(i)
		if !own.Field(i).IsNil() {
			field.Set(own.Field(i))
		}
		if !field.IsNil() && field.Elem().IsZero() {
			field.SetZero()
		}
	}
	return base
}

// Each returns every part that is there, alone.
func (p Parts) Each() []Parts {
	var all []Parts
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			var one Parts
			reflect.ValueOf(&one).Elem().Field(i).Set(v.Field(i))
			all = append(all, one)
		}
	}
	return all
}

// String states the parts that are there in words, as in "virtualServices 40, zones 3"; "" of none.
func (p Parts) String() string {
	var all []string
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if texts := leafTexts(v.Field(i)); texts != nil {
			all = append(all, key(v.Type().Field(i))+" "+texts[0])
		}
	}
	return strings.Join(all, ", ")
}

// Sidecars are the proxies of the pods.
type Sidecars struct {
	XDS                 string   `json:"xds,omitempty"`                 // delta or sotw; "" = the control plane's own
	Version             string   `json:"version,omitempty"`             // that simulated ones report; "" = the control plane's
	StartDelay          *Delay   `json:"startDelay,omitempty"`          // nil = none
	CertificateLifetime Duration `json:"certificateLifetime,omitempty"` // that they request; 0 = 24 h, as agents do
	Real                int      `json:"real,omitempty"`                // of the pods have a real proxy
	Image               string   `json:"image,omitempty"`               // of the application of pods on real nodes
}

// ControlPlane is the program under test, and what it is given.
type ControlPlane struct {
	Name       string   `json:"name,omitempty"`       // istiod, osm, linkerd, reference or xds://HOST:PORT
	Version    string   `json:"version,omitempty"`    // release; "" = the newest known one
	Replicas   int      `json:"replicas,omitempty"`   // among which sidecars choose for each connection
	Processors int      `json:"processors,omitempty"` // of the machine of each replica; 0 = DefaultProcessors or, where time cannot be slowed down, those that there are
	Memory     Bytes    `json:"memory,omitempty"`     // limit of each replica; 0 = none
	Env        []string `json:"env,omitempty"`        // further NAME=VALUE of its environment
	Set        []string `json:"set,omitempty"`        // PATH=VALUE of its configuration, in place of those that it would have
	// Configuration is whose configuration it has with a captured mesh: that of the captured control plane, which also
	// decides what of the above is not stated, or that of a stock installation; "" = the captured one, where it is known.
	Configuration string     `json:"configuration,omitempty"`
	Connection    Connection `json:"connection,omitzero"`
	Upgrade       Upgrade    `json:"upgrade,omitzero"`
}

// MergeEnv returns variables (NAME=VALUE), of which the latter replace the former of their name.
func MergeEnv(former, latter []string) []string {
	name := func(kv string) string { name, _, _ := strings.Cut(kv, "="); return name }
	all := slices.DeleteFunc(slices.Clone(former), func(kv string) bool {
		return slices.ContainsFunc(latter, func(by string) bool { return name(by) == name(kv) })
	})
	return append(all, latter...)
}

// Configurations of a control plane with a captured mesh.
const (
	CapturedConfiguration = "captured"
	StockConfiguration    = "stock"
)

// DefaultProcessors is the number of processors of the machine that a control plane is modelled on
// unless a scenario states another: the same wherever the run is done. A control plane without a limit
// has as many as its node, of which 4 to 16 are usual. istiod used up to 5.8 in its busiest second in the project's
// results, and all eight with 1600 pods in permissive mode; with more, time would have to be slowed down
// further for nothing on a small machine. What istiod derives from their number (GOMAXPROCS) is how many
// sidecars it pushes to at once and how many new streams it takes a second: 55 each, see limits.go in
// internal/controlplane/istio. The Go runtime derives the processors of garbage collection, a quarter, from it.
const DefaultProcessors = 8

// Connection describes the way in which sidecars reach a control plane that is not started by the run,
// xds://HOST:PORT. File names are relative to the current folder.
type Connection struct {
	Plaintext   bool   `json:"plaintext,omitempty"` // no TLS and no token
	TLSCA       string `json:"tlsCA,omitempty"`     // file with the roots of its certificate, in PEM
	TLSCert     string `json:"tlsCert,omitempty"`   // file with the sidecars' certificate, in PEM
	TLSKey      string `json:"tlsKey,omitempty"`    // file with its private key, in PEM
	TokenFile   string `json:"tokenFile,omitempty"` // file with the bearer token of all sidecars
	ServerName  string `json:"serverName,omitempty"`
	NodeID      string `json:"nodeID,omitempty"`      // template of a sidecar's node.id
	NodeCluster string `json:"nodeCluster,omitempty"` // template of its node.cluster
	Metadata    string `json:"metadata,omitempty"`    // template of its node.metadata, a JSON object
	Expect      string `json:"expect,omitempty"`      // file that states what each sidecar must receive
}

// Upgrade moves the mesh to another version of its control plane after the steady phase.
// Without To there is none.
type Upgrade struct {
	To         string   `json:"to,omitempty"`
	Canary     Shares   `json:"canary,omitempty"`     // of the pods that are moved once each wave is done
	InPlace    bool     `json:"inPlace,omitempty"`    // no waves: the new version takes the place of the old one
	RollbackAt int      `json:"rollbackAt,omitempty"` // wave after which everything is moved back; 0 = never
	Rate       Rate     `json:"rate,omitempty"`       // pods restarted a second; 0 = all of a wave at once
	Pause      Duration `json:"pause,omitempty"`      // between the new version's start and the first wave
	Env        []string `json:"env,omitempty"`        // further NAME=VALUE of the new version alone
}

// String states the upgrade in words, as in "canary 10%,50%,100% to 1.31.0, pause 15s"; "" = there is none.
func (u Upgrade) String() string {
	if u.To == "" {
		return ""
	}
	text := "canary " + u.Canary.String()
	if u.InPlace {
		text = "in place"
	}
	text += " to " + u.To
	if u.Rate > 0 {
		text += ", " + u.Rate.String()
	}
	if u.Pause > 0 {
		text += ", pause " + u.Pause.String()
	}
	if u.RollbackAt > 0 {
		text += fmt.Sprintf(", rollback at wave %d", u.RollbackAt)
	}
	for _, kv := range u.Env {
		text += ", " + kv
	}
	return text
}

// Load describes the arrival of pods, and the changes, churn and faults of a run.
type Load struct {
	Arrival          Arrival `json:"arrival"`
	Probes           int     `json:"probes"`           // changes of each kind, one at a time, followed to the sidecars
	Changes          Changes `json:"changes,omitzero"` // made at a rate
	Churn            Rate    `json:"churn,omitempty"`  // pods replaced a second
	Faults           []Fault `json:"faults,omitempty"`
	CertificateStorm bool    `json:"certificateStorm,omitempty"` // all sidecars request a certificate at once, at the end
}

// Phases are the lengths of phases, and the time limit of the rollout.
type Phases struct {
	Baseline        Duration `json:"baseline,omitempty"` // the control plane without a mesh
	ConvergeTimeout Duration `json:"convergeTimeout,omitempty"`
	Settle          Duration `json:"settle"` // between rollout and steady
	Steady          Duration `json:"steady,omitempty"`
	Changes         Duration `json:"changes,omitempty"` // in which load.changes are made
	Cycle           Duration `json:"cycle,omitempty"`   // in which every sidecar reconnects once; 0 = none
}

// Place is the existing cluster that a run uses, and what goes with one. Without Context the
// run starts a cluster of its own.
type Place struct {
	Context     string  `json:"context,omitempty"`    // of the kubeconfig, or in-cluster
	Kubeconfig  string  `json:"kubeconfig,omitempty"` // file; "" = KUBECONFIG, else ~/.kube/config
	Namespace   string  `json:"namespace,omitempty"`  // of the control plane
	Revision    string  `json:"revision,omitempty"`   // of the control plane
	Address     string  `json:"address,omitempty"`    // HOST:PORT of the control plane's xDS
	Metrics     string  `json:"metrics,omitempty"`    // HOST:PORT of its metrics
	AbortIf     string  `json:"abortIf,omitempty"`    // conditions, one of which ends the run
	RefuseIf    *string `json:"refuseIf,omitempty"`   // conditions, one of which refuses the run; "" = none
	WorkerImage string  `json:"workerImage,omitempty"`
	KwokImage   string  `json:"kwokImage,omitempty"`
}

// Requests describe the requests whose latency is measured, and the proxies between client and server. Only the command latency
// has them.
type Requests struct {
	// Of an open loop, in which requests are due on a schedule.
	RPS             List[float64] `json:"rps,omitempty"`             // requests a second, one rate after another
	Arrivals        string        `json:"arrivals,omitempty"`        // constant or poisson
	Seed            uint64        `json:"seed,omitempty"`            // of poisson arrivals
	Duration        Duration      `json:"duration,omitempty"`        // of each rate, variant and repeat, warm-ups excluded
	MaxConnections  int           `json:"maxConnections,omitempty"`  // requests that may be in flight
	KillServerEvery Duration      `json:"killServerEvery,omitempty"` // between two kills of a server; 0 = none

	// Of a closed loop, which it is where Connections are stated.
	Connections List[int] `json:"connections,omitempty"` // that are always busy, one number after another
	Requests    int       `json:"requests,omitempty"`    // of each variant and repeat

	HTTP      int      `json:"http,omitempty"` // version: 1 or 2
	Keepalive bool     `json:"keepalive"`
	Timeout   Duration `json:"timeout,omitempty"` // from when a request was due
	Rounds    int      `json:"rounds,omitempty"`  // that a repeat of each variant is divided into; 0 = 4, with KillServerEvery 1
	Warmup    Duration `json:"warmup"`            // before each round

	// Topology is pair, star or chain; "" = chain with a Chain, star with several Servers, otherwise pair.
	Topology string         `json:"topology,omitempty"`
	Servers  int            `json:"servers,omitempty"` // of a star all, of a chain those of each tier; 0 = 3
	Chain    List[Duration] `json:"chain,omitempty"`   // how long each tier of a chain waits, the nearest first

	Variants List[string] `json:"variants,omitempty"` // none, and modes of the control plane; nil = all
	Proxy    string       `json:"proxy,omitempty"`    // program of the sidecars, of a control plane whose proxy scaler does not have

	// In an existing cluster.
	Image     string       `json:"image,omitempty"`     // of this scaler, in all pods
	Placement List[string] `json:"placement,omitempty"` // one-node or two-nodes; nil = what the cluster has room for
	Nodes     List[string] `json:"nodes,omitempty"`     // that pods may be on, the client's first; nil = any that take pods
}

// Instrument has the settings of scaler itself.
type Instrument struct {
	Workers   int      `json:"workers,omitempty"` // processes that run the simulated sidecars
	Dilation  Dilation `json:"dilation,omitzero"`
	Calibrate bool     `json:"calibrate"` // measure the instrument's floor first where it is unknown
	Priority  bool     `json:"priority"`  // the control plane runs before scaler, and scaler before the cluster
}
