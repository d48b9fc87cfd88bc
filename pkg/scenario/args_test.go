package scenario_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

func TestArgs(t *testing.T) {
	for want, change := range map[string]func(*scenario.Scenario){
		"":                  func(*scenario.Scenario) {},
		"--pods 100,200":    func(s *scenario.Scenario) { s.Mesh.Pods = scenario.List[int]{100, 200} },
		"--mode strict":     func(s *scenario.Scenario) { s.Mesh.Mode = scenario.List[string]{"strict"} },
		"--arrival 100/10s": func(s *scenario.Scenario) { _ = s.Load.Arrival.UnmarshalText([]byte("100/10s")) },
		"--probes 0":        func(s *scenario.Scenario) { s.Load.Probes = 0 },
		"--priority=false":  func(s *scenario.Scenario) { s.Instrument.Priority = false },
		"--control-plane-env A=b --control-plane-env C=d,e": func(s *scenario.Scenario) { s.ControlPlane.Env = []string{"A=b", "C=d,e"} },
		"--set mesh.parts.zones=3":                          func(s *scenario.Scenario) { s.Mesh.Parts.Zones = new(3) },
		"--control-plane osm --mode permissive": func(s *scenario.Scenario) {
			s.ControlPlane.Name, s.Mesh.Mode = "osm", scenario.List[string]{"permissive"}
		},
	} {
		s := scenario.Default()
		s.Mesh.Mode, s.Mesh.Sidecars.XDS, s.ControlPlane.Processors = scenario.List[string]{"permissive"}, "delta", scenario.DefaultProcessors
		change(&s)
		got := strings.Join(s.Args(scenario.Rollout), " ")
		for _, of := range []string{" --xds delta", " --control-plane-cpus 8"} { // which are stated for another control plane
			if s.ControlPlane.Name != "istiod" {
				got = strings.Replace(got, of, "", 1)
			}
		}
		if words := strings.Fields(want); !slices.Equal(sorted(strings.Fields(got)), sorted(words)) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}

// The arguments of a scenario ask for it: what changes a figure is what it was.
func TestArgsAskForTheScenario(t *testing.T) {
	f, err := os.Open("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, again := scenario.New(scenario.Default()), scenario.New(scenario.Default())
	if err := d.Read("full.yaml", f); err != nil {
		t.Fatal(err)
	}
	args := d.Scenario.Args(scenario.Rollout)
	for len(args) > 0 {
		name, value, both := strings.Cut(args[0], "=")
		args = args[1:]
		if !both {
			value, args = args[0], args[1:]
		}
		path := ""
		if name == "--set" {
			path, value, _ = strings.Cut(value, "=")
		}
		for _, p := range scenario.For(scenario.Rollout) {
			if slices.Contains(p.Flags(scenario.Rollout), strings.TrimPrefix(name, "--")) {
				path = p.Path
			}
		}
		if err := again.Set(path, value, name); err != nil {
			t.Fatal(err)
		}
	}
	asked, given := d.Scenario.Applicable(), again.Scenario.Applicable()
	compared := 0
	for _, p := range scenario.For(scenario.Rollout) {
		want, _ := asked.Text(p.Path)
		if got, _ := given.Text(p.Path); p.Compared != scenario.Irrelevant && want != p.Istiod {
			compared++
			if got != want {
				t.Errorf("%s: got %q, want %q", p.Path, got, want)
			}
		}
	}
	if compared < 30 {
		t.Errorf("only %d fields were compared", compared)
	}
}
