package assess

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

const mebibyte = 1 << 20

func usage(mean, peak float64) *record.Usage {
	return &record.Usage{MemoryBytes: &record.Level{Mean: new(mean * mebibyte), Peak: new(peak * mebibyte)}}
}

// step returns a run that completed, whose istiod has a limit of 200 MiB and used so much memory at rest and at its peak.
func step(version string, rest, peak float64) Step {
	r := &record.Run{
		Status: record.StatusCompleted, Scenario: scenario.Default(), Mesh: &record.Mesh{}, Pods: &record.Pods{Requested: 10},
		Phases:       []record.Phase{{Name: record.PhaseRollout}},
		ControlPlane: &record.ByPhase[*record.Usage]{Rollout: usage(rest, peak), Steady: usage(rest, rest)},
	}
	r.Environment.ControlPlane = record.ControlPlaneSource{Version: version, MemoryLimitBytes: 200 * mebibyte}
	return Step{Run: r}
}

// facts returns the facts of an upgrade without findings.
func facts() Facts {
	f := Facts{
		Captured: Captured{Release: "1.29.1", Installed: true, Replicas: 1, Limits: map[string]string{"memory": "200Mi"}},
		From:     step("1.29.1", 80, 100), Onto: step("1.31.0", 80, 110), Upgrade: step("1.29.1", 80, 100),
		Diff: &diff.Result{Sidecars: 10},
	}
	f.Onto.Run.Faults = []record.Fault{{Name: "restart-control-plane", Seconds: new(1.5)}}
	f.Upgrade.Run.Upgrade = &record.Upgrade{
		From: record.UpgradeVersion{Version: "1.29.1"}, To: record.UpgradeVersion{Version: "1.31.0"},
		Stages: map[string]*record.UpgradeStage{"wave-1": {Pods: new(10), To: &record.UpgradeSide{ControlPlane: usage(80, 120)}}},
	}
	return f
}

// onNodes gives an istiod 0.3 cores on average and 0.45 in a second, in a wave, on a machine of speed 1; production's nodes have a speed,
// and istiod requests processors of them.
func onNodes(f *Facts, speed float64, request string) {
	for _, s := range []Step{f.From, f.Onto, f.Upgrade} {
		one := &record.Speed{Work: "2", Speed: 1, Low: 1, High: 1}
		s.Run.Environment.Processor = &record.Processor{Run: one}
	}
	f.Upgrade.Run.Upgrade.Stages["wave-1"].To.ControlPlane.Cores = &record.Level{Mean: new(0.3), Peak: new(0.45)}
	f.Captured.NodeSpeed, f.Captured.Requests = &record.Speed{Work: "2", Speed: speed}, map[string]string{"cpu": request}
}

// observed returns a history of memory.
func observed(p50, most float64) *capture.History {
	return &capture.History{Figures: []capture.Observed{{Figure: "memory", Percentiles: capture.Percentiles{P50: p50 * mebibyte, Max: most * mebibyte}}}}
}

func unconverged(s Step, phase string) Step {
	s.Run.Status = record.StatusUnconverged
	s.Run.Phases = append(s.Run.Phases, record.Phase{Name: record.PhaseName(phase)})
	return s
}

// replace records that the run's version ran in place of another.
func replace(r *record.Run, asked string) {
	r.Warnings = append(r.Warnings, record.Warning{About: record.AboutVersion, Reason: record.ReasonReplacedVersion, Component: r.Environment.ControlPlane.Version, Detail: asked})
}

func TestProcessors(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Facts)
		outcome Outcome
		text    string // in the check's
		set     []string
	}{
		"enough":              {func(f *Facts) { onNodes(f, 0.5, "1200m") }, Holds, "and requests 1.2", nil},
		"within the interval": {func(f *Facts) { onNodes(f, 0.5, "500m") }, NotChecked, "within that interval", nil},
		"no request":          {func(f *Facts) { onNodes(f, 0.5, "") }, Needs, "and requests no processors", []string{"resources.requests.cpu=1150m"}},
		"not known what it requests": {func(f *Facts) {
			onNodes(f, 0.5, "")
			f.Captured.Installed = false
		}, NotChecked, "what it requests is not known", nil},
		"a limit below the request": {func(f *Facts) {
			onNodes(f, 0.5, "300m")
			f.Captured.Limits["cpu"] = "1"
		}, Needs, "istiod needs 0.60", []string{"resources.requests.cpu=1150m", "resources.limits.cpu=1150m"}},
		"it waited for processors": {func(f *Facts) {
			onNodes(f, 0.5, "2")
			f.Upgrade.Run.Warnings = []record.Warning{{About: "controlPlane.rollout", Reason: record.ReasonAtLimit}}
		}, NotChecked, "it may need more", nil},
		"of several replicas no stage counts": {func(f *Facts) {
			onNodes(f, 0.5, "300m")
			f.Captured.Replicas = 2
		}, NotChecked, "cores were not measured", nil},
		"speed of another work": {func(f *Facts) {
			onNodes(f, 0.5, "100m")
			f.Onto.Run.Environment.Processor.Run.Work = "1"
		}, NotChecked, "not known in the unit of --node-speed", nil},
		"no speed of this machine": {func(f *Facts) {
			onNodes(f, 0.5, "100m")
			f.From.Run.Environment.Processor = nil
		}, NotChecked, "the speed of this machine is not known", nil},
		"a share of the pods": {func(f *Facts) {
			onNodes(f, 0.5, "100m")
			f.From.Run.Scenario.Mesh.Share = 0.4
		}, NotChecked, "40% of the pods were rehearsed", nil},
	} {
		f := facts()
		c.change(&f)
		a := Judge(f)
		i := slices.IndexFunc(a.Checks, func(c Check) bool { return c.Name == "processors" })
		if got := a.Checks[i]; got.Outcome != c.outcome || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: got %+v, want %s with %q", name, got, c.outcome, c.text)
		}
		var set []string
		for _, s := range a.Settings {
			set = append(set, s.Path+"="+s.Value)
		}
		if name != "a share of the pods" && !slices.Equal(set, c.set) {
			t.Errorf("%s: %q is set, want %q", name, set, c.set)
		}
		if on := strings.Contains(output.Wide(func(d *output.Document) { a.write(d, "out") }), "Cores are those of production's nodes"); on != a.OfNodes {
			t.Errorf("%s: the page says %v of production's nodes, want %v", name, on, a.OfNodes)
		}
	}
}

// Of several replicas memory is that of the one that needed the most of it, and cores are those of the one that needed the most of them.
func TestMomentsOfReplicas(t *testing.T) {
	f := facts()
	of := func(peak, cores float64) *record.Replica {
		u := usage(peak, peak)
		u.Cores = &record.Level{Mean: new(cores)}
		return &record.Replica{Usage: record.ByPhase[*record.Usage]{Rollout: u}}
	}
	f.From.Run.Replicas = &record.Replicas{Each: map[string]*record.Replica{"a": of(100, 0.1), "b": of(90, 0.4)}}
	if m := f.moments()[0]; m.MemoryBytes != 100*mebibyte || *m.Cores != 0.4 {
		t.Errorf("got %+v", m)
	}
}

// Texts of a mesh in ambient mode do not say sidecars, nor that every pod is restarted.
func TestJudgeAmbient(t *testing.T) {
	f := facts()
	f.From.Run.Scenario.Mesh.Dataplane = scenario.List[string]{"ambient"}
	f.Diff.Ztunnels = 2
	a := Judge(f)
	if a.Verdict != Go || a.sidecars {
		t.Errorf("got %s, %q, want %s", a.Verdict, a.Reasons, Go)
	}
	for name, want := range map[string]Check{
		"captured state": {Outcome: Holds, Text: "all proxies of the 10 pods came to rest"},
		"configuration":  {Outcome: Holds, Text: "all 10 proxies hold the same"},
	} {
		i := slices.IndexFunc(a.Checks, func(c Check) bool { return c.Name == name })
		if got := a.Checks[i]; got.Outcome != want.Outcome || !strings.HasPrefix(got.Text, want.Text) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	filter := Patch{Object: "EnvoyFilter shop/header", Number: 1, Name: "shop.header"}
	gone := diff.Group{Effect: diff.ChainDrained, Class: "listener virtualInbound", Op: diff.Removed, Path: "filter_chains[*].http_filters[shop.header]", Sidecars: 6, OfSidecars: 10}
	for name, c := range map[string]struct {
		change  func(*Facts)
		verdict Verdict
		reason  string // in the first reason
		set     string // what Values has in it
	}{
		"nothing speaks against it": {func(*Facts) {}, Go, "version: 1.29.1, which production runs", "Nothing has to be set"},
		"no limit":                  {func(f *Facts) { f.Onto.Run.Environment.ControlPlane.MemoryLimitBytes = 0 }, Go, "version", ""},
		"sidecars change, nothing is removed": {func(f *Facts) {
			f.Diff.Changed, f.Diff.Groups = 10, []diff.Group{{Effect: diff.ClusterWarmed, Op: diff.Added, Path: "common_lb_config.healthy_panic_threshold"}}
		}, Go, "version", ""},
		"an unset field is no removed part": {func(f *Facts) {
			f.Diff.Groups = []diff.Group{{Effect: diff.ClusterWarmed, Op: diff.Removed, Path: "common_lb_config.healthy_panic_threshold"}}
		}, Go, "version", ""},
		"the model agrees with production": {func(f *Facts) { f.Captured.History = observed(85, 120) }, Go, "version", ""},

		"the limit is within the interval": {func(f *Facts) { f.Upgrade.Run.Upgrade.Stages["wave-1"].To.ControlPlane = usage(80, 195) }, GoWithChanges, "memory: istiod needs 195MiB", "resources:\n  limits:\n    # 195MiB (177MiB to 213MiB) of memory, istiod 1.31.0 in stage wave-1 of the upgrade; the upper end with 30 % of headroom; it is 200MiB\n    memory: 320Mi\n  requests:\n    # no more than the limit; the chart has 2GiB where it is not set, and pods that request more than their limit are refused\n    memory: 320Mi\n"},

		"the request of processors is below what it needs": {func(f *Facts) { onNodes(f, 0.5, "300m") }, GoWithChanges, "processors: istiod needs 0.60 (0.40 to 1.12) cores of production's nodes on average, istiod 1.31.0 in stage wave-1 of the upgrade, and requests 0.30", "    cpu: 1150m\n"},

		"more than the limit": {func(f *Facts) { f.Upgrade.Run.Upgrade.Stages["wave-1"].To.ControlPlane = usage(80, 300) }, NoGo, "memory: istiod needs 300MiB", "memory: 448Mi"},
		"a share of the pods, within the limit": {func(f *Facts) {
			f.From.Run.Scenario.Mesh.Share = 0.4
			f.Captured.History = observed(150, 190)
		}, CannotTell, "memory: with 40% of the pods istiod needs 120MiB (109MiB to 131MiB) of memory, istiod 1.31.0 in stage wave-1 of the upgrade; with all of them it needs more, and has a limit of 200MiB", "Nothing has to be set"},
		"a share of the pods, above the limit": {func(f *Facts) {
			f.From.Run.Scenario.Mesh.Share = 0.4
			f.Upgrade.Run.Upgrade.Stages["wave-1"].To.ControlPlane = usage(80, 300)
		}, NoGo, "memory: with 40% of the pods istiod needs 300MiB", "Nothing has to be set"},
		"a share of the pods, without a limit": {func(f *Facts) {
			f.From.Run.Scenario.Mesh.Share, f.Onto.Run.Environment.ControlPlane.MemoryLimitBytes = 0.4, 0
		}, Go, "version", ""},
		"killed in a wave": {func(f *Facts) {
			f.Upgrade = unconverged(f.Upgrade, "upgrade-wave-2")
			f.Upgrade.OutOfMemory = true
		}, NoGo, "upgrade: istiod was killed in stage wave-2 of the upgrade for exceeding its memory limit of 200MiB", "Nothing has to be set"},
		"killed at the captured state":      {func(f *Facts) { f.From = unconverged(f.From, "rollout"); f.From.OutOfMemory = true }, NoGo, "captured state: istiod 1.29.1 was killed in rollout", ""},
		"the new version does not converge": {func(f *Facts) { f.Onto = unconverged(f.Onto, "rollout") }, NoGo, "new version: the mesh did not come to rest in rollout", ""},
		"a wave does not converge":          {func(f *Facts) { f.Upgrade = unconverged(f.Upgrade, "upgrade-wave-1") }, NoGo, "upgrade: the mesh did not come to rest in stage wave-1", ""},
		"no recovery":                       {func(f *Facts) { f.Onto.Run.Faults[0].Seconds = nil }, NoGo, "recovery: after restart-control-plane", ""},
		"an EnvoyFilter that does not apply any more": {func(f *Facts) {
			f.Captured.Patches, f.Diff.Groups = []Patch{filter}, []diff.Group{gone}
		}, NoGo, "EnvoyFilters: the new version does not apply EnvoyFilter shop/header (patch 1) on 6 of 10 sidecars", ""},
		"a part and a patch that are gone, of namespaces of two waves": {func(f *Facts) {
			f.Upgrade.Run.Upgrade.Stages["wave-1"].Moved = []record.UpgradeUnit{{Namespaces: []string{"web"}}}
			f.Upgrade.Run.Upgrade.Stages["wave-2"] = &record.UpgradeStage{Moved: []record.UpgradeUnit{{Namespaces: []string{"shop", "bank"}}}}
			f.Upgrade.Run.Upgrade.Stages["wave-3"] = &record.UpgradeStage{Moved: []record.UpgradeUnit{{Namespaces: []string{"web"}}}}
			of := gone
			of.Workloads = []diff.Workload{{Namespace: "bank"}, {Namespace: "shop"}}
			f.Captured.Patches, f.Diff.Groups = []Patch{filter}, []diff.Group{of}
		}, NoGo, "EnvoyFilters: the new version does not apply EnvoyFilter shop/header (patch 1) on 6 of 10 sidecars (wave-2)", ""},
		"a part that is gone in two waves": {func(f *Facts) {
			f.Upgrade.Run.Upgrade.Stages["wave-1"].Moved = []record.UpgradeUnit{{Namespaces: []string{"web"}}}
			f.Upgrade.Run.Upgrade.Stages["wave-2"] = &record.UpgradeStage{Moved: []record.UpgradeUnit{{Namespaces: []string{"shop"}}}}
			of := gone
			of.Workloads = []diff.Workload{{Namespace: "shop"}, {Namespace: "web"}}
			f.Diff.Groups = []diff.Group{of}
		}, CannotTell, "configuration: the new version leaves out 1 part (filter_chains[*].http_filters[shop.header] of listener virtualInbound on 6 of 10 sidecars (wave-1, wave-2)): whether", ""},
		"a value of one that is another": {func(f *Facts) {
			f.Captured.Patches = []Patch{{Object: "EnvoyFilter shop/c", Number: 2, Fields: map[string]string{"connect_timeout": "7s"}}}
			f.Diff.Groups = []diff.Group{{Op: diff.Changed, Path: "connect_timeout", Values: []diff.Value{{From: "7s", To: "10s"}}, Sidecars: 6}}
		}, NoGo, "EnvoyFilters: the new version does not apply EnvoyFilter shop/c (patch 2)", ""},

		"a variable that the new version does not read": {func(f *Facts) {
			f.Environment = &Environment{Removed: []Variable{{Name: "A", Value: "false", Default: "true"}, {Name: "B", Value: "1", Default: "1"}}, Unlisted: []string{"C"}}
		}, NoGo, "settings: istiod 1.31.0 does not read A=false (default true) any more: what it sets is lost; B had the default and is not read any more; 1 variable that neither version lists: C", ""},
		"a removed variable that had its default": {func(f *Facts) {
			f.Environment = &Environment{Removed: []Variable{{Name: "B", Value: "1", Default: "1"}}}
		}, Go, "version", ""},
		"another version was rehearsed":                      {func(f *Facts) { f.Captured.Release = "1.27.3" }, CannotTell, "version: production runs 1.27.3", ""},
		"an unknown version":                                 {func(f *Facts) { f.Captured.Release = "" }, CannotTell, "version: the version that production runs is not known", ""},
		"a version in place of the one that production runs": {func(f *Facts) { replace(f.From.Run, "1.29.4") }, CannotTell, "version: 1.29.1 was rehearsed in place of 1.29.4, whose images could not be had", ""},
		"a version in place of a stated one": {func(f *Facts) {
			f.Captured.Stated = true
			replace(f.From.Run, "1.29.4")
		}, CannotTell, "version: 1.29.1 was rehearsed in place of 1.29.4", ""},
		"a version in place of the new one": {func(f *Facts) { replace(f.Onto.Run, "1.31.2") }, CannotTell, "version: 1.31.0 was rehearsed in place of 1.31.2", ""},
		"a stated version":                  {func(f *Facts) { f.Captured.Release, f.Captured.Stated = "", true }, Go, "version: 1.29.1 was rehearsed, as --from states", ""},
		"the captured state is no state":    {func(f *Facts) { f.From = unconverged(f.From, "rollout") }, CannotTell, "captured state: with istiod 1.29.1", ""},
		"what is not of production counts for nothing": {func(f *Facts) {
			f.Captured.Release = ""
			f.Upgrade = unconverged(f.Upgrade, "upgrade-wave-1")
		}, CannotTell, "version", ""},
		"killed, where production is not": {func(f *Facts) {
			f.Captured.History = observed(85, 120)
			f.From = unconverged(f.From, "rollout")
			f.From.OutOfMemory = true
		}, CannotTell, "captured state: istiod 1.29.1 was killed in rollout", ""},
		"the memory of istiod is not known": {func(f *Facts) {
			f.Captured.Installed = false
			f.Onto.Run.Environment.ControlPlane.MemoryLimitBytes = 0
		}, CannotTell, "memory: istiod needs 120MiB", ""},
		"production needs more than the replay": {func(f *Facts) { f.Captured.History = observed(150, 190) }, CannotTell, "memory of the model", ""},
		"the replay needs more than production and the limit": {func(f *Facts) {
			f.Captured.History = observed(40, 50)
			f.Upgrade.Run.Upgrade.Stages["wave-1"].To.ControlPlane = usage(80, 300)
		}, CannotTell, "memory: istiod needs 300MiB", ""},
		"a part is gone": {func(f *Facts) { f.Diff.Groups = []diff.Group{gone} }, CannotTell, "configuration: the new version leaves out 1 part", ""},
		"differences of two moments": {func(f *Facts) {
			f.Diff.Groups, f.Diff.To.NotQuiet = []diff.Group{{Op: diff.Added, Path: "a"}}, true
		}, CannotTell, "configuration: an istiod still sent", ""},
		"lost in a wave": {func(f *Facts) {
			f.Upgrade.Run.Upgrade.Stages["wave-1"].Latencies.Certificate = &record.Latency{Lost: 2}
		}, CannotTell, "upgrade: certificates, configurations or pushes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			c.change(&f)
			a := Judge(f)
			if a.Verdict != c.verdict || !strings.HasPrefix(a.Reasons[0], c.reason) {
				t.Errorf("got %s for %q, want %s for %q", a.Verdict, a.Reasons, c.verdict, c.reason)
			}
			if values := a.Values(); !strings.Contains(values, c.set) {
				t.Errorf("got the values\n%swant in them\n%s", values, c.set)
			}
		})
	}
}

func TestWithoutHistory(t *testing.T) {
	a := Judge(facts())
	i := slices.IndexFunc(a.Checks, func(c Check) bool { return c.Name == "memory of the model" })
	if c := a.Checks[i]; c.Outcome != NotChecked || c.Text != "the mesh file has no history (capture --prometheus, or --observe)" {
		t.Errorf("got %+v", c)
	}
}

func TestCompareEnvironment(t *testing.T) {
	got := CompareEnvironment(map[string]string{"KEPT": "a", "GONE": "b", "NEW": "c", "OTHER": "d"}, map[string]string{"KEPT": "", "GONE": "x"}, map[string]string{"KEPT": "", "NEW": ""})
	want := &Environment{Kept: []string{"KEPT", "NEW"}, Removed: []Variable{{Name: "GONE", Value: "b", Default: "x"}}, Unlisted: []string{"OTHER"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Of several replicas the one that needs most decides.
func TestReplicas(t *testing.T) {
	f := facts()
	f.Onto.Run.Replicas = &record.Replicas{Each: map[string]*record.Replica{
		"istiod-0": {Usage: record.ByPhase[*record.Usage]{Rollout: usage(50, 60)}},
		"istiod-1": {Usage: record.ByPhase[*record.Usage]{Rollout: usage(50, 130)}},
	}}
	a := Judge(f)
	if w := a.Worst; w.MemoryBytes != 130*mebibyte || w.Step != "to" || w.Phase != "rollout" {
		t.Errorf("got %+v", w)
	}
}

func TestPatches(t *testing.T) {
	m := &capture.Mesh{Objects: []*unstructured.Unstructured{{Object: map[string]any{
		"kind": "EnvoyFilter", "metadata": map[string]any{"namespace": "shop", "name": "f"},
		"spec": map[string]any{"configPatches": []any{
			map[string]any{"applyTo": "HTTP_FILTER", "patch": map[string]any{"operation": "INSERT_BEFORE", "value": map[string]any{"name": "shop.header"}}},
			map[string]any{"applyTo": "CLUSTER", "patch": map[string]any{"operation": "MERGE", "value": map[string]any{"connectTimeout": "7s", "commonLbConfig": map[string]any{"localityWeightedLbConfig": map[string]any{"x": true}}}}},
			map[string]any{"applyTo": "HTTP_FILTER", "patch": map[string]any{"operation": "REMOVE"}},
		}},
	}}}}
	got := patchesOf(m)
	want := `[{EnvoyFilter shop/f 1 shop.header map[]} {EnvoyFilter shop/f 2  map[common_lb_config.locality_weighted_lb_config.x:true connect_timeout:7s]}]`
	type plain Patch
	var all []plain
	for _, p := range got {
		all = append(all, plain(p))
	}
	if text := fmt.Sprint(all); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// The answer has at most 25 lines, and Markdown is shorter than a comment may be, however much there is to tell.
func TestPrintBounds(t *testing.T) {
	f := facts()
	long := strings.Repeat("word ", 400) + "<script>alert(1)</script>"
	for i := range 500 {
		f.Diff.Groups = append(f.Diff.Groups, diff.Group{Op: diff.Removed, Path: fmt.Sprintf("list[%d]", i), Class: long})
		f.From.Run.Mesh.NotReproduced = append(f.From.Run.Mesh.NotReproduced, record.NotReproduced{What: long, Changes: "all"})
	}
	f.Onto, f.Upgrade = unconverged(f.Onto, "rollout"), unconverged(f.Upgrade, "upgrade-wave-1")
	f.Onto.Run.Faults[0].Seconds = nil
	a := Judge(f)
	for format, check := range map[string]func(string) error{
		"table": func(text string) error {
			if n := strings.Count(text, "\n"); n > 25 {
				return fmt.Errorf("%d lines", n)
			}
			return nil
		},
		"markdown": func(text string) error {
			if len(text) >= 60_000 {
				return fmt.Errorf("%d bytes", len(text))
			}
			if !strings.HasPrefix(text, "### NO GO: istiod 1.29.1 to 1.31.0\n") {
				return fmt.Errorf("it begins with %.80q", text)
			}
			return nil
		},
		"json": func(string) error { return nil },
		"html": func(text string) error {
			if !strings.Contains(text, "<h1>NO GO: istiod 1.29.1 to 1.31.0</h1>") || strings.Count(text, "<table>") < 2 || strings.Contains(text, "<script") {
				return errors.New("want its title, its tables and no script")
			}
			return nil
		},
	} {
		var b strings.Builder
		if err := Print(&b, format, "dir", &a); err != nil {
			t.Fatal(err)
		}
		if err := check(b.String()); err != nil {
			t.Errorf("%s: %v\n%.3000s", format, err, b.String())
		}
	}
}

// A plan of a larger mesh is in the answer and on the page, and decides nothing.
func TestGrowthText(t *testing.T) {
	f := facts()
	verdict := Judge(f).Verdict
	for name, c := range map[string]struct {
		growth Growth
		nodes  bool
		want   string
	}{
		"planned": {Growth{Scale: 3, Plan: &capacity.Plan{
			Target: capacity.Target{Pods: 30}, Binds: "arrival",
			Request: capacity.Request{Replicas: 1, Processors: 2, Met: true, Resources: capacity.Resources{Requests: capacity.Amounts{Memory: "200Mi"}}},
		}}, true, "3 copies of the mesh, 30 pods, with one istiod of the new version: Forecast from runs of"},
		"not planned": {Growth{Scale: 3, Unknown: "planning from 6 runs: 2 sizes were run"}, false, "What 3 copies of the mesh need is not known: planning from 6 runs: 2 sizes were run."},
	} {
		f.Growth = &c.growth
		f.Captured.NodeSpeed = nil
		if c.nodes {
			f.Captured.NodeSpeed = &record.Speed{}
		}
		a := Judge(f)
		if a.Verdict != verdict {
			t.Errorf("%s: got %s, want %s", name, a.Verdict, verdict)
		}
		if on := strings.Contains(output.Wide(func(d *output.Document) { a.write(d, "dir") }), "scaler plan dir/copies --scale 3 --node-speed FILE -o wide"); on != c.nodes {
			t.Errorf("%s: the command has --node-speed: %v, want %v", name, on, c.nodes)
		}
		for _, format := range []string{"table", "wide"} {
			var b strings.Builder
			if err := Print(&b, format, "dir", &a); err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, c.want) {
				t.Errorf("%s, %s: got\n%s\nwant %q in it", name, format, b.String(), c.want)
			}
		}
	}
}

// A history of minutes is stated as one.
func TestSpanOfHistory(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	for length, want := range map[time.Duration]string{7 * 24 * time.Hour: "7 days", 24 * time.Hour: "1 day", 5 * time.Minute: "5m0s"} {
		if got := spanText(&capture.History{From: begin, To: begin.Add(length)}); got != want {
			t.Errorf("%s: %q", length, got)
		}
	}
}

// Cores of production and of the replay are compared in reference processors, where both speeds are known; no verdict is made from it.
func TestProcessorTime(t *testing.T) {
	of := func(work string, speed float64) *record.Speed { return &record.Speed{Work: work, Speed: speed} }
	for name, c := range map[string]struct {
		nodes     *record.Speed
		p50, most float64
		outcome   Outcome
		text      string
	}{
		"it agrees":            {of("1", 1.5), 0.1, 0.8, Holds, "production used 0.15 (p50) to 1.20 (most) reference processors in 0s, the replay 0.02 (at rest) to 3.00 (peak of its rollout)"},
		"production does more": {of("1", 4), 1, 2, Unknown, ": production has more to do than the replay"},
		"the replay does more": {of("1", 1), 0.001, 0.01, Holds, ": the replay needs more than production"},
		"another work":         {of("2", 1), 0.1, 0.8, Unknown, "the speed of this machine is not known in the unit of --node-speed"},
		"no speed":             {nil, 0.1, 0.8, Unknown, "--node-speed has what scaler calibrate --speed printed there"},
	} {
		f := facts()
		for _, r := range []*record.Run{f.From.Run, f.Onto.Run, f.Upgrade.Run} {
			r.Environment.Processor = &record.Processor{Run: of("1", 2)}
		}
		f.From.Run.ControlPlane.Steady.Cores, f.From.Run.ControlPlane.Rollout.Cores = &record.Level{Mean: new(0.01)}, &record.Level{Peak: new(1.5)}
		f.Captured.NodeSpeed, f.Captured.Requests = c.nodes, map[string]string{"cpu": "100"}
		f.Captured.History = &capture.History{Figures: []capture.Observed{{Figure: "processorTime", Percentiles: capture.Percentiles{P50: c.p50, Max: c.most}}}}
		if got := f.processorTime(); got.Outcome != c.outcome || !strings.HasSuffix(got.Text, c.text) {
			t.Errorf("%s: %s, %s", name, got.Outcome, got.Text)
		}
		if a := Judge(f); a.Verdict != Go {
			t.Errorf("%s: %s", name, a.Verdict)
		}
	}
}

// Sizes of production's pushes are compared with what proxies of the replay hold: above the most of any, or of a type that is sent whole below
// the mean of all, the replay has another configuration.
func TestBytes(t *testing.T) {
	held := HeldOf(&record.Configuration{
		Resources: []record.HeldResource{{Type: "LDS", Message: make([]byte, 1000)}, {Type: "LDS", Message: make([]byte, 200)}, {Type: "CDS", Message: make([]byte, 500)}, {Type: "WDS", Message: make([]byte, 9)}},
		Sidecars:  []record.HeldBy{{Resources: []int{0, 2}}, {Resources: []int{0, 1, 2}}, {Kind: record.OfZtunnel, Resources: []int{3}}},
	})
	if want := map[string]Held{"LDS": {Mean: 1100, Most: 1200}, "CDS": {Mean: 500, Most: 500}}; !reflect.DeepEqual(held, want) {
		t.Fatalf("got %+v, want %+v", held, want)
	}
	of := func(kind string, p50, most float64) capture.Observed {
		return capture.Observed{Figure: "bytesPerPush", Kind: kind, Percentiles: capture.Percentiles{P50: p50, Max: most}}
	}
	for name, c := range map[string]struct {
		figures []capture.Observed
		change  func(*Facts)
		outcome Outcome
		text    string
		verdict Verdict
	}{
		"the same":                        {[]capture.Observed{of("Listener", 1050, 1150), of("Cluster", 500, 500)}, nil, Holds, "LDS 1.03KiB (p50) to 1.12KiB (most) in production", Go},
		"parts of clusters":               {[]capture.Observed{of("Cluster", 20, 90)}, nil, Holds, "CDS 20B (p50) to 90B (most)", Go},
		"one gateway in some minutes":     {[]capture.Observed{of("Listener", 300, 1100)}, nil, Holds, "LDS", Go},
		"within the spread":               {[]capture.Observed{of("Listener", 1259, 1259), of("Cluster", 524, 600)}, nil, Holds, "", Go},
		"production's clusters are more":  {[]capture.Observed{of("Listener", 1100, 1150), of("Cluster", 526, 600)}, nil, Unknown, "bytes of a push CDS 526B (p50) to 600B (most) in production, 500B (mean) to 500B (most) in the replay, which is less", CannotTell},
		"production's listeners are less": {[]capture.Observed{of("Listener", 900, 1044)}, nil, Unknown, "which is more", CannotTell},
		"no type in common":               {[]capture.Observed{of("Secret", 900, 1044)}, nil, NotChecked, "no type in common", Go},
		"no sizes":                        {[]capture.Observed{{Figure: "pushes"}}, nil, NotChecked, "the history of the mesh file does not have it: no such series", Go},
		"a share of the pods":             {[]capture.Observed{of("Cluster", 5000, 5000)}, func(f *Facts) { f.From.Run.Scenario.Mesh.Share = 0.4 }, NotChecked, "40% of the pods were rehearsed", CannotTell},
		"nothing was held":                {[]capture.Observed{of("Cluster", 5000, 5000)}, func(f *Facts) { f.Held = nil }, NotChecked, "did not come to rest", Go},
	} {
		f := facts()
		f.Held = held
		f.Captured.History = &capture.History{Figures: c.figures, Missing: []capture.Missing{{Figure: "bytesPerPush", Why: "no such series"}}}
		if c.change != nil {
			c.change(&f)
		}
		got := f.bytes()
		if a := Judge(f); got.Outcome != c.outcome || !strings.Contains(got.Text, c.text) || a.Verdict != c.verdict {
			t.Errorf("%s: got %+v and %s %q", name, got, a.Verdict, a.Reasons)
		}
	}
}

// Pushes are compared where the replay made changes of endpoints at production's rate. A comparison that is not possible does not change
// the verdict, and the answer names it.
func TestPushes(t *testing.T) {
	pushes := capture.Observed{Figure: "pushes", Kind: "eds", Percentiles: capture.Percentiles{P50: 2, Max: 8}}
	events := capture.Observed{Figure: "clusterEvents", Kind: "EndpointSlice update", Percentiles: capture.Percentiles{P90: 0.5}}
	for name, c := range map[string]struct {
		figures   []capture.Observed
		perSecond scenario.Rate
		each      *float64 // responses of a change
		outcome   Outcome
		text      string
	}{
		"it agrees":                  {[]capture.Observed{pushes, events}, 0.5, new(10.0), Holds, "production made 2.00 (p50) to 8.00 (most) pushes of endpoints a second in 0s, the replay 5.00 with 0.5/s:endpoint"},
		"production pushes more":     {[]capture.Observed{pushes, events}, 0.5, new(3.0), Unknown, "production pushes for more reasons"},
		"the replay pushes more":     {[]capture.Observed{pushes, events}, 0.5, new(30.0), Holds, "its load is an upper bound"},
		"no pushes in the history":   {[]capture.Observed{events}, 0.5, new(3.0), NotChecked, "the history of the mesh file does not have it"},
		"a rate that cannot be made": {[]capture.Observed{pushes, events}, 0, nil, NotChecked, "lower than can be made"},
		"no rate in the history":     {[]capture.Observed{pushes}, 0, nil, NotChecked, "pushes follow from events, and the replay makes no changes: the history of the mesh file does not have it"},
		"the replay came not so far": {[]capture.Observed{pushes, events}, 0.5, nil, NotChecked, "did not come so far"},
	} {
		f := facts()
		f.Captured.History = &capture.History{Figures: c.figures}
		f.From.Run.Scenario.Load.Changes = scenario.Changes{PerSecond: c.perSecond, Kind: scenario.EndpointChange}
		if c.each != nil {
			f.From.Run.Change = &record.Change{ResponsesPerChange: c.each}
		}
		a := Judge(f)
		if got := f.pushes(); got.Outcome != c.outcome || !strings.Contains(got.Text, c.text) || a.Verdict != Go {
			t.Errorf("%s: got %+v and %s %q", name, got, a.Verdict, a.Reasons)
		}
		if named := strings.Contains(a.answer("out", 400), "no verdict is made from it: pushes of the model."); named != (c.outcome == Unknown) {
			t.Errorf("%s: got\n%s", name, a.answer("out", 400))
		}
	}
}
