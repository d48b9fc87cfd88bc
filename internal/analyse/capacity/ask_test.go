package capacity

import (
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

// What cannot be planned is refused with what is wanted.
func TestRefusals(t *testing.T) {
	w := strict()
	four := w.runs(nil, 2, 200, 400, 600, 800)
	other := w.runs(nil, 2, 200, 400, 800)
	other[0].Scenario.Load.Arrival = scenario.Arrival{Size: 100, Interval: 10 * time.Second}
	broken := w.runs(nil, 2, 200, 400, 800)
	for i := range broken {
		broken[i].Status = record.StatusFailed
	}
	faulty := w.runs(nil, 2, 200, 400, 800)
	for i := range faulty {
		faulty[i].Scenario.Load.Faults = []scenario.Fault{{Kind: scenario.KillControlPlane, Phase: scenario.PhaseRollout}}
	}
	nodes := w.runs(nil, 2, 200, 400, 800)
	for i := range nodes {
		nodes[i].Scenario.Mesh.Dataplane, nodes[i].Scenario.Mesh.PodsPerNode = scenario.List[string]{"ambient"}, 20
		nodes[i].Proxies = &record.Proxies{Name: "ztunnel", Nodes: nodes[i].PodCount() / 20}
	}
	mixed := w.runs(nil, 2, 200, 400, 800)
	for i := range mixed {
		mixed[i].Scenario.Mesh.Dataplane, mixed[i].Proxies = scenario.List[string]{"mixed"}, &record.Proxies{Nodes: 5, Sidecars: new(100)}
	}
	waypoints := w.runs(nil, 2, 200, 400, 800)
	for i := range waypoints {
		waypoints[i].Scenario.Mesh.Dataplane, waypoints[i].Scenario.Mesh.Waypoints, waypoints[i].Proxies = scenario.List[string]{"ambient"}, "service", &record.Proxies{Nodes: 5, Waypoints: &record.Waypoints{}}
	}
	const advice = "run 'scaler rollout --repeats 2 --pods 200,300,400,500,600,700,800 --seed 0 --mode strict --xds delta --arrival all --probes 0 --settle 0s --dilate 1 --priority=false'"
	for _, c := range []struct {
		name   string
		runs   []record.Run
		o      Options
		want   string
		forced bool // --force does it
	}{
		{"one size", w.runs(nil, 3, 200), Options{Pods: 1600}, "one size only: " + advice, false},
		{"two sizes", w.runs(nil, 3, 200, 400), Options{Pods: 1600}, "2 sizes were run, 3 are needed: " + advice, true},
		{"no repeats", w.runs(nil, 1, 200, 400, 800), Options{Pods: 1600}, "every size was run once: repeats are needed, or 5 sizes: " + advice, true},
		{"four sizes without repeats", w.runs(nil, 1, 200, 400, 600, 800), Options{Pods: 1600}, "every size was run once", true},
		{"too far", four, Options{Pods: 6401}, "more than 8 times the largest run, of 800 pods: run 'scaler rollout --repeats 2 --pods 800,1200,1600,2000,2400,2800,3200 --seed 0 --mode strict", true},
		{"smaller than what was run", four, Options{Pods: 20}, "pods: got 20, want 200 or more, the smallest size run", true},
		{"nothing completed", broken, Options{Pods: 1600}, "none of them completed undisturbed (6 failed): run 'scaler rollout --repeats 2 --pods 200,300,400,500,600,700,800 --probes 0", false},
		{"nothing completed in ambient mode", broken, Options{Pods: 1600, Dataplane: "ambient", PodsPerNode: 40}, "--dataplane ambient --pods-per-node 40 --probes 0", false},
		{"disturbed", faulty, Options{Pods: 1600}, "none of them completed undisturbed", false},
		{"another mode", four, Options{Pods: 1600, Mode: "permissive"}, `mode: got "permissive", want that of a completed run: strict`, false},
		{"another data plane", four, Options{Pods: 1600, Dataplane: "ambient"}, `dataplane: got "ambient", want that of a completed run: sidecar`, false},
		{"several data planes, neither of sidecars", slices.Concat(nodes, mixed), Options{Pods: 1600}, `dataplane: got "", want one of ambient, mixed, as the runs are of several`, false},
		{"sidecars and proxies of nodes", mixed, Options{Pods: 1600}, "6 runs of data plane mixed: want runs with sidecars, with proxies of nodes alone, or of a captured mesh", false},
		{"waypoints", waypoints, Options{Pods: 1600}, "6 runs of data plane ambient with service waypoints: want", false},
		{"another number of pods for each node", nodes, Options{Pods: 1600, PodsPerNode: 40}, "podsPerNode: got 40, want 20, as all runs have", true},
		{"pods for each node of sidecars", four, Options{Pods: 1600, PodsPerNode: 40}, "podsPerNode: got 40, want none for runs of a captured mesh, or in which every pod has a proxy", false},
		{"too few runs with proxies of nodes", nodes[:4], Options{Pods: 1600}, "--mode strict --dataplane ambient --xds delta", true},
		{"different bursts", other, Options{Pods: 1600}, "they differ in arrival (100/10s; all)", true},
		{"another ratio", four, Options{Pods: 1600, Services: 20}, "services: got 20, want 160, as all runs have 0.1 services for each pod", true},
		{"validating another size", four, Options{Pods: 1600, Validate: true}, "pods: got 1600, want 800, the largest size", false},
		{"validating one size", w.runs(nil, 3, 200), Options{Validate: true}, "one size only", false},
		{"validating without enough", w.runs(nil, 3, 200, 400, 800), Options{Validate: true}, "2 sizes were run, 3 are needed", true},
	} {
		if _, err := Make(c.runs, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
		c.o.Force = true
		if _, err := Make(c.runs, c.o); (err == nil) != c.forced {
			t.Errorf("%s, forced: %v", c.name, err)
		}
	}
}

// The partial figures of a run that was killed or interrupted are in no forecast, even
// where they look like those of a complete one.
func TestPartialRunsAreInNoForecast(t *testing.T) {
	w := strict()
	runs := w.runs(nil, 2, 200, 400, 600, 800)
	want, err := Make(runs, Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	killed, interrupted := w.run(800, nil), w.run(800, nil)
	for _, r := range []*record.Run{&killed, &interrupted} {
		r.Status = record.StatusInterrupted
		r.ControlPlane.Rollout.CPUSeconds = new(1.0)
	}
	interrupted.Finished = new(time.Now())
	got, err := Make(append(runs, killed, interrupted), Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	if g, w := got.figure(t, rolloutCPU), want.figure(t, rolloutCPU); !reflect.DeepEqual(g, w) {
		t.Errorf("with a killed run %+v, without %+v", g, w)
	}
	for _, why := range []string{"left out 1 run of 10: killed or still under way", "left out 1 run of 10: interrupted"} {
		if got.warningAbout("runs", why) == "" {
			t.Errorf("no warning %q in %v", why, got.Warnings)
		}
	}
	if _, err := Make([]record.Run{killed}, Options{Pods: 1600}); err == nil || !strings.Contains(err.Error(), "(1 killed or still under way, so that its figures are partial)") {
		t.Errorf("of a killed run alone: %v", err)
	}
}

// Without a mode permissive runs are taken, and others of no figure.
func TestModes(t *testing.T) {
	both := append(strict().runs(nil, 2, 200, 400, 800), permissive().runs(nil, 2, 200, 400, 800)...)
	for mode, want := range map[string]string{"": "permissive", "permissive": "permissive", "strict": "strict"} {
		plan, err := Make(both, Options{Pods: 1600, Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Target.Mode != want || plan.Runs[0].Runs != 2 {
			t.Errorf("mode %q: a plan of %s from %v", mode, plan.Target.Mode, plan.Runs)
		}
	}
}

// Services can be planned for where runs tell what they cost.
func TestServices(t *testing.T) {
	w := permissive()
	runs := w.runs(nil, 2, 200, 400, 600, 800)
	held := func(pods, services float64) float64 { return 20e3 + 100*pods + 2e3*services }
	for i := range runs {
		r := &runs[i]
		if i%2 == 1 {
			r.Scenario.Mesh.Services *= 2
		}
		*r.XDS.ConfigurationBytes.Mean = held(float64(r.PodCount()), float64(r.ServiceCount()))
	}
	plan, err := Make(runs, Options{Pods: 1600, Services: 300})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plan.Target.ConfigurationBytes, held(1600, 300); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("a sidecar holds %v bytes, want %v", got, want)
	}
}

func TestTimesOfLimits(t *testing.T) {
	one := *limits
	one.ConcurrentPushes = &record.ByProcessors{Base: 1}
	for _, c := range []struct {
		name    string
		m       mesh
		binds   string
		seconds float64
	}{
		{"two processors: 25 streams a second", mesh{pods: 1601, own: 1601, cpuSeconds: 50, processors: 2, replicas: 1, limits: limits}, Limiter, 64},
		{"the limiter grows with processors", mesh{pods: 1601, own: 1601, processors: 4, replicas: 1, limits: limits}, Limiter, 1600.0 / 35},
		{"past it tokens bind", mesh{pods: 1600, own: 1600, processors: 17, replicas: 1, limits: limits}, TokenReview, (3200 - 160) / 80.0},
		{"pods are injected", mesh{pods: 200, own: 200, cpuSeconds: 9, processors: 2, replicas: 1, limits: &record.Limits{InjectionsPerSecond: 5, InjectionsBurst: 10}}, Injection, 38},
		{"each replica has limits of its own", mesh{pods: 1601, own: 1601, processors: 2, replicas: 4, limits: limits}, Limiter, 16},
		{"processors", mesh{pods: 1600, own: 1600, cpuSeconds: 300, processors: 2, replicas: 1, limits: limits}, Processor, 150},
		{"one push at a time", mesh{pods: 1600, own: 1600, cpuSeconds: 300, processors: 8, replicas: 1, limits: &one}, Throttle, 300},
		{"arrival", mesh{pods: 1600, own: 1600, arrival: 10, processors: 2, replicas: 1, limits: limits}, Arrival, 160},
		{"a machine shared with all else", mesh{pods: 1600, own: 1600, cpuSeconds: 90, others: 150, machine: 2, processors: 2, replicas: 1, limits: limits}, Machine, 120},
		{"no limit known", mesh{pods: 1600, cpuSeconds: 90, processors: 2, replicas: 1}, Processor, 45},
	} {
		if got := c.m.times()[0]; got.Name != c.binds || math.Abs(got.Seconds-c.seconds) > 1e-9 {
			t.Errorf("%s: %s takes %v s, want %s, %v s", c.name, got.Name, got.Seconds, c.binds, c.seconds)
		}
	}
}

// All programs of a dilated run share the processors of the modelled machine.
func TestMachineOfDilatedRun(t *testing.T) {
	run := permissive().runs(nil, 1, 200)[0]
	run.Environment.CPUs = 2
	for k, want := range map[float64]float64{0: 2, 1: 2, 4: 8, 2.5: 5} {
		run.Scenario.Instrument.Dilation.Factor = k
		if got := meshOf(&run, nil).machine; got != want {
			t.Errorf("K = %g: %g processors, want %g", k, got, want)
		}
	}
}

// The limit of processors of a run is the quota that it had, and that of a forecast the planned GOMAXPROCS.
func TestUsableProcessors(t *testing.T) {
	run := permissive().runs(nil, 1, 200)[0]
	run.Environment.ControlPlane.GOMAXPROCS, run.Environment.ControlPlane.Processors = 8, 12.5
	m := meshOf(&run, nil)
	if m.cores() != 12.5 {
		t.Errorf("a run: %g processors, want 12.5", m.cores())
	}
	if m.usable = 0; m.cores() != 8 {
		t.Errorf("a forecast: %g processors, want 8", m.cores())
	}
}

// The fewest replicas, and of those the fewest processors, that do are asked for.
func TestRequests(t *testing.T) {
	runs := permissive().runs(nil, 2, 200, 400, 600, 800)
	for _, c := range []struct {
		name     string
		o        Options
		replicas int
		cpu      int
		burst    string
		binds    string
		met      bool
	}{
		{"any time", Options{}, 1, 2, "25/1s", Limiter, true},
		{"given processors", Options{Processors: 1}, 1, 1, "17/982ms", Processor, true},
		{"more processors than are tried", Options{Processors: 128}, 1, 128, "40/1s", TokenReview, true},
		{"in a minute", Options{Within: time.Minute}, 1, 4, "35/1s", Limiter, true},
		{"in 40 s", Options{Within: 40 * time.Second, ReplicasMax: 3}, 2, 2, "50/1s", Arrival, true},
		{"never", Options{Within: time.Second, ReplicasMax: 1}, 1, 6, "40/1s", TokenReview, false},
		{"waiting for longer", Options{Wait: 4 * time.Second}, 1, 2, "83/3.992s", Limiter, true},
		{"too little memory", Options{MemoryBytes: 1 << 30}, 1, 2, "25/1s", Memory, false},
	} {
		c.o.Pods = 1600
		plan, err := Make(runs, c.o)
		if err != nil {
			t.Fatal(err)
		}
		r := plan.Request
		if r.Replicas != c.replicas || r.Processors != c.cpu || r.Burst.Flag != c.burst || plan.Binds != c.binds || r.Met != c.met {
			t.Errorf("%s: %d replicas with %d processors, bursts of %s, bound by %s, met %v; want %d, %d, %s, %s, %v",
				c.name, r.Replicas, r.Processors, r.Burst.Flag, plan.Binds, r.Met, c.replicas, c.cpu, c.burst, c.binds, c.met)
		}
	}
}

// What is forced leaves a warning behind, and what has no interval another.
func TestForcedLeavesWarnings(t *testing.T) {
	w, busy := strict(), strict()
	busy.saturation = 0.9
	for _, c := range []struct {
		name        string
		runs        []record.Run
		pods        int
		about, want string
	}{
		{"saturated, once each", busy.runs(nil, 1, 200, 400), 800, rolloutCPU, "2 runs of 2 are uncertain, and used"},
		{"two sizes", w.runs(nil, 3, 200, 400), 1600, "runs", "forced: 2 sizes were run, 3 are needed"},
		{"no repeats", w.runs(nil, 1, 200, 400, 800), 1600, "runs", "forced: every size was run once"},
		{"too far", w.runs(nil, 2, 200, 400, 800), 8000, "runs", "forced: more than 8 times the largest run, of 800 pods"},
		{"too small", w.runs(nil, 2, 200, 400, 800), 20, "runs", "forced: 20 pods are fewer than the smallest size run, of 200"},
		{"no interval", w.runs(nil, 1, 200, 400), 1600, steadyMemory, "no interval: there are as many runs as terms"},
	} {
		plan, err := Make(c.runs, Options{Pods: c.pods, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		if plan.warningAbout(c.about, c.want) == "" {
			t.Errorf("%s: warnings are %v, want %q of %s", c.name, plan.Warnings, c.want, c.about)
		}
	}
}

// Runs that lack a figure are counted, and a figure that too few are left of is not
// forecast, nor asked for.
func TestFiguresOfFewerRuns(t *testing.T) {
	w := strict()
	sizes := []int{200, 400, 600, 800}
	for _, c := range []struct {
		name    string
		without func(i int) bool // steady memory; runs are two of each size
		want    string
		memory  bool
	}{
		{"some", func(i int) bool { return i == 3 }, "1 run of 8 not used: the figure is not recorded there", true},
		{"two sizes left", func(i int) bool { return i > 3 }, "not forecast: of the runs that have it, 2 sizes were run, 3 are needed: run 'scaler", false},
		{"no repeats left", func(i int) bool { return i%2 == 1 }, "not forecast: of the runs that have it, every size was run once", false},
		{"not the largest", func(i int) bool { return i > 5 }, "not forecast: of the runs that have it, more than 8 times the largest run, of 600 pods", false},
		{"all", func(int) bool { return true }, errNoModel.Error(), false},
	} {
		for _, force := range []bool{false, true} {
			runs := w.runs(nil, 2, sizes...)
			for i := range runs {
				if c.without(i) {
					runs[i].ControlPlane.Steady.MemoryBytes = nil
				}
			}
			plan, err := Make(runs, Options{Pods: 6400, Force: force})
			if err != nil {
				t.Fatal(err)
			}
			want, memory := c.want, c.memory
			if force && c.name != "all" {
				want, memory = strings.Split(strings.Replace(want, "not forecast", "forced", 1), ": run")[0], true
			}
			if plan.warningAbout(steadyMemory, want) == "" {
				t.Errorf("%s, forced %v: warnings are %v, want %q", c.name, force, plan.Warnings, want)
			}
			r := plan.Request.Resources
			if got := r.Requests.Memory != "" && r.Limits.Memory != ""; got != memory || (plan.warningAbout("request.resources", "no memory request") == "") != memory {
				t.Errorf("%s, forced %v: memory of %q to %q is asked for; warnings are %v", c.name, force, r.Requests.Memory, r.Limits.Memory, plan.Warnings)
			}
		}
	}
	runs := w.runs(nil, 2, sizes...)
	for i := range runs {
		runs[i].ControlPlane.Steady.MemoryBytes = nil
	}
	plan, err := Make(runs, Options{Pods: 1600, MemoryBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Request.Met {
		t.Error("memory of which nothing is known is called enough")
	}
	for i := range runs {
		if i > 3 {
			runs[i].ControlPlane.Rollout.CPUSeconds = nil
		}
	}
	if _, err := Make(runs, Options{Pods: 1600}); err == nil || !strings.Contains(err.Error(), rolloutCPU+": not forecast: of the runs that have it, 2 sizes were run") {
		t.Errorf("processor time of two sizes: %v", err)
	}
}

// Runs that differ in what they cost are not treated as equal.
func TestDifferences(t *testing.T) {
	for want, change := range map[string]func(*record.Run){
		"real sidecars (0; 5)":                       func(r *record.Run) { r.Scenario.Mesh.Sidecars.Real = 5 },
		"certificate storm (in the end; none)":       func(r *record.Run) { r.Scenario.Load.CertificateStorm = true },
		"program (a; b)":                             func(r *record.Run) { r.Environment.ControlPlane.Program = "b" },
		"memory limit (512 MiB, not enforced; none)": func(r *record.Run) { r.Environment.ControlPlane.MemoryLimitBytes = 512 << 20 },
		"processors (2; 4)":                          func(r *record.Run) { r.Environment.ControlPlane.GOMAXPROCS = 4 },
		"processors (2; 2 reference processors)":     func(r *record.Run) { r.Environment.ControlPlane.ReferenceProcessors = true },
		"certificate lifetime (30s; none)": func(r *record.Run) {
			r.Scenario.Mesh.Sidecars.CertificateLifetime = scenario.Duration(30 * time.Second)
		},
		"memory (1.0 GiB; 2.0 GiB)": func(r *record.Run) { r.Environment.MemoryBytes = 2 << 30 },
		"profile (plain; typical zones 0)": func(r *record.Run) {
			r.Scenario.Mesh.Profile, r.Scenario.Mesh.Parts.Zones = "typical", new(0)
		},
		"seed (0; 7)":                        func(r *record.Run) { r.Scenario.Mesh.Seed = 7 },
		"upgrade (in place to 1.31.0; none)": func(r *record.Run) { r.Scenario.ControlPlane.Upgrade = scenario.Upgrade{To: "1.31.0", InPlace: true} },
		"churn (2/s; none)":                  func(r *record.Run) { r.Scenario.Load.Churn = 2 },
		"faults (kill-control-plane@steady; none)": func(r *record.Run) {
			r.Scenario.Load.Faults = []scenario.Fault{{Kind: scenario.KillControlPlane, Phase: scenario.PhaseSteady}}
		},
		"arrival (20/s; all)": func(r *record.Run) { r.Scenario.Load.Arrival.Rate = 20 },
		"topology (a b with fan-out 3; layers with fan-out 3)": func(r *record.Run) { r.Scenario.Mesh.Topology = "a\x1bb" },
		"priority (control plane, scaler, cluster (nice -10, 0, 15); none)": func(r *record.Run) {
			r.Environment.Priority = &record.Priority{Mechanism: "nice", ControlPlane: -10, Cluster: 15}
		},
	} {
		runs := strict().runs(nil, 2, 200, 400, 800)
		for i := range runs[1:] {
			runs[i].Environment.ControlPlane.Program = "a"
			runs[i].Environment.MemoryBytes = 1 << 30
		}
		if _, err := Make(runs, Options{Pods: 1600}); err != nil {
			t.Fatalf("what one of the runs does not tell: %v", err)
		}
		change(&runs[1])
		if _, err := Make(runs, Options{Pods: 1600}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	runs := strict().runs(nil, 2, 200, 400, 800)
	runs[0].Environment.Scaler, runs[1].Environment.Scaler = "a", "b"
	plan, err := Make(runs, Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	if plan.warningAbout("runs", "several versions of scaler (a, b)") == "" {
		t.Errorf("warnings are %v", plan.Warnings)
	}
}

// A record is not obeyed by a terminal, nor by what shows Markdown.
func TestPrintIsPlain(t *testing.T) {
	runs := strict().runs(nil, 2, 200, 400, 800)
	for i := range runs {
		runs[i].Environment.ControlPlane.Version = "1\x1b[31m\n|<script>"
	}
	plan, err := Make(runs, Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{"table": "on istiod 1 [31m\n  |<script>", "wide": "1 [31m |<script>", "markdown": `1 \[31m \|&lt;script>`} {
		var b strings.Builder
		if err := Print(&b, format, plan); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "\x1b") {
			t.Errorf("%s: %q, want %q in it", format, b.String(), want)
		}
	}
}

// Headroom is added to the upper end of the interval.
func TestHeadroom(t *testing.T) {
	for headroom, want := range map[float64]string{0: "1215Mi", 0.3: "1580Mi"} {
		plan, err := Make(permissive().runs(nil, 2, 200, 400, 600, 800), Options{Pods: 1600, Headroom: headroom})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Request.Resources.Limits.Memory; got != want { // (122 + 80 + 0.67 x 1600) MB
			t.Errorf("headroom %v: a limit of %s, want %s", headroom, got, want)
		}
	}
}

func TestPrint(t *testing.T) {
	w := permissive()
	w.saturation = 0.9
	runs := w.runs(nil, 2, 200, 400, 600, 800, 1600)
	for i := range runs { // a spread of 2 %
		*runs[i].ControlPlane.Rollout.CPUSeconds *= 0.98 + 0.04*float64(i%2)
		*runs[i].ControlPlane.Rollout.MemoryBytes.Peak *= 1.02 - 0.04*float64(i%2)
	}
	for name, o := range map[string]Options{
		"plan":     {Pods: 5000, Within: 10 * time.Minute, Headroom: 0.3, ReplicasMax: 3},
		"validate": {Validate: true, Headroom: 0.3},
	} {
		plan, err := Make(runs, o)
		if err != nil {
			t.Fatal(err)
		}
		for format, extension := range map[string]string{"table": "brief.txt", "wide": "txt", "markdown": "md", "json": "json", "yaml": "yaml"} {
			var b strings.Builder
			if err := Print(&b, format, plan); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", name+"."+extension), b.String())
		}
	}
	if err := Print(&strings.Builder{}, "xml", &Plan{}); err == nil {
		t.Error("a plan is printed as XML")
	}
}
