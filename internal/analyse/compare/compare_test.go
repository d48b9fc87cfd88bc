package compare

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

// alter changes a run before it is compared.
type alter func(*record.Run)

// runs makes so many completed repeats of one run; what varies from one to the
// next does so by 2 %, by the seed.
func runs(side string, n int, seed uint64, alters ...alter) []record.Run {
	r := rand.New(rand.NewPCG(seed, 0))
	about := func(v float64) *float64 { return new(v * (1 + 0.02*r.NormFloat64())) }
	var all []record.Run
	for i := range n {
		run := record.Run{
			Name: "istiod-strict-30", Dir: fmt.Sprintf("%s/%d", side, i+1), Status: record.StatusCompleted,
			Started:  time.Date(2026, 11, 21, 12, 2*i, int(seed), 0, time.UTC),
			Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{30}, Services: 3, Namespaces: 1, Topology: "layers", FanOut: 3, Seed: 1, Mode: scenario.List[string]{"strict"}, Sidecars: scenario.Sidecars{XDS: "delta"}}, Load: scenario.Load{Probes: 5}, Phases: scenario.Phases{Steady: scenario.Duration(5 * time.Second)}},
			Environment: record.Environment{
				CPUs: 2, MemoryBytes: 25e9, Kernel: "6.1", Kubernetes: "v1.36.3", Kwok: "v0.8.0", Scaler: "v1",
				ControlPlane: record.ControlPlaneSource{Name: "istiod", Version: "1.31.0", Replicas: 1, GOMAXPROCS: 2},
				Knobs:        scenario.Settings{MTLS: "strict", Scope: "declared", Authz: "declared"},
			},
			Phases: []record.Phase{{Name: record.PhaseRollout, Seconds: about(4), EndedBy: record.EndedByConverged}},
			ControlPlane: &record.ByPhase[*record.Usage]{
				Rollout: &record.Usage{Cores: &record.Level{Mean: about(0.3), Peak: about(0.6)}, MemoryBytes: &record.Level{Peak: about(150e6)}, Restarts: new(0)},
				Steady:  &record.Usage{Cores: &record.Level{Mean: about(0.01)}, MemoryBytes: &record.Level{Mean: about(140e6)}},
			},
			Latencies: record.Latencies{Push: map[record.ChangeKind]*record.Latency{
				record.EndpointAdd: {Unit: "s", Count: 150, P50: about(0.11), P99: about(0.13)},
			}},
			XDS: &record.XDS{Refusals: new(int64(i % 3)), ConfigurationBytes: &record.ConfigurationBytes{Mean: new(9e3)}},
		}
		for _, change := range alters {
			change(&run)
		}
		all = append(all, run)
	}
	return all
}

func debounced(r *record.Run) {
	r.Environment.ControlPlane.Settings = map[string]string{"PILOT_DEBOUNCE_AFTER": "1s"}
	l := r.Latencies.Push[record.EndpointAdd]
	*l.P50 += 0.9
	*l.P99 += 0.9
}

func comparison(t *testing.T, a, b []record.Run, o Options) *Result {
	t.Helper()
	r, err := Compare(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verdicts(c Group) map[string]Verdict {
	all := map[string]Verdict{}
	for _, f := range c.Figures {
		all[f.Name] = f.Verdict
	}
	return all
}

func TestLikeWithLike(t *testing.T) {
	r := comparison(t, runs("a", 5, 1), runs("b", 5, 2), Options{})
	for name, verdict := range verdicts(r.Groups[0]) {
		want := CannotTell
		switch name {
		case "rollout.restarts", "xds.configurationBytes", "push.endpointAdd.lost":
			want = Same
		}
		if verdict != want {
			t.Errorf("%s: %s, want %s", name, verdict, want)
		}
	}
	if r.Tests != 9 {
		t.Errorf("%d tests, want 9: what is the same in every run is none", r.Tests)
	}
}

func TestDebounce(t *testing.T) {
	r := comparison(t, runs("a", 5, 1), runs("b", 5, 2, debounced), Options{})
	for name, verdict := range verdicts(r.Groups[0]) {
		push := name == "push.endpointAdd.p50" || name == "push.endpointAdd.p99"
		if push != (verdict == Higher) || verdict == Lower {
			t.Errorf("%s: %s", name, verdict)
		}
	}
	if got := r.Groups[0].Differs; len(got) != 1 || got[0] != (Differing{"PILOT_DEBOUNCE_AFTER", "not set", "1s"}) {
		t.Errorf("differs: %+v", got)
	}
	for _, f := range r.Groups[0].Figures {
		if f.Name == "push.endpointAdd.p50" && (*f.Low < 7 || *f.High > 10 || !f.Ratio || *f.Holm <= *f.P) {
			t.Errorf("%+v", f)
		}
	}
}

// What is known exactly differs when it differs in every run; a digit that is
// lost in rounding does not.
func TestWithoutVariance(t *testing.T) {
	for _, tt := range []struct {
		bytes float64
		want  Verdict
	}{{9000, Same}, {9005, CannotTell}, {9450, Higher}, {8000, Lower}} {
		b := runs("b", 5, 2, func(r *record.Run) { *r.XDS.ConfigurationBytes.Mean = tt.bytes })
		r := comparison(t, runs("a", 5, 1), b, Options{})
		if got := verdicts(r.Groups[0])["xds.configurationBytes"]; got != tt.want {
			t.Errorf("%v bytes: %s, want %s", tt.bytes, got, tt.want)
		}
	}
}

func TestTooFewRepeats(t *testing.T) {
	for _, tt := range []struct {
		a, b   int
		tested bool
	}{{1, 1, false}, {2, 2, false}, {3, 3, false}, {3, 4, false}, {1, 30, false}, {4, 4, true}, {3, 6, true}, {5, 5, true}} {
		r := comparison(t, runs("a", tt.a, 1), runs("b", tt.b, 2, debounced), Options{})
		want := TooFew
		if tt.tested {
			want = Higher
		}
		if got := verdicts(r.Groups[0])["push.endpointAdd.p50"]; got != want {
			t.Errorf("%d against %d: %s, want %s", tt.a, tt.b, got, want)
		}
		if !tt.tested && (r.Tests != 0 || !strings.Contains(r.headline(), "too few repeats")) {
			t.Errorf("%d against %d: %d tests, %q", tt.a, tt.b, r.Tests, r.headline())
		}
		if text := output.Wide(r.write); strings.HasPrefix(text, "NOT TESTED: too few repeats") == tt.tested || strings.Contains(text, "\nNOT TESTED: TOO FEW REPEATS") == tt.tested {
			t.Errorf("%d against %d: it prints\n%s", tt.a, tt.b, text)
		}
	}
}

// withReal gives a run real sidecars.
func withReal(n int) alter {
	return func(r *record.Run) { r.Scenario.Mesh.Sidecars.Real = n }
}

// A run that failed before it had real sidecars and a storm stays with those that had theirs.
func TestAlikeInRealSidecarsAndStorm(t *testing.T) {
	asked := func(r *record.Run) { r.Scenario.Mesh.Sidecars.Real, r.Scenario.Load.CertificateStorm = 5, true }
	measured := func(r *record.Run) {
		asked(r)
		r.Sidecars = &record.Sidecars{Real: &record.RealSidecars{Count: 5}}
		r.Certificates = &record.Certificates{Storm: &record.CertificateStorm{}}
	}
	b := runs("b", 5, 2, asked)
	b[0].Status = record.StatusUnconverged
	r := comparison(t, runs("a", 5, 1, measured), b, Options{})
	if len(r.Groups) != 1 || len(r.Groups[0].B.Unused) != 1 {
		t.Errorf("%+v", r.Groups)
	}
}

func TestNotComparable(t *testing.T) {
	sized := func(pods int) alter {
		return func(r *record.Run) {
			r.Scenario.Mesh.Pods, r.Scenario.Mesh.Services = scenario.List[int]{pods}, pods/10
		}
	}
	ladder := slices.Concat(runs("a/30", 5, 1), runs("a/60", 5, 3, sized(60)))
	for _, tt := range []struct {
		name string
		a, b []record.Run
		want string // in the error
		left int    // groups with Force; 0 = an error
	}{
		{"machine", runs("a", 5, 1), runs("b", 5, 2, func(r *record.Run) { r.Environment.CPUs = 8 }), "CPUs 2 in A, 8 in B", 1},
		{"kernel", runs("a", 5, 1), runs("b", 5, 2, func(r *record.Run) { r.Environment.Kernel = "6.2" }), "kernel 6.1 in A, 6.2 in B", 1},
		{"size", runs("a", 5, 1), runs("b", 5, 2, sized(60)), "pods 30 in A, 60 in B", 1},
		{"knobs", runs("a", 5, 1), runs("b", 5, 2, func(r *record.Run) { r.Environment.Knobs.Scope = "all" }), "knobs mtls strict, scope declared, authz declared in A, mtls strict, scope all", 1},
		{"length", runs("a", 5, 1), runs("b", 5, 2, func(r *record.Run) { r.Scenario.Phases.Steady = scenario.Duration(time.Minute) }), "steady 5s in A, 1m in B", 1},
		{"real sidecars", runs("a", 5, 1), runs("b", 5, 2, withReal(5)), "real sidecars 0 in A, 5 in B", 1},
		{"number of real sidecars", runs("a", 5, 1, withReal(2)), runs("b", 5, 2, withReal(5)), "real sidecars 2 in A, 5 in B", 1},
		{"storm", runs("a", 5, 1), runs("b", 5, 2, func(r *record.Run) { r.Scenario.Load.CertificateStorm = true }), "certificate storm none in A, in the end in B", 1},
		{"one size on one side alone", ladder, runs("b", 5, 2), "60 pods, 6 services, mtls strict, scope declared, authz declared: only in A", 1},
		{"the same on the other", runs("b", 5, 2), ladder, "only in B", 1},
		{"nothing in common", ladder, slices.Concat(runs("b", 5, 2, sized(90)), runs("b", 5, 2, sized(120))), "120 pods", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compare(tt.a, tt.b, Options{})
			if !errors.Is(err, ErrNotComparable) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: want one line with %q", err, tt.want)
			}
			r, err := Compare(tt.a, tt.b, Options{Force: true})
			if tt.left == 0 {
				if !errors.Is(err, ErrNotComparable) {
					t.Errorf("forced: %v", err)
				}
				return
			}
			if err != nil || len(r.Groups) != tt.left {
				t.Fatalf("forced: %v, %+v", err, r)
			}
			if len(r.Groups[0].Forced) == 0 && !strings.Contains(strings.Join(r.Remarks, "\n"), "not compared") {
				t.Errorf("forced, and not said: %+v", r.Remarks)
			}
		})
	}
	// Versions, settings and resources of the control plane are what is compared.
	comparison(t, runs("a", 5, 1), runs("b", 5, 2, func(r *record.Run) {
		r.Environment.ControlPlane = record.ControlPlaneSource{Name: "istiod", Version: "2", GOMAXPROCS: 1, MemoryLimitBytes: 1 << 30}
	}), Options{})
	// But not within one side.
	mixed := append(runs("a", 3, 1), runs("a2", 3, 1, debounced)...)
	if _, err := Compare(mixed, runs("b", 5, 2), Options{Force: true}); err == nil || !strings.Contains(err.Error(), "two control planes") {
		t.Errorf("two control planes on one side: %v", err)
	}
}

func TestLadder(t *testing.T) {
	sized := func(pods int) alter { return func(r *record.Run) { r.Scenario.Mesh.Pods = scenario.List[int]{pods} } }
	a := slices.Concat(runs("a/60", 5, 3, sized(60)), runs("a/30", 5, 1))
	b := slices.Concat(runs("b/30", 5, 2), runs("b/60", 5, 4, sized(60), debounced))
	r := comparison(t, a, b, Options{})
	if len(r.Groups) != 2 || r.Groups[0].Pods != 30 || r.Groups[1].Pods != 60 || r.Tests != 18 {
		t.Fatalf("%d tests in %+v", r.Tests, r.Groups)
	}
	if v := verdicts(r.Groups[0])["push.endpointAdd.p50"]; v != CannotTell {
		t.Errorf("30 pods: %s", v)
	}
	if v := verdicts(r.Groups[1])["push.endpointAdd.p50"]; v != Higher {
		t.Errorf("60 pods: %s", v)
	}
}

func TestIncompleteRunsAreSaid(t *testing.T) {
	b := runs("b", 6, 2)
	b[0].Status = record.StatusUnconverged
	b[1] = record.Run{Name: "killed", Dir: "b/2", Status: record.StatusInterrupted}
	r := comparison(t, runs("a", 5, 1), b, Options{})
	said := strings.Join(r.Remarks, "\n")
	for _, want := range []string{"1 of 5 runs of B did not complete and are not compared (b/1 unconverged)", "b/2 is not compared: its record does not say yet"} {
		if !strings.Contains(said, want) {
			t.Errorf("remarks: %s\nwant %q", said, want)
		}
	}
	if c := r.Groups[0]; len(c.B.Used) != 4 || len(c.B.Unused) != 1 || c.Figures[0].B.N != 4 {
		t.Errorf("%+v", c.B)
	}
	// None completed: nothing is measured, and that is no reason to refuse.
	failed := runs("b", 5, 2, func(r *record.Run) { r.Status, r.Reason = record.StatusFailed, "out of memory" })
	r = comparison(t, runs("a", 5, 1), failed, Options{})
	if v := verdicts(r.Groups[0])["rollout.cores"]; v != Unmeasured || r.Groups[0].B.Unused[0].Reason != "out of memory" {
		t.Errorf("%s, %+v", v, r.Groups[0].B)
	}
}

func TestLoss(t *testing.T) {
	b := runs("b", 5, 2)
	b[3].Latencies.Push[record.EndpointAdd].P99 = nil
	b[3].Latencies.Push[record.EndpointAdd].Lost = 7
	r := comparison(t, runs("a", 5, 1), b, Options{})
	v := verdicts(r.Groups[0])
	if v["push.endpointAdd.p99"] != WithLoss || v["push.endpointAdd.p50"] != CannotTell || v["push.endpointAdd.lost"] != CannotTell {
		t.Errorf("%v", v)
	}
}

func TestWarningsStandWithFigures(t *testing.T) {
	a := runs("a", 5, 1)
	for i := range 3 {
		a[i].Warnings = []record.Warning{{About: "controlPlane.rollout", Reason: record.ReasonSaturated, Phase: record.PhaseRollout, Values: map[string]float64{"share": 0.6 + float64(i)/100}}}
	}
	b := runs("b", 5, 2)
	b[0].Warnings = a[0].Warnings
	b[1].Warnings = []record.Warning{{About: "latencies", Text: "late"}}
	r := comparison(t, a, b, Options{})
	if len(r.Warnings) != 2 || r.Warnings[0].A != 3 || r.Warnings[0].B != 1 || r.Warnings[0].Text != a[0].Warnings[0].Sentence() {
		t.Fatalf("%+v", r.Warnings)
	}
	for _, f := range r.Groups[0].Figures {
		var want []int
		switch {
		case strings.HasPrefix(f.Path, "controlPlane.rollout."):
			want = []int{1}
		case strings.HasPrefix(f.Path, "latencies.push."), strings.HasPrefix(f.Path, "latencies.propagation."):
			want = []int{2}
		case strings.HasPrefix(f.Path, "latencies."):
			want = []int{1, 2}
		case f.Path == "phases.rollout.seconds": // a time of what was saturated
			want = []int{1}
		}
		if !slices.Equal(f.Warnings, want) {
			t.Errorf("%s: %v, want %v", f.Path, f.Warnings, want)
		}
	}
}

func TestRemarks(t *testing.T) {
	say := func(a, b []record.Run) string { return strings.Join(comparison(t, a, b, Options{}).Remarks, "\n") }
	later := func(r *record.Run) { r.Started = r.Started.Add(time.Hour) }
	if said := say(runs("a", 5, 1), runs("b", 5, 2, later)); !strings.Contains(said, "were not interleaved (they ran as AAAAABBBBB)") {
		t.Errorf("one after the other: %q", said)
	}
	if said := say(runs("a", 5, 1), runs("b", 5, 2)); strings.Contains(said, "were not interleaved (they ran as AAAAABBBBB)") || !strings.Contains(said, "say the same of both") {
		t.Errorf("in turns: %q", said)
	}
	if said := say(runs("a", 5, 1), runs("a", 5, 1)); !strings.Contains(said, "a/1 is on both sides") {
		t.Errorf("one folder twice: %q", said)
	}
}

func TestFiguresChosen(t *testing.T) {
	a, b := runs("a", 5, 1), runs("b", 5, 2)
	for _, tt := range []struct {
		names []string
		want  int
	}{{[]string{"push"}, 3}, {[]string{"rollout.cores"}, 2}, {[]string{"controlPlane.rollout.cores.mean"}, 2}, {[]string{"controlPlane"}, 6}, {[]string{"push", "rollout.seconds"}, 4}} {
		if r := comparison(t, a, b, Options{Figures: tt.names}); len(r.Groups[0].Figures) != tt.want {
			t.Errorf("%v: %v, want %d figures", tt.names, verdicts(r.Groups[0]), tt.want)
		}
	}
	if _, err := Compare(a, b, Options{Figures: []string{"push.endpointAddd"}}); err == nil || !strings.Contains(err.Error(), "as push.endpointAdd.p50") {
		t.Errorf("a name that is none: %v", err)
	}
}

func TestPrint(t *testing.T) {
	a, b := runs("a", 5, 1), runs("b", 5, 2, debounced)
	a[0].Warnings = []record.Warning{{About: "controlPlane.rollout", Reason: record.ReasonSaturated, Phase: record.PhaseRollout, Text: "saturated for up to 60% | of it"}}
	b[4].Latencies.Push[record.EndpointAdd].P99, b[4].Latencies.Push[record.EndpointAdd].Lost = nil, 3
	var bounds []Bound
	for _, text := range []string{"rollout.cores>+10%", "push.endpointAdd.p50>+50ms", "push.endpointAdd.p99>+10%"} {
		bound, err := ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		bounds = append(bounds, bound)
	}
	r := comparison(t, a, b, Options{A: "before", B: "after", Bounds: bounds})
	var junit strings.Builder
	if err := r.JUnit(&junit); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "compare.xml"), junit.String())
	for format, file := range map[string]string{"table": "compare.brief.txt", "wide": "compare.txt", "markdown": "compare.md", "json": "compare.json", "yaml": "compare.yaml"} {
		var out strings.Builder
		if err := Print(&out, format, r); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata", file), out.String())
	}
	if err := Print(&junit, "xml", r); err == nil {
		t.Error("printed as xml")
	}
}

// An answer has at most 20 lines, unless what decides the exit code needs more: that is all in it.
func TestAnswer(t *testing.T) {
	sized := func(pods int) alter {
		return func(r *record.Run) {
			r.Scenario.Mesh.Pods, r.Scenario.Mesh.Services = scenario.List[int]{pods}, pods/10
		}
	}
	a := slices.Concat(runs("a/30", 5, 1), runs("a/60", 5, 3, sized(60)))
	b := slices.Concat(runs("b/30", 5, 2, debounced), runs("b/60", 5, 4, sized(60), debounced))
	bounds := func(texts ...string) (all []Bound) {
		for _, text := range texts {
			bound, err := ParseBound(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, bound)
		}
		return all
	}
	kept := []string{"rollout.cores>+50%", "rollout.seconds>+50%", "steady.cores>+50%", "steady.memoryBytes>+50%", "rollout.cores.peak>+50%", "rollout.memoryBytes.peak>+50%"}
	var missed []string
	for i := range 12 {
		missed = append(missed, fmt.Sprintf("push.endpointAdd.p50>+%dms", 10+i))
	}
	for _, tt := range []struct {
		name string
		o    Options
		fits bool
		want []string
	}{
		{"two sizes", Options{}, true, []string{"push.endpointAdd.p50 30 pods ", "push.endpointAdd.p50 60 pods ", "rollout.seconds "}},
		{"kept bounds", Options{Bounds: bounds(kept...)}, true, []string{"12 bounds kept.", "push.endpointAdd.p50 "}},
		{"a missed one among them", Options{Bounds: bounds(append(kept, "push.endpointAdd.p50>+50ms")...)}, true,
			[]string{"12 bounds kept.", "push.endpointAdd.p50>+50ms (30 pods): beyond, ", "push.endpointAdd.p50>+50ms (60 pods): beyond, "}},
		{"many missed", Options{Bounds: bounds(missed...)}, false, func() (want []string) {
			for _, bound := range missed {
				want = append(want, bound+" (30 pods): beyond, ", bound+" (60 pods): beyond, ")
			}
			return want
		}()},
		{"equal or not", Options{EqualWithin: 0.1, Figures: []string{"push.endpointAdd", "rollout.seconds", "xds.refusals"}}, true,
			[]string{"It is not decided whether equal within 10 %: xds.refusals (30 pods), xds.refusals (60 pods): more runs", "higher different", "~ equal"}},
		{"not in turns", Options{Bounds: bounds("rollout.cores>+10%")}, true, []string{"rollout.cores>+10% (30 pods): "}},
	} {
		r := comparison(t, a, b, tt.o)
		for _, width := range []int{80, 100} {
			text := r.answer(width)
			words := strings.Join(strings.Fields(text), " ")
			if lines := strings.Count(text, "\n"); lines > output.AnswerLines && tt.fits {
				t.Errorf("%s: %d lines at %d columns:\n%s", tt.name, lines, width, text)
			}
			for _, want := range tt.want {
				if !strings.Contains(words, want) {
					t.Errorf("%s: it lacks %q:\n%s", tt.name, want, text)
				}
			}
		}
	}
}

// ambiently is a run whose nodes have proxies.
func ambiently(r *record.Run) {
	r.Scenario.Mesh.Dataplane, r.Scenario.Mesh.PodsPerNode, r.Environment.Knobs.Scope = scenario.List[string]{"ambient"}, 10, ""
	r.Proxies = &record.Proxies{Name: "ztunnel", Nodes: 3}
}

// Data planes are compared by what means the same in both.
func TestDataPlanesAreCompared(t *testing.T) {
	probed := func(r *record.Run) {
		r.ControlPlane.Probe, r.ControlPlane.Baseline = &record.Usage{CPUSeconds: new(1.0)}, &record.Usage{CPUSeconds: new(1.0)}
	}
	r := comparison(t, runs("a", 4, 1, probed), runs("b", 4, 2, ambiently, probed), Options{})
	if len(r.Groups) != 1 || r.Groups[0].Forced != nil {
		t.Fatalf("%+v", r.Groups)
	}
	for _, want := range []Differing{{"data plane", "sidecar", "ambient"}, {"pods per node", "not set", "10"}, {"scope", "declared", "none"}} {
		if !slices.Contains(r.Groups[0].Differs, want) {
			t.Errorf("%v is not among what differs: %v", want, r.Groups[0].Differs)
		}
	}
	var names []string
	for _, f := range r.Groups[0].Figures {
		names = append(names, f.Path)
	}
	for path, want := range map[string]bool{
		"controlPlane.rollout.cores.mean": true, "phases.rollout.seconds": true, "latencies.push.endpointAdd.p50": false, "xds.configurationBytes.mean": false, "xds.refusals": false, "controlPlane.probe.cpuSeconds": false,
		"controlPlane.baseline.cpuSeconds": false,
	} {
		if slices.Contains(names, path) != want {
			t.Errorf("%s is compared: want %v, among %v", path, want, names)
		}
	}
	if !slices.ContainsFunc(r.Remarks, func(text string) bool { return strings.Contains(text, "data planes") }) {
		t.Errorf("remarks %v", r.Remarks)
	}
	// A side of several data planes has nothing to compare with one.
	both := append(runs("a", 4, 1), runs("c", 4, 3, ambiently)...)
	if _, err := Compare(both, runs("b", 4, 2, ambiently), Options{}); !errors.Is(err, ErrNotComparable) {
		t.Errorf("a side of both data planes: %v", err)
	}
	// Nor do other modes.
	if _, err := Compare(runs("a", 4, 1), runs("b", 4, 2, ambiently, func(r *record.Run) { r.Environment.Knobs.Authz = "none" }), Options{}); !errors.Is(err, ErrNotComparable) {
		t.Errorf("another mode: %v", err)
	}
	// Runs of one data plane are compared by all figures.
	r = comparison(t, runs("a", 4, 1, ambiently), runs("b", 4, 2, ambiently), Options{})
	if !slices.ContainsFunc(r.Groups[0].Figures, func(f Figure) bool { return f.Path == "latencies.push.endpointAdd.p50" }) {
		t.Error("pushes of one data plane are not compared")
	}
}
