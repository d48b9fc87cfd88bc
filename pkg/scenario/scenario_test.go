package scenario_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/pkg/scenario"
)

const head = "apiVersion: scaler.mesh/v1\nkind: Scenario\n"

// TestParametersAreFields checks that the table and the type name the same fields.
func TestParametersAreFields(t *testing.T) {
	seen := map[string]bool{"apiVersion": true, "kind": true}
	flags := map[string]string{}
	for _, p := range scenario.Parameters {
		var s scenario.Scenario
		if _, ok := s.Text(p.Path); !ok {
			t.Errorf("%s is no field", p.Path)
		}
		if seen[p.Path] {
			t.Errorf("%s is in the table twice", p.Path)
		}
		seen[p.Path] = true
		for _, command := range append(slices.Clone(scenario.Rolling), scenario.Latency) {
			if !p.AppliesTo(command) {
				continue
			}
			for _, flag := range p.Flags(command) {
				if other := flags[command+" --"+flag]; other != "" {
					t.Errorf("%s --%s is of %s and of %s", command, flag, other, p.Path)
				}
				flags[command+" --"+flag] = p.Path
			}
		}
		if p.Group == "" || p.Help == "" || p.Compared == "" {
			t.Errorf("%s lacks a group, help or comparability", p.Path)
		}
		if p.Basic && p.Flag == "" {
			t.Errorf("%s is basic and has no flag", p.Path)
		}
		if strings.HasSuffix(p.Help, ".") || strings.Contains(p.Help, "\n") {
			t.Errorf("%s: help is one line without a full stop: %q", p.Path, p.Help)
		}
	}
	var walk func(reflect.Type, string)
	walk = func(of reflect.Type, path string) {
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := strings.TrimPrefix(path+"."+name, ".")
			if (&scenario.Document{}).Given(at); f.Type.Kind() == reflect.Struct {
				var s scenario.Scenario
				if _, leaf := s.Text(at); !leaf {
					walk(f.Type, at)
					continue
				}
			}
			if !seen[at] {
				t.Errorf("%s is not in the table", at)
			}
		}
	}
	walk(reflect.TypeFor[scenario.Scenario](), "")
}

// TestDefaultsAreGood checks that the defaults lie within their bounds.
func TestDefaultsAreGood(t *testing.T) {
	for command, defaults := range map[string]scenario.Scenario{scenario.Rollout: scenario.Default(), scenario.Latency: scenario.DefaultLatency()} {
		text, err := scenario.New(defaults).YAML(command, true)
		if err != nil {
			t.Fatal(err)
		}
		again := scenario.New(defaults)
		if err := again.Read("a.yaml", bytes.NewReader(text)); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, text)
		}
		if err := again.Check(command); err != nil {
			t.Errorf("%s: %v\n%s", command, err, text)
		}
		if !reflect.DeepEqual(again.Scenario, defaults) {
			t.Errorf("%s: read %+v\nwant %+v", command, again.Scenario, defaults)
		}
	}
}

func read(t *testing.T, text string) *scenario.Document {
	t.Helper()
	d := scenario.New(scenario.Default())
	if err := d.Read("a.yaml", strings.NewReader(text)); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return d
}

// full states every field but those that exclude each other.
const full = head + `repeats: 3
mesh:
  pods: [200, 400]
  services: 30
  namespaces: 2
  topology: star
  fanOut: 4
  seed: 7
  mode: [permissive, strict]
  settings: {mtls: strict, scope: all, authz: none}
  dataplane: [sidecar, ambient]
  podsPerNode: 40
  waypoints: namespace
  profile: typical
  parts: {virtualServices: 0, gateways: 2, outsideChurn: 0.5, replicaSkew: 1, gracePeriod: 5s}
  sidecars: {xds: sotw, version: 1.29.1, startDelay: "uniform:1s-5s", certificateLifetime: 1h, real: 2}
controlPlane:
  name: istiod
  version: "1.30"
  replicas: 2
  processors: 2
  memory: 512Mi
  env: [A=1, "B=x,y"]
load:
  arrival: 100/10s
  probes: 0
  changes: 5/s:route
  churn: 2/s
  faults: [kill-control-plane@steady, "reset-streams:20%@rollout"]
  certificateStorm: true
phases: {baseline: 1s, convergeTimeout: 20m, settle: 0s, steady: 90s, changes: 1m, cycle: 1m}
instrument: {workers: 2, dilation: 4, calibrate: false, priority: false}
`

// fullLatency states every field of latency alone but those that exclude each other.
const fullLatency = head + `repeats: 3
controlPlane: {name: istiod, version: "1.30"}
place: {context: staging, kubeconfig: config, namespace: istio-system, revision: a}
latency:
  rps: [50, 99.5]
  arrivals: poisson
  seed: 7
  duration: 20s
  maxConnections: 10
  killServerEvery: 2s
  http: 2
  keepalive: false
  timeout: 500ms
  rounds: 1
  warmup: 0s
  topology: chain
  servers: 2
  chain: [100ms, 1s]
  variants: [none, strict]
  proxy: ./proxy
  image: registry.example/scaler:1
  placement: two-nodes
  nodes: [b, a]
`

// TestRoundTripLatency checks that a document of latency that is printed and read again is the same,
// and applies.
func TestRoundTripLatency(t *testing.T) {
	for name, text := range map[string]string{"open": fullLatency, "closed": head + "latency: {connections: [32, 64], requests: 100, chain: 1s}\n"} {
		d := scenario.New(scenario.DefaultLatency())
		if err := d.Read("a.yaml", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if err := d.Check(scenario.Latency); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, all := range []bool{false, true} {
			printed, err := d.YAML(scenario.Latency, all)
			if err != nil {
				t.Fatal(err)
			}
			again := scenario.New(scenario.DefaultLatency())
			if err := again.Read("b.yaml", bytes.NewReader(printed)); err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			if err := again.Check(scenario.Latency); err != nil {
				t.Errorf("%s: %v\n%s", name, err, printed)
			}
			if !reflect.DeepEqual(again.Scenario, d.Scenario) {
				t.Errorf("%s, all %t: read\n%+v\nwant\n%+v\nfrom\n%s", name, all, again.Scenario, d.Scenario, printed)
			}
			if !all && name == "open" {
				golden(t, "latency.yaml", printed)
			}
		}
	}
}

// TestRoundTrip checks that a document that is printed and read again is the same.
func TestRoundTrip(t *testing.T) {
	d := read(t, full)
	for _, all := range []bool{false, true} {
		text, err := d.YAML(scenario.Rollout, all)
		if err != nil {
			t.Fatal(err)
		}
		if again := read(t, string(text)); !reflect.DeepEqual(again.Scenario, d.Scenario) {
			t.Errorf("all %t: read\n%+v\nwant\n%+v\nfrom\n%s", all, again.Scenario, d.Scenario, text)
		}
		if !all {
			golden(t, "full.yaml", text)
		}
	}
	// In JSON, as a record has it.
	data, err := json.Marshal(d.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	var again scenario.Scenario
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, d.Scenario) {
		t.Errorf("read %+v\nwant %+v", again, d.Scenario)
	}
}

// golden compares with a file of testdata, which -update writes.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got\n%s", path, got)
	}
}

// bad are documents that are refused, with the field and the line of the refusal.
var bad = []struct {
	name, text, path string
	line             int
	schema           bool // the schema refuses it at the same field
}{
	{"no version", "kind: Scenario\n", "apiVersion", 1, false},
	{"another version", "apiVersion: scaler.mesh/v2\nkind: Scenario\n", "apiVersion", 1, true},
	{"another kind", "apiVersion: scaler.mesh/v1\nkind: Mesh\n", "kind", 2, true},
	{"unknown key", head + "mesh: {}\nmash: {}\n", "", 4, true},
	{"unknown key below", head + "mesh:\n  pod: 3\n", "mesh", 4, true},
	{"no mapping", head + "mesh: 3\n", "mesh", 3, true},
	{"list in place of a mapping", head + "mesh:\n- pods\n", "mesh", 4, true},
	{"text for a number", head + "mesh:\n  pods: many\n", "mesh.pods", 4, true},
	{"quoted number", head + "mesh:\n  pods: \"200\"\n", "mesh.pods", 4, true},
	{"fraction of a pod", head + "mesh:\n  pods: [200, 0.5]\n", "mesh.pods", 4, true},
	{"no value", head + "mesh:\n  services:\n", "mesh.services", 4, true},
	{"number for a text", head + "controlPlane:\n  version: 1.30\n", "controlPlane.version", 4, true},
	{"list for one value", head + "mesh:\n  services: [1, 2]\n", "mesh.services", 4, true},
	{"no duration", head + "phases:\n  steady: 10\n", "phases.steady", 4, true},
	{"negative duration", head + "phases:\n  steady: -10s\n", "phases.steady", 4, true},
	{"no rate", head + "load:\n  churn: 5\n", "load.churn", 4, true},
	{"no arrival", head + "load:\n  arrival: 5x\n", "load.arrival", 4, true},
	{"no memory", head + "controlPlane:\n  memory: 1Gb\n", "controlPlane.memory", 4, true},
	{"unknown fault", head + "load:\n  faults: [explode@steady]\n", "load.faults", 4, true},
	{"fault in another phase", head + "load:\n  faults: [rolling-restart@probe]\n", "load.faults", 4, true},
	{"no boolean", head + "load:\n  certificateStorm: yes please\n", "load.certificateStorm", 4, true},
	{"shares", head + "controlPlane:\n  upgrade: {to: \"1\", canary: \"10\"}\n", "controlPlane.upgrade.canary", 4, true},
	{"dilation", head + "instrument:\n  dilation: fast\n", "instrument.dilation", 4, true},
	{"no pods", head + "mesh:\n  pods: 0\n", "mesh.pods", 4, true},
	{"too many runs", head + "repeats: 101\n", "repeats", 3, true},
	{"no choice", head + "mesh:\n  topology: ring\n", "mesh.topology", 4, true},
	{"key twice", head + "mesh:\n  pods: 3\n  pods: 4\n", "mesh.pods", 5, false},
	{"anchor", head + "mesh: &a\n  pods: 3\n", "mesh", 3, false},
	{"alias", head + "load: {arrival: all}\nmesh: *a\n", "", 0, false},
	{"two documents", head + "---\n" + head, "", 0, false},
	{"short lifetime", head + "mesh:\n  sidecars: {certificateLifetime: 1s}\n", "mesh.sidecars.certificateLifetime", 4, false},
	{"upgrade in a rollout", head + "controlPlane:\n  upgrade: {to: 1.31.0}\n", "controlPlane.upgrade.to", 4, false},
	{"captured and synthetic", head + "mesh:\n  file: m.yaml\n  services: 3\n", "mesh.services", 5, false},
	{"revision without a cluster", head + "place: {revision: a}\n", "place.revision", 3, false},
	{"no rates", head + "latency:\n  rps: [100, fast]\n", "latency.rps", 4, true},
	{"too many requests a second", head + "latency:\n  rps: 1e9\n", "latency.rps", 4, true},
	{"no waits", head + "latency:\n  chain: [100ms, 5]\n", "latency.chain", 4, true},
	{"HTTP/3", head + "latency:\n  http: 3\n", "latency.http", 4, true},
	{"HTTP version as a text", head + "latency:\n  http: \"2\"\n", "latency.http", 4, true},
	{"no placement", head + "latency:\n  placement: [one-node, moon]\n", "latency.placement", 4, true},
	{"latency in a rollout", head + "latency:\n  rps: 100\n", "latency.rps", 4, false},
	{"TLS of a server that is started", head + "controlPlane:\n  connection: {tlsCA: a}\n", "controlPlane.connection.tlsCA", 4, false},
}

// TestBad checks that errors name field and line, and that the schema refuses what it can at the
// same field.
func TestBad(t *testing.T) {
	schema := compiled(t)
	for _, test := range bad {
		t.Run(test.name, func(t *testing.T) {
			d := scenario.New(scenario.Default())
			before := d.Scenario
			err := d.Read("a.yaml", strings.NewReader(test.text))
			if err != nil && !reflect.DeepEqual(d.Scenario, before) {
				t.Error("a document that is refused changes the scenario")
			}
			if err == nil {
				err = d.Check(scenario.Rollout)
			}
			if err == nil {
				t.Fatal("it is taken")
			}
			var field *scenario.Error
			if test.path != "" || test.line > 0 {
				field = asError(t, err)
				if field.Path != test.path || field.Line != test.line {
					t.Errorf("%v: field %q, line %d, want %q, %d", err, field.Path, field.Line, test.path, test.line)
				}
			}
			if !test.schema {
				return
			}
			var document any
			if err := yaml.Unmarshal([]byte(test.text), &document); err != nil {
				t.Fatal(err)
			}
			refusal, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(document))
			if !ok {
				t.Fatal("the schema takes it")
			}
			if at := deepest(refusal); at != test.path {
				t.Errorf("the schema refuses %q, the program %q: %v", at, test.path, refusal)
			}
		})
	}
}

func asError(t *testing.T, err error) *scenario.Error {
	t.Helper()
	field, ok := errors.AsType[*scenario.Error](err)
	if !ok {
		t.Fatalf("%v is no *scenario.Error", err)
	}
	return field
}

// deepest returns the path of the field that a refusal is about: without an element of a list.
func deepest(e *jsonschema.ValidationError) string {
	path := ""
	for _, name := range e.InstanceLocation {
		if strings.Trim(name, "0123456789") != "" {
			path = strings.TrimPrefix(path+"."+name, ".")
		}
	}
	for _, cause := range e.Causes {
		if below := deepest(cause); len(below) > len(path) {
			path = below
		}
	}
	return path
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := scenario.Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestGood checks that the schema and the program take every preset, and a document with all fields.
func TestGood(t *testing.T) {
	schema := compiled(t)
	texts := map[string][]byte{"full": []byte(full), "latency": []byte(fullLatency)}
	for command, of := range map[string]struct {
		folder   string
		defaults scenario.Scenario
	}{scenario.Rollout: {"presets/", scenario.Default()}, scenario.Latency: {"presets/latency/", scenario.DefaultLatency()}} {
		for _, name := range scenario.PresetNames(command) {
			d := scenario.New(of.defaults)
			if err := d.ReadPreset(command, name); err != nil {
				t.Fatal(err)
			}
			if err := d.Check(command); err != nil {
				t.Errorf("preset %s: %v", name, err)
			}
			if note, err := scenario.PresetNote(command, name); note == "" || err != nil {
				t.Errorf("preset %s has no note (%v)", name, err)
			}
			text, err := os.ReadFile(of.folder + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			texts[name] = text
			if texts[name+", all"], err = d.YAML(command, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range texts {
		var document any
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSet checks how single values are set, and how they add to a document.
func TestSet(t *testing.T) {
	d := read(t, full)
	for _, set := range [][3]string{
		{"mesh.pods", "100,300", "--pods"}, {"load.faults", "kill-control-plane@probe", "--fault"}, {"load.faults", "pause-scaler:1s@steady", "--fault"},
		{"controlPlane.env", "C=1,2", ""}, {"mesh.parts.zones", "3", ""}, {"phases.settle", "0s", "--settle"}, {"mesh.seed", "0", "--seed"},
	} {
		if err := d.Set(set[0], set[1], set[2]); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"mesh.pods": "100,300", "load.faults": "kill-control-plane@probe,pause-scaler:1s@steady", "controlPlane.env": "C=1,2",
		"mesh.parts.zones": "3", "phases.settle": "0s", "mesh.seed": "0", "mesh.services": "30", "load.arrival": "100/10s",
	} {
		if got, _ := d.Scenario.Text(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	for text, want := range map[string]string{"200": "200", "200, 400": "200,400", "-5": "-5"} { // bounds are Check's
		if err := d.Set("mesh.pods", text, "--pods"); err != nil {
			t.Error(err)
		}
		if got, _ := d.Scenario.Text("mesh.pods"); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "200,,400", ",200", "200,", "1e9", "2.5", "200;400"} {
		if err := d.Set("mesh.pods", text, "--pods"); err == nil || !strings.Contains(err.Error(), "want a whole number, or several") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, wrong := range [][4]string{
		{"mesh.pods", "99999999999999999999", "--pods", `mesh.pods: got "99999999999999999999", want a number of 64 bits at most`},
		{"mesh.pods", "x", "--pods", `mesh.pods: got "x", want a whole number, or several as in 200,400,800`},
		{"mesh", "x", "", "mesh: want a field of a scenario"},
		{"mesh.pod", "x", "", "mesh.pod: want a field of a scenario"},
		{"mesh.seed", "5", "--other", "mesh.seed: want it given once, not as --seed and --other"},
		{"phases.steady", "5", "--steady", `phases.steady: got "5", want a duration, as in 90s or 15m`},
		{"load.certificateStorm", "maybe", "", `load.certificateStorm: got "maybe", want true or false`},
	} {
		if err := d.Set(wrong[0], wrong[1], wrong[2]); err == nil || !strings.HasPrefix(err.Error(), wrong[3]) {
			t.Errorf("%v, want %s", err, wrong[3])
		}
	}
}

// TestLarge checks that a document that is too large, or would take too long, is refused.
func TestLarge(t *testing.T) {
	for name, text := range map[string]string{
		"size":    head + "mesh:\n" + strings.Repeat("  # comment\n", scenario.MaxDocument/10),
		"deep":    head + "mesh: " + strings.Repeat("[", 20_000),
		"anchors": head + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]\n",
	} {
		if err := scenario.New(scenario.Default()).Read("a.yaml", strings.NewReader(text)); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

// FuzzRead checks that no document makes the reader panic, and that what it takes is the same
// when it was printed and read again.
func FuzzRead(f *testing.F) {
	f.Add(full)
	f.Add(fullLatency)
	for _, test := range bad {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := scenario.New(scenario.Default())
		if d.Read("a.yaml", strings.NewReader(text)) != nil {
			return
		}
		printed, err := d.YAML(scenario.Rollout, false)
		if err != nil {
			t.Fatal(err)
		}
		again := scenario.New(scenario.Default())
		if err := again.Read("b.yaml", bytes.NewReader(printed)); err != nil {
			t.Fatalf("%v\nof\n%s", err, printed)
		}
		if !reflect.DeepEqual(again.Scenario, d.Scenario) {
			t.Errorf("read\n%+v\nwant\n%+v\nof\n%s", again.Scenario, d.Scenario, printed)
		}
	})
}
