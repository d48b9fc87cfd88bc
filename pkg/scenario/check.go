package scenario

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultProbes is the least number of changes whose median has an interval of confidence (stats.ClustersNeeded).
const defaultProbes = 6

// Default returns the scenario of a command without flags: 200 pods, permissive, that come and start as in a stock
// cluster, against istiod on a cluster that the run starts.
func Default() Scenario {
	seconds := func(n int) Duration { return Duration(time.Duration(n) * time.Second) }
	return Scenario{
		APIVersion: APIVersion, Kind: Kind, Repeats: 1,
		Mesh: Mesh{
			Pods: List[int]{200}, Topology: "layers", FanOut: 3, Seed: 1, Dataplane: List[string]{"sidecar"},
			PodsPerNode: 20, Waypoints: "none", Profile: "plain", Scale: List[int]{1},
			Sidecars: Sidecars{StartDelay: new(stockStart)},
		},
		ControlPlane: ControlPlane{Name: "istiod", Replicas: 1, Upgrade: Upgrade{Canary: Shares{0.1, 0.5, 1}, Pause: seconds(15)}},
		Load:         Load{Arrival: Arrival{Rate: stockRate}, Probes: defaultProbes},
		Phases:       Phases{Baseline: seconds(5), ConvergeTimeout: seconds(600), Settle: seconds(5), Steady: seconds(30), Changes: seconds(30)},
		Place:        Place{RefuseIf: new("apiserver-p99>1s")},
		Instrument:   Instrument{Workers: 1, Calibrate: true, Priority: true},
	}
}

// DefaultLatency returns the scenario of 'scaler latency' without flags: a client and a server, at three
// rates, with sidecars of istiod and without.
func DefaultLatency() Scenario {
	return Scenario{
		APIVersion: APIVersion, Kind: Kind, Repeats: 1,
		ControlPlane: ControlPlane{Name: "istiod"},
		Latency: Requests{
			RPS: List[float64]{100, 500, 1000}, Arrivals: "constant", Seed: 1, Duration: Duration(10 * time.Second), MaxConnections: 1024,
			Requests: 10_000, HTTP: 1, Keepalive: true, Timeout: Duration(10 * time.Second), Warmup: Duration(time.Second),
		},
	}
}

// Check returns an *Error for the first field that was given and that a command, the place, the
// mesh or the control plane of the scenario does not have, or whose value is out of its bounds.
// A preset's value of a field that the command or the scenario does not have is replaced by the default: with --mesh,
// for example, a preset's number of pods does not apply. Whoever runs the scenario checks what depends on the control plane's abilities, on
// files or on this machine.
func (d *Document) Check(command string) error {
	for _, p := range Parameters {
		if !d.Given(p.Path) {
			continue
		}
		v, _, _ := d.Scenario.leaf(p.Path)
		fail := func(want string) error {
			return &Error{Path: p.Path, Line: d.given[p.Path].Line, Value: shown(v), Want: want}
		}
		want := d.Scenario.misplaced(p.Where)
		if p.Where == NodeProxies && d.Scenario.Mesh.File != "" {
			want = "" // the data plane may follow from the file, which is read by who runs the scenario
		}
		if !p.AppliesTo(command) {
			want = "none with 'scaler " + command + "'"
		}
		if want != "" {
			if d.given[p.Path].Preset {
				was, _, _ := d.defaults.leaf(p.Path)
				v.Set(was)
				delete(d.given, p.Path)
				continue
			}
			return fail(want)
		}
		if want := p.check(v); want != "" {
			return fail(want)
		}
	}
	return nil
}

// Command returns the command that makes runs of the scenario: upgrade, where it has an upgrade, else rollout.
func (s *Scenario) Command() string {
	if s.ControlPlane.Upgrade.To != "" {
		return Upgrades
	}
	return Rollout
}

// Applicable returns the scenario without what its command, mesh, place or control plane does not have, so that a command
// reads it back.
func (s Scenario) Applicable() Scenario {
	whole, command := s, s.Command()
	for _, p := range Parameters {
		if whole.has(p, command) {
			continue
		}
		if v, _, ok := s.leaf(p.Path); ok {
			v.SetZero()
		}
	}
	return s
}

// Args returns the arguments of a command that asks for the scenario: a flag, or --set, for each field that differs from [Default].
// Fields that change no figure are left out.
func (s Scenario) Args(command string) (args []string) {
	defaults := Default()
	for _, p := range Parameters {
		v, field, ok := s.leaf(p.Path)
		if !ok || p.Compared == Irrelevant || !s.has(p, command) {
			continue
		}
		if was, _, _ := defaults.leaf(p.Path); reflect.DeepEqual(v.Interface(), was.Interface()) {
			continue
		}
		isZero := p.Min == 0 && p.Max > 0 || p.Off // is a value, too
		if empty(v, field) && !isZero && v.Kind() != reflect.Bool {
			continue
		}
		texts := leafTexts(v)
		if !adds(v.Type()) {
			texts = []string{strings.Join(texts, ",")}
		}
		if s.ControlPlane.Name == defaults.ControlPlane.Name && slices.Equal(texts, []string{p.Istiod}) {
			continue
		}
		flags := p.Flags(command)
		for _, text := range texts {
			switch {
			case len(flags) == 0:
				args = append(args, "--set", p.Path+"="+text)
			case v.Kind() == reflect.Bool:
				args = append(args, "--"+flags[0]+"="+text)
			default:
				args = append(args, "--"+flags[0], text)
			}
		}
	}
	return args
}

// has reports whether the scenario has a parameter with a command.
func (s *Scenario) has(p Parameter, command string) bool {
	return s.misplaced(p.Where) == "" && p.AppliesTo(command)
}

// misplaced states what a parameter that is bound to a place, mesh or control plane wants; "" if
// the scenario has it.
func (s *Scenario) misplaced(where Where) string {
	external := strings.Contains(s.ControlPlane.Name, "://")
	switch {
	case where == InCluster && s.Place.Context == "":
		return "it with place.context"
	case where == ExternalServer && !external:
		return "none with controlPlane.name " + s.ControlPlane.Name + ", which scaler starts and connects to itself"
	case where == SyntheticMesh && s.Mesh.File != "":
		return "none with mesh.file, which states it"
	case where == CapturedMesh && s.Mesh.File == "":
		return "it with mesh.file"
	case where == OwnProxies && len(s.Mesh.Dataplane) > 0 && !slices.Contains(s.Mesh.Dataplane, "sidecar"):
		return "it with mesh.dataplane sidecar"
	case where == NodeProxies && !slices.Contains(s.Mesh.Dataplane, "ambient") && !slices.Contains(s.Mesh.Dataplane, "mixed"):
		return "it with mesh.dataplane ambient or mixed"
	case (where == InUpgrade || where == InWaves) && s.ControlPlane.Upgrade.To == "":
		return "it with controlPlane.upgrade.to"
	case where == InWaves && s.ControlPlane.Upgrade.InPlace:
		return "none with controlPlane.upgrade.inPlace, which has no waves"
	case where == WithChanges && s.Load.Changes.PerSecond == 0:
		return "it with load.changes"
	case where == ClosedLoop && len(s.Latency.Connections) == 0:
		return "it with latency.connections"
	case where == OpenLoop && len(s.Latency.Connections) > 0:
		return "none with latency.connections, a closed loop"
	}
	return ""
}

// check states what the parameter wants in place of a value; "" if the value is good.
func (p Parameter) check(v reflect.Value) string {
	if len(p.Choices) > 0 {
		for _, text := range leafTexts(v) {
			if !slices.Contains(p.Choices, text) {
				return oneOf(p.Choices)
			}
		}
	}
	if p.Max > 0 && !(p.Off && v.IsZero()) {
		for _, n := range numbers(v) {
			if !(n >= p.Min && n <= p.Max) { // not a number is neither
				return p.bounds()
			}
		}
	}
	return ""
}

// bounds states the bounds of the parameter in its unit.
func (p Parameter) bounds() string {
	switch leafOf(typeOf(p.Path)) {
	case reflect.TypeFor[Duration]():
		return "a duration from " + inSeconds(p.Min).String() + " to " + inSeconds(p.Max).String()
	case reflect.TypeFor[Bytes]():
		return "from " + Bytes(p.Min).String() + " to " + Bytes(p.Max).String()
	}
	return strconv.FormatFloat(p.Min, 'f', -1, 64) + " to " + strconv.FormatFloat(p.Max, 'f', -1, 64)
}

func inSeconds(n float64) Duration { return Duration(n * float64(time.Second)) }

// numbers returns the values of a leaf as numbers; durations in seconds.
func numbers(v reflect.Value) []float64 {
	if d, ok := reflect.TypeAssert[Duration](v); ok {
		return []float64{time.Duration(d).Seconds()}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return numbers(v.Elem())
	case reflect.Int, reflect.Int64:
		return []float64{float64(v.Int())}
	case reflect.Float64:
		return []float64{v.Float()}
	case reflect.Slice:
		var all []float64
		for i := range v.Len() {
			all = append(all, numbers(v.Index(i))...)
		}
		return all
	}
	return nil
}

// CheckField returns an *Error if the value of the field at a path is out of its bounds or none of
// its choices, whether it was given or not.
func (s *Scenario) CheckField(path string) error {
	p, _ := Of(path)
	if v, _, ok := s.leaf(path); ok {
		if want := p.check(v); want != "" {
			return s.Refuse(path, want)
		}
	}
	return nil
}

// CheckOne returns an *Error for the first field whose values are one run each, if it has several.
func (s *Scenario) CheckOne() error {
	for _, p := range Parameters {
		if v, _, ok := s.leaf(p.Path); ok && p.Several != "" && v.Len() > 1 {
			return s.Refuse(p.Path, "one")
		}
	}
	return nil
}

// Refuse makes an error of the field at a path, with the value that it has.
func (s *Scenario) Refuse(path, want string) error {
	e := &Error{Path: path, Want: want}
	if v, _, ok := s.leaf(path); ok {
		e.Value = shown(v)
	}
	return e
}

// shown returns the value of a leaf as an error prints it.
func shown(v reflect.Value) string {
	text := strings.Join(leafTexts(v), ",")
	if stringly(v.Type()) && leafOf(v.Type()) != reflect.TypeFor[Duration]() {
		return strconv.Quote(text)
	}
	return text
}
