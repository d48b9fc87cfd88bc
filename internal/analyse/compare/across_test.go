package compare

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

// planesOfTest are two control planes: one program, and one with a helper and meanings of its own.
var planesOfTest = []Plane{
	{Name: "istiod", Work: "one program"},
	{Name: "other", Work: "two programs", Helpers: []string{"other-helper"}, Meanings: map[string]string{
		"controlPlane": "the first of two programs", "latencies.certificate": "from the request on the stream to the received secret",
		"phases": "is ignored: it means the same with every control plane",
	}},
}

// certified gives a run the latency of certificates.
func certified(r *record.Run) {
	r.Latencies.Certificate = &record.Latency{Unit: "s", Count: 30, P50: new(0.1 * float64(len(r.Dir)) / 3), P99: new(0.3)}
}

// ofOther makes a run one of the other control plane.
func ofOther(r *record.Run) {
	r.Environment.ControlPlane = record.ControlPlaneSource{Name: "other", Version: "2", Replicas: 1, GOMAXPROCS: 2}
	r.Environment.Knobs = scenario.Settings{MTLS: "strict", Scope: "all", Authz: "none"}
	r.Scenario.Mesh.Sidecars.XDS = "sotw"
	r.ControlPlane.Rollout.CPUSeconds = new(2.0)
	r.Cluster = map[string]record.ByPhase[*record.Usage]{"other-helper": {Rollout: &record.Usage{
		CPUSeconds: new(3.0 + *r.ControlPlane.Rollout.Cores.Mean), Cores: &record.Level{Mean: new(0.5)},
	}}}
}

func ofIstiod(r *record.Run) {
	r.ControlPlane.Rollout.CPUSeconds = new(1 + *r.ControlPlane.Rollout.Cores.Mean)
}

func permissively(r *record.Run) {
	r.Scenario.Mesh.Mode = scenario.List[string]{"permissive"}
	r.Environment.Knobs = scenario.Settings{MTLS: "permissive", Scope: "all", Authz: "none"}
}

func TestAcrossControlPlanes(t *testing.T) {
	a, b := runs("a", 5, 1, certified, ofIstiod), runs("b", 5, 2, certified, ofOther)
	_, err := Compare(a, b, Options{})
	if !errors.Is(err, ErrNotComparable) || !strings.Contains(err.Error(), "control plane istiod in A, other in B: --across-control-planes compares") {
		t.Errorf("without Planes: %v", err)
	}
	forced := comparison(t, a, b, Options{Force: true})
	if verdicts(forced.Groups[0])["certificate.p50"] == OtherMeaning || !slices.ContainsFunc(forced.Remarks, func(text string) bool { return strings.Contains(text, "figures need not mean the same") }) {
		t.Errorf("forced: %v", forced.Remarks)
	}

	r := comparison(t, a, b, Options{A: "istio", B: "other", Planes: planesOfTest})
	if len(r.Groups) != 1 || r.Groups[0].Forced != nil {
		t.Fatalf("%+v", r.Groups)
	}
	got := verdicts(r.Groups[0])
	for name, want := range map[string]Verdict{
		"rollout.seconds": CannotTell, "push.endpointAdd.p50": CannotTell, "allPrograms.rollout.cpuSeconds": Higher, "allPrograms.rollout.cores": Higher,
		"rollout.cores": OtherMeaning, "rollout.cpuSeconds": OtherMeaning, "certificate.p50": OtherMeaning, "certificate.p99": OtherMeaning,
		"xds.refusals": CannotTell, // neither of the two states that it is anything else
		"cluster.other-helper.rollout.cpuSeconds": Unmeasured,
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	for _, f := range r.Groups[0].Figures {
		if f.Verdict == OtherMeaning && (f.Difference != nil || f.Low != nil || f.P != nil || f.Holm != nil) {
			t.Errorf("%s has a difference: %+v", f.Name, f)
		}
	}
	want := Modes{
		A: Mode{"istiod 1.31.0", "one program", "strict", "plaintext is refused, each proxy is configured for the services that its workload calls, only declared calls are allowed"},
		B: Mode{"other 2", "two programs", "strict", "plaintext is refused, each proxy is configured for every service, every call of the mesh is allowed"},
	}
	if *r.Groups[0].Modes != want {
		t.Errorf("modes %+v", *r.Groups[0].Modes)
	}
	for format, file := range map[string]string{"table": "across.brief.txt", "wide": "across.txt", "markdown": "across.md", "json": "across.json"} {
		var out strings.Builder
		if err := Print(&out, format, r); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata", file), out.String())
	}

	// One control plane on both sides is compared as always.
	same := comparison(t, a, runs("c", 5, 3, certified, ofIstiod), Options{Planes: planesOfTest})
	if v := verdicts(same.Groups[0]); v["certificate.p50"] != Same || v["allPrograms.rollout.cores"] != "" || same.Groups[0].Modes != nil {
		t.Errorf("one control plane: %v", v)
	}
}

func TestSidesOfControlPlanes(t *testing.T) {
	a := runs("a", 5, 1)
	for name, tt := range map[string]struct {
		b       []record.Run
		options Options
		want    string
	}{
		"unknown":    {runs("b", 5, 2, func(r *record.Run) { r.Environment.ControlPlane.Name = "unheard" }), Options{}, `what figures mean with control plane "unheard" is not known`},
		"two of one": {slices.Concat(runs("b", 5, 2, ofOther), runs("c", 5, 3, permissively)), Options{}, "B holds runs of two control planes, istiod and other: want one on each side"},
		"size":       {runs("b", 5, 2, ofOther, func(r *record.Run) { r.Scenario.Mesh.Pods = scenario.List[int]{60} }), Options{}, "pods 30 in A, 60 in B"},
		"bound":      {runs("b", 5, 2, ofOther), Options{Bounds: []Bound{{Text: "rollout.cores>+10%", Figure: "rollout.cores", Change: 0.1, Percent: true}}}, "a figure that means the same with both control planes, as rollout.cores does not"},
	} {
		tt.options.Planes = planesOfTest
		if _, err := Compare(a, tt.b, tt.options); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", name, err, tt.want)
		}
	}
	// A bound on a figure that means the same with both is judged.
	bound := Bound{Text: "rollout.seconds>+50%", Figure: "rollout.seconds", Change: 0.5, Percent: true}
	if r := comparison(t, a, runs("b", 5, 2, ofOther), Options{Planes: planesOfTest, Bounds: []Bound{bound}}); r.Bounds[0].Outcome != Inside {
		t.Errorf("%+v", r.Bounds)
	}
}

// Modes of one name are paired; where a side has one mode, it is paired with all of the other.
func TestModesArePaired(t *testing.T) {
	both := slices.Concat(runs("a/strict", 4, 1), runs("a/permissive", 4, 2, permissively))
	automatic := func(r *record.Run) { r.Scenario.Mesh.Mode = scenario.List[string]{"automatic"} }
	for name, tt := range map[string]struct {
		b    []record.Run
		want []string
	}{
		"both": {slices.Concat(runs("b/strict", 4, 3, ofOther), runs("b/permissive", 4, 4, ofOther, permissively)), []string{"30 pods, 3 services, permissive", "30 pods, 3 services, strict"}},
		"one":  {runs("b", 4, 3, ofOther, automatic), []string{"30 pods, 3 services, permissive in A, automatic in B", "30 pods, 3 services, strict in A, automatic in B"}},
	} {
		var labels []string
		for _, c := range comparison(t, both, tt.b, Options{Planes: planesOfTest}).Groups {
			labels = append(labels, c.Label)
		}
		slices.Sort(labels)
		if !slices.Equal(labels, tt.want) {
			t.Errorf("%s: %q, want %q", name, labels, tt.want)
		}
	}
}

// A warning about one of the programs is about their sum.
func TestWarningsOfAllPrograms(t *testing.T) {
	b := runs("b", 4, 2, ofOther)
	b[0].Warnings = []record.Warning{{About: "cluster.other-helper.rollout", Text: "bias"}}
	r := comparison(t, runs("a", 4, 1, ofIstiod), b, Options{Planes: planesOfTest})
	for _, f := range r.Groups[0].Figures {
		if f.Path == "allPrograms.rollout.cpuSeconds" && !slices.Equal(f.Warnings, []int{1}) {
			t.Errorf("%+v", f)
		}
	}
}
