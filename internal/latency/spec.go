package latency

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/pkg/record"
)

// The variants of `scaler latency`: what is between client and server. A control plane
// has none and the modes of its driver.
const (
	VariantNone       = "none"       // nothing
	VariantPermissive = "permissive" // two sidecars; the server's would take plaintext too
	VariantStrict     = "strict"     // two sidecars; plaintext, and any other caller, is refused
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

// Spec holds the options of `scaler latency`. The zero value of a field is not its
// default: DefaultSpec has those.
type Spec struct {
	RPS         []float64 // open loop: requests a second, one after another
	Connections []int     // closed loop: connections that are always busy; empty = open loop
	Requests    int       // closed loop: of each variant and repeat
	Preset      string    // "" or the name of one of Presets; see ExpandPreset
	Variants    []string

	Arrivals       string // of the open loop
	Seed           uint64 // of Poisson arrivals
	HTTP           int    // 1 or 2
	Keepalive      bool
	MaxConnections int           // open loop: requests that may be under way
	Timeout        time.Duration // from when a request was due

	Topology  string
	Servers   int             // of a pair 1, of a star all, of a chain those of each tier; 0 = 1, 3, 3
	Chain     []time.Duration // how long each tier of a chain waits, the nearest first
	KillEvery time.Duration   // between two kills of a server; 0 = none

	Duration time.Duration // open loop: of each rate, variant and repeat, warm-ups excluded
	Rounds   int           // that a repeat of each variant is divided into
	Warmup   time.Duration // before each round
	Repeats  int

	// Existing places client and servers in pods of an existing cluster; nil = they are
	// processes of this machine.
	Existing   *Existing
	Placements []string // of these pods; Inspect fills in what the cluster has room for where there are none

	ControlPlane string // the name of one of Drivers; of the variants with sidecars
	// Proxy is the program of the sidecars, for a control plane whose driver has
	// Intercepts.GivenProxy.
	Proxy string
	// Drivers are the available control planes; nil = those of package drivers.
	Drivers  []controlplane.Driver
	Programs component.Options // where programs are found or built
	State    string            // folder that holds what a run needs while it lasts
	Out      string            // folder that the run's folder is made in
}

// DefaultSpec returns the options of `scaler latency` without flags. RPS is used if
// neither rates nor connections are given.
func DefaultSpec() Spec {
	return Spec{
		RPS:      []float64{100, 500, 1000},
		Requests: 10_000,
		Variants: []string{VariantNone, VariantPermissive, VariantStrict},
		Arrivals: string(dataplane.Constant), Seed: 1,
		HTTP: 1, Keepalive: true, MaxConnections: 1024, Timeout: 10 * time.Second,
		Topology: PairTopology,
		Duration: 10 * time.Second, Rounds: 4, Warmup: time.Second, Repeats: 1,
		ControlPlane: drivers.Default().Name,
	}
}

// mostRepeats limits the duration if --repeats is mistyped.
const mostRepeats = 100

// maxRPS is more than one machine can send.
const maxRPS = 1_000_000

// Validate returns an error that names the first flag with an invalid value, the value,
// and what is wanted. Nothing is started or created before it returns nil.
func (s Spec) Validate() error {
	if err := s.validateLoad(); err != nil {
		return err
	}
	if err := s.Programs.Validate(); err != nil {
		return err
	}
	driver, err := s.Driver()
	if err != nil {
		return err
	}
	if err := s.validateVariants(driver); err != nil {
		return err
	}
	if err := s.validateExisting(driver); err != nil {
		return err
	}
	if err := s.validateProxy(driver); err != nil {
		return err
	}
	for _, choice := range []struct {
		flag, value string
		want        []string
	}{
		{"topology", s.Topology, []string{PairTopology, StarTopology, ChainTopology}},
	} {
		if err := experiment.CheckOneOf(choice.flag, choice.value, choice.want); err != nil {
			return err
		}
	}
	if err := s.validateTopology(); err != nil {
		return err
	}
	return s.validateTimes()
}

// Driver returns the control plane that is asked for. Its error names the flag.
func (s Spec) Driver() (controlplane.Driver, error) {
	all := s.Drivers
	if all == nil {
		all = drivers.All()
	}
	d, _, err := experiment.FindDriver(controlplane.ForLatency(all), s.ControlPlane)
	return d, err
}

// Variants returns the variants of a control plane: none, and its modes.
func Variants(d controlplane.Driver) []string { return append([]string{VariantNone}, d.ModeNames()...) }

func (s Spec) validateVariants(d controlplane.Driver) error {
	all := Variants(d)
	if len(s.Variants) == 0 {
		return fmt.Errorf(`parsing --variants "": want %s`, strings.Join(all, ", "))
	}
	for i, v := range s.Variants {
		if !slices.Contains(all, v) {
			return fmt.Errorf("parsing --variants %q: want any of %s", v, strings.Join(all, ", "))
		}
		if slices.Contains(s.Variants[:i], v) {
			return fmt.Errorf("parsing --variants %q: want each once", v)
		}
	}
	return nil
}

// validateProxy checks that a proxy program is given if, and only if, the control plane's
// proxy is one that scaler does not have.
func (s Spec) validateProxy(d controlplane.Driver) error {
	given := d.GivenProxy()
	switch {
	case given == "" && s.Proxy != "":
		return fmt.Errorf("parsing --proxy %q: want it with a control plane whose proxy scaler does not have; that of %s is Envoy: --envoy", s.Proxy, d.Name)
	case given != "" && s.Proxy == "" && s.withMesh():
		return fmt.Errorf(`parsing --proxy "": want the path of %s, which scaler does not have, or --variants %s`, given, VariantNone)
	case s.Proxy == "":
		return nil
	}
	if err := component.Executable(s.Proxy); err != nil {
		return fmt.Errorf("parsing --proxy %q: %w: want the path of %s", s.Proxy, err, given)
	}
	if info, err := os.Stat(s.Proxy); err != nil || info.Mode().Perm()&0o001 == 0 {
		return fmt.Errorf("parsing --proxy %q: want a program that all users can execute (chmod a+x): it runs as user %d", s.Proxy, d.Latency.Intercepts.User)
	}
	return nil
}

func (s Spec) validateLoad() error {
	if len(s.Connections) == 0 && len(s.RPS) == 0 {
		return fmt.Errorf(`parsing --rps "": want requests a second, as in 100,500,1000`)
	}
	for i, rps := range s.RPS {
		if !(rps >= 1 && rps <= maxRPS) {
			return fmt.Errorf("parsing --rps %g: want 1 to %d requests a second", rps, maxRPS)
		}
		if slices.Contains(s.RPS[:i], rps) {
			return fmt.Errorf("parsing --rps %g: want each rate once; --repeats runs them several times", rps)
		}
	}
	for i, n := range s.Connections {
		if n < 1 || n > mostConnections {
			return fmt.Errorf("parsing --connections %d: want 1 to %d", n, mostConnections)
		}
		if slices.Contains(s.Connections[:i], n) {
			return fmt.Errorf("parsing --connections %d: want each number once; --repeats runs them several times", n)
		}
	}
	if _, err := dataplane.ParseArrivals(s.Arrivals); err != nil {
		return err
	}
	if s.HTTP != 1 && s.HTTP != 2 {
		return fmt.Errorf("parsing --http %d: want 1 or 2", s.HTTP)
	}
	if s.HTTP == 2 && !s.Keepalive {
		return fmt.Errorf("parsing --keepalive false: want it with --http 1")
	}
	for _, n := range []struct {
		flag             string
		value, low, high int
	}{
		{"requests", s.Requests, 1, 100_000_000},
		{"max-connections", s.MaxConnections, 1, mostConnections},
		{"rounds", s.Rounds, 1, 1000},
		{"repeats", s.Repeats, 1, mostRepeats},
	} {
		if n.value < n.low || n.value > n.high {
			return fmt.Errorf("parsing --%s %d: want %d to %d", n.flag, n.value, n.low, n.high)
		}
	}
	return s.validateRequests()
}

// validateRequests checks the options of a closed loop.
func (s Spec) validateRequests() error {
	if len(s.Connections) > 0 && s.Requests < s.Rounds {
		return fmt.Errorf("parsing --requests %d: want %d or more, one for each of --rounds %d", s.Requests, s.Rounds, s.Rounds)
	}
	return nil
}

// mostConnections is a little less than the number of ports of one address.
const mostConnections = 20_000

func (s Spec) validateTopology() error {
	if s.Servers < 0 || s.Servers > 20 {
		return fmt.Errorf("parsing --servers %d: want 1 to 20", s.Servers)
	}
	if s.Topology == PairTopology && s.Servers > 1 {
		return fmt.Errorf("parsing --servers %d: want 1 in a pair, or --topology %s", s.Servers, StarTopology)
	}
	if (s.Topology == ChainTopology) != (len(s.Chain) > 0) {
		return fmt.Errorf("parsing --chain %q: want how long each tier waits, as in 100ms,100ms, with --topology %s alone", list(s.Chain), ChainTopology)
	}
	if len(s.Chain) > 5 {
		return fmt.Errorf("parsing --chain %q: want 5 tiers at most", list(s.Chain))
	}
	for _, wait := range s.Chain {
		if wait < 0 || wait >= s.Timeout {
			return fmt.Errorf("parsing --chain %s: want waits from 0 to less than --timeout %s", wait, s.Timeout)
		}
	}
	return nil
}

func (s Spec) validateTimes() error {
	for _, d := range []struct {
		flag             string
		value, low, high time.Duration
	}{
		{"duration", s.Duration, time.Second, 24 * time.Hour},
		{"warmup", s.Warmup, 0, time.Hour},
		{"timeout", s.Timeout, time.Millisecond, time.Hour},
	} {
		if d.value < d.low || d.value > d.high {
			return fmt.Errorf("parsing --%s %s: want a duration from %s to %s", d.flag, d.value, d.low, d.high)
		}
	}
	if s.Duration/time.Duration(s.Rounds) < 100*time.Millisecond {
		return fmt.Errorf("parsing --rounds %d: want rounds of 100ms at least, of --duration %s", s.Rounds, s.Duration)
	}
	if s.KillEvery != 0 && (s.KillEvery < time.Second || s.KillEvery >= s.Duration) {
		return fmt.Errorf("parsing --kill-server-every %s: want a duration from 1s to less than --duration %s", s.KillEvery, s.Duration)
	}
	if s.KillEvery != 0 && len(s.Connections) > 0 {
		return fmt.Errorf("parsing --kill-server-every %s: want it with --rps, not with --connections", s.KillEvery)
	}
	return nil
}

// Prepare fills in values that follow from others. given reports whether the user or a
// preset set a flag.
func (s Spec) Prepare(given func(flag string) bool) (Spec, error) {
	if given("connections") {
		for _, flag := range []string{"rps", "arrivals", "duration"} {
			if given(flag) {
				return s, fmt.Errorf("parsing --connections %s: want a closed loop without --%s, or --rps", list(s.Connections), flag)
			}
		}
		s.RPS = nil
	} else if given("requests") {
		return s, fmt.Errorf("parsing --requests %d: want it with --connections", s.Requests)
	}
	if d, err := s.Driver(); err == nil && !given("variants") {
		s.Variants = Variants(d)
	}
	if given("chain") && !given("topology") {
		s.Topology = ChainTopology
	}
	if given("servers") && s.Servers < 1 {
		return s, fmt.Errorf("parsing --servers %d: want 1 to 20", s.Servers)
	}
	if given("servers") && !given("topology") && s.Topology == PairTopology && s.Servers > 1 {
		s.Topology = StarTopology
	}
	if given("kill-server-every") {
		if given("rounds") && s.Rounds > 1 {
			return s, fmt.Errorf("parsing --rounds %d: want 1 with --kill-server-every", s.Rounds)
		}
		s.Rounds = 1 // the time between kills is one variant's own
	}
	return s, nil
}

// tierSpec is one tier of applications behind the load generator.
type tierSpec struct {
	name     string
	replicas int
	wait     time.Duration
}

// tiers returns the tiers of the topology, the nearest first.
func (s Spec) tiers() []tierSpec {
	servers := s.Servers
	if servers == 0 {
		servers = map[string]int{PairTopology: 1, StarTopology: 3, ChainTopology: 3}[s.Topology]
	}
	if s.Topology != ChainTopology {
		return []tierSpec{{"server", servers, 0}}
	}
	var tiers []tierSpec
	for i, wait := range s.Chain {
		tiers = append(tiers, tierSpec{"hop" + strconv.Itoa(i+1), servers, wait})
	}
	return tiers
}

func (s Spec) record(driver controlplane.Driver) record.LatencySpec {
	r := record.LatencySpec{
		RPS: s.RPS, Connections: s.Connections, Variants: s.Variants, Preset: s.Preset,
		Seed: s.Seed, HTTP: s.HTTP, Keepalive: s.Keepalive, TimeoutSeconds: s.Timeout.Seconds(),
		Topology: s.Topology, KillEverySeconds: s.KillEvery.Seconds(),
		Redirected: driver.Latency.Intercepts != nil || s.Existing != nil, Placements: s.Placements,
		Rounds: s.Rounds, WarmupSeconds: s.Warmup.Seconds(), Repeats: s.Repeats,
	}
	for _, t := range s.tiers() {
		r.Replicas = t.replicas
		r.WaitSeconds = append(r.WaitSeconds, t.wait.Seconds())
	}
	if len(s.Connections) > 0 {
		r.Requests = s.Requests
	} else {
		r.Arrivals, r.MaxConnections, r.DurationSeconds = s.Arrivals, s.MaxConnections, s.Duration.Seconds()
	}
	return r
}

// withMesh reports whether any variant has sidecars.
func (s Spec) withMesh() bool {
	return slices.ContainsFunc(s.Variants, func(v string) bool { return v != VariantNone })
}

// ParseRates reads requests a second, as in 100,500,1000.
func ParseRates(text string) ([]float64, error) {
	return parseList(text, func(field string) (float64, error) {
		rate, err := strconv.ParseFloat(field, 64)
		if err == nil && (math.IsNaN(rate) || math.IsInf(rate, 0)) {
			err = strconv.ErrRange
		}
		return rate, err
	})
}

// ParseWaits reads durations, as in 100ms,100ms.
func ParseWaits(text string) ([]time.Duration, error) { return parseList(text, time.ParseDuration) }

func parseList[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var all []T
	for field := range strings.SplitSeq(text, ",") {
		value, err := parse(strings.TrimSpace(field))
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

// list formats several values as a flag takes them.
func list[T any](all []T) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ",")
}
