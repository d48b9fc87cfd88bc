package latency

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// The variants of `scaler latency`: what is between client and server. A control plane
// has none and the modes of its driver.
const (
	VariantNone   = "none"   // nothing
	VariantStrict = "strict" // two sidecars; plaintext, and any other caller, is refused
)

// The topologies of `scaler latency`.
const (
	PairTopology  = "pair"  // a client and a server
	StarTopology  = "star"  // a client that balances over several servers
	ChainTopology = "chain" // each tier waits and calls the next; several of each
)

// The placements of pods in a cluster.
const (
	OneNode  = "one-node"  // all pods are on one
	TwoNodes = "two-nodes" // the client is on one, and the first tier on another; each further tier is on the other one than the one before
)

// Spec is one run: the scenario, what it names, and where the run leaves what. [New] makes one.
type Spec struct {
	scenario.Scenario

	// Preset is the preset that the scenario follows, by which published figures are found; "" = none.
	Preset string
	// Existing places client and servers in pods of an existing cluster; nil = they are
	// processes of this machine.
	Existing *attach.Place
	// Drivers are the available control planes; nil = those of package drivers.
	Drivers  []controlplane.Driver
	Programs component.Options // where programs are found or built
	State    string            // folder that holds what a run needs while it lasts
	Out      string            // folder that the run's folder is made in

	found *Found // what Inspect found in the existing cluster
}

// DefaultSpec returns the run of the default scenario.
func DefaultSpec() Spec {
	s := Spec{Scenario: scenario.DefaultLatency()}
	s.Latency.Variants = Variants(drivers.Default())
	s.Latency.Topology, s.Latency.Rounds = PairTopology, rounds
	return s
}

// rounds is the number of rounds of a repeat unless a scenario states it.
const rounds = 4

// New completes a specification, which has folders and programs, with a scenario document: it fills
// in what follows from other fields or the control plane. Nothing is started or created. Errors of
// fields are of type *[scenario.Error].
func New(s Spec, d *scenario.Document) (Spec, error) {
	s.Scenario = d.Scenario
	s.Programs.Istio = s.ControlPlane.Version
	l := &s.Latency
	driver, err := s.Driver()
	if err != nil {
		return s, err
	}
	if len(l.Connections) > 0 {
		l.RPS = nil
	}
	if len(l.Variants) == 0 {
		l.Variants = Variants(driver)
	}
	if l.Topology == "" {
		switch {
		case len(l.Chain) > 0:
			l.Topology = ChainTopology
		case l.Servers > 1:
			l.Topology = StarTopology
		default:
			l.Topology = PairTopology
		}
	}
	if l.KillServerEvery > 0 {
		if l.Rounds > 1 {
			return s, s.Refuse("latency.rounds", "1 with latency.killServerEvery")
		}
		l.Rounds = 1 // the time between kills is one variant's own
	} else if l.Rounds == 0 {
		l.Rounds = rounds
	}
	if s.Place.Context != "" {
		place, err := attach.NewPlace(s.Place)
		s.Existing = &place
		return s, err
	} else if d.Given("place.context") {
		return s, s.Refuse("place.context", "a context of the kubeconfig")
	}
	return s, nil
}

// Validate returns an error for the first field whose value cannot be used with the others or with
// the control plane. Bounds of single fields are those of the table of parameters. Nothing is
// started or created before it returns nil.
func (s Spec) Validate() error {
	if err := s.validateLoad(); err != nil {
		return err
	}
	if version := s.ControlPlane.Version; version != "" {
		if want := component.CheckIstio(version); want != "" {
			return s.Refuse("controlPlane.version", want)
		}
	}
	if err := s.Programs.Validate(); err != nil {
		return err
	}
	driver, err := s.Driver()
	if err != nil {
		return err
	}
	for _, check := range []func(controlplane.Driver) error{s.validateVariants, s.validateExisting, s.validateProxy} {
		if err := check(driver); err != nil {
			return err
		}
	}
	if err := s.validateTopology(); err != nil {
		return err
	}
	return s.validateTimes()
}

// Driver returns the control plane that is asked for. Its error names the field.
func (s Spec) Driver() (controlplane.Driver, error) {
	all := s.Drivers
	if all == nil {
		all = drivers.All()
	}
	d, _, err := drivers.Find(controlplane.ForLatency(all), s.ControlPlane.Name)
	return d, err
}

// Variants returns the variants of a control plane: none, and its modes.
func Variants(d controlplane.Driver) []string { return append([]string{VariantNone}, d.ModeNames()...) }

func (s Spec) validateVariants(d controlplane.Driver) error {
	all := Variants(d)
	for _, v := range s.Latency.Variants {
		if !slices.Contains(all, v) {
			return scenario.Refuse("latency.variants", v, "any of %s", strings.Join(all, ", "))
		}
	}
	return once("latency.variants", s.Latency.Variants)
}

// once checks that each value of a list is there once.
func once[T comparable](path string, all []T) error {
	for i, v := range all {
		if slices.Contains(all[:i], v) {
			return scenario.Refuse(path, v, "each value once; repeats runs them several times")
		}
	}
	return nil
}

// validateProxy checks that a proxy program is given if, and only if, the control plane's
// proxy is one that scaler does not have.
func (s Spec) validateProxy(d controlplane.Driver) error {
	const path = "latency.proxy"
	given, proxy := d.GivenProxy(), s.Latency.Proxy
	switch {
	case given == "" && proxy != "":
		return s.Refuse(path, "it with a control plane whose proxy scaler does not have; that of "+d.Name+" is Envoy")
	case given != "" && proxy == "" && s.withMesh():
		return s.Refuse(path, "the path of "+given+", which scaler does not have, or latency.variants "+VariantNone)
	case proxy == "":
		return nil
	}
	if err := component.Executable(proxy); err != nil {
		return s.Refuse(path, fmt.Sprintf("the path of %s: %v", given, err))
	}
	if info, err := os.Stat(proxy); err != nil || info.Mode().Perm()&0o001 == 0 {
		return s.Refuse(path, fmt.Sprintf("a program that all users can execute (chmod a+x): it runs as user %d", d.Latency.Intercepts.User))
	}
	return nil
}

func (s Spec) validateLoad() error {
	l := s.Latency
	if len(l.Connections) == 0 && len(l.RPS) == 0 {
		return s.Refuse("latency.rps", "requests a second, as in 100,500,1000")
	}
	if l.HTTP == 2 && !l.Keepalive {
		return s.Refuse("latency.keepalive", "it with latency.http 1")
	}
	if len(l.Connections) > 0 && l.Requests < l.Rounds {
		return s.Refuse("latency.requests", fmt.Sprintf("%d or more, one for each of latency.rounds %d", l.Rounds, l.Rounds))
	}
	if err := once("latency.rps", l.RPS); err != nil {
		return err
	}
	return once("latency.connections", l.Connections)
}

func (s Spec) validateTopology() error {
	l := s.Latency
	if l.Topology == PairTopology && l.Servers > 1 {
		return s.Refuse("latency.servers", "1 in a pair, or latency.topology "+StarTopology)
	}
	if (l.Topology == ChainTopology) != (len(l.Chain) > 0) {
		return s.Refuse("latency.chain", "how long each tier waits, as in 100ms,100ms, with latency.topology "+ChainTopology+" alone")
	}
	if len(l.Chain) > 5 {
		return s.Refuse("latency.chain", "5 tiers at most")
	}
	for _, wait := range l.Chain {
		if wait >= l.Timeout {
			return s.Refuse("latency.chain", fmt.Sprintf("waits of less than latency.timeout %s", l.Timeout))
		}
	}
	return nil
}

func (s Spec) validateTimes() error {
	l := s.Latency
	if len(l.Connections) == 0 && time.Duration(l.Duration)/time.Duration(l.Rounds) < 100*time.Millisecond {
		return s.Refuse("latency.rounds", fmt.Sprintf("rounds of 100ms at least, of latency.duration %s", l.Duration))
	}
	if l.KillServerEvery != 0 && l.KillServerEvery >= l.Duration {
		return s.Refuse("latency.killServerEvery", fmt.Sprintf("a duration of less than latency.duration %s", l.Duration))
	}
	return nil
}

// tierSpec is one tier of applications behind the load generator.
type tierSpec struct {
	name     string
	replicas int
	wait     time.Duration
}

// tiers returns the tiers of the topology, the nearest first.
func (s Spec) tiers() []tierSpec {
	l := s.Latency
	servers := l.Servers
	if servers == 0 {
		servers = map[string]int{PairTopology: 1, StarTopology: 3, ChainTopology: 3}[l.Topology]
	}
	if l.Topology != ChainTopology {
		return []tierSpec{{"server", servers, 0}}
	}
	var tiers []tierSpec
	for i, wait := range l.Chain {
		tiers = append(tiers, tierSpec{"hop" + strconv.Itoa(i+1), servers, time.Duration(wait)})
	}
	return tiers
}

func (s Spec) record(driver controlplane.Driver) record.LatencySpec {
	l := s.Latency
	r := record.LatencySpec{
		RPS: l.RPS, Connections: l.Connections, Variants: l.Variants, Preset: s.Preset,
		Seed: l.Seed, HTTP: l.HTTP, Keepalive: l.Keepalive, TimeoutSeconds: seconds(l.Timeout),
		Topology: l.Topology, KillEverySeconds: seconds(l.KillServerEvery),
		Redirected: driver.Latency.Intercepts != nil || s.Existing != nil, Placements: l.Placement,
		Rounds: l.Rounds, WarmupSeconds: seconds(l.Warmup), Repeats: s.Repeats,
	}
	for _, t := range s.tiers() {
		r.Replicas = t.replicas
		r.WaitSeconds = append(r.WaitSeconds, t.wait.Seconds())
	}
	if len(l.Connections) > 0 {
		r.Requests = l.Requests
	} else {
		r.Arrivals, r.MaxConnections, r.DurationSeconds = l.Arrivals, l.MaxConnections, seconds(l.Duration)
	}
	return r
}

func seconds(d scenario.Duration) float64 { return time.Duration(d).Seconds() }

// withMesh reports whether any variant has sidecars.
func (s Spec) withMesh() bool {
	return slices.ContainsFunc(s.Latency.Variants, func(v string) bool { return v != VariantNone })
}

// list formats several values.
func list[T any](all []T) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ",")
}
