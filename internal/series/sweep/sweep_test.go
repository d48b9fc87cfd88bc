package sweep

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// measured are the figures of a made-up run.
type measured struct{ cpu, push float64 }

// bench makes runs up: those of an environment have the figures of it, within 1 %, and a
// processor time that varies by spread where that is above 0.
type bench struct {
	t      *testing.T
	of     func(env string) measured
	random *rand.Rand
	spread float64
	asked  []string // environments, in the order of the runs
	ends   func(env string) error
}

func newBench(t *testing.T, of func(env string) measured) *bench {
	return &bench{t: t, of: of, random: rand.New(rand.NewPCG(1, 2))}
}

// run writes a record as a rollout does.
func (b *bench) run(_ context.Context, spec run.Spec, _ run.Progress) (record.Run, error) {
	env := strings.Join(spec.ControlPlane.Env, " ")
	b.asked = append(b.asked, env)
	if spec.Repeats > 1 {
		b.t.Errorf("a run repeats itself %d times: the sweep does", spec.Repeats)
	}
	folder, err := record.Open(spec.Out)
	if err != nil {
		b.t.Fatal(err)
	}
	writer, err := folder.Create(spec.Name())
	if err != nil {
		b.t.Fatal(err)
	}
	about := func(v float64) *float64 { return new(v * (1 + 0.01*b.random.NormFloat64())) }
	m := b.of(env)
	cpu := about(m.cpu)
	if b.spread > 0 {
		cpu = new(m.cpu * math.Exp(b.spread*b.random.NormFloat64()))
	}
	settings := map[string]string{}
	for _, kv := range spec.ControlPlane.Env {
		name, value, _ := strings.Cut(kv, "=")
		settings[name] = value
	}
	run := record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema, Name: spec.Name(), Status: record.StatusCompleted, Started: time.Now(),
		Scenario:     scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{spec.Pods()}}},
		Environment:  record.Environment{ControlPlane: record.ControlPlaneSource{Name: "istiod", Settings: settings}},
		ControlPlane: &record.ByPhase[*record.Usage]{Rollout: &record.Usage{CPUSeconds: cpu}},
		Change:       &record.Change{Changes: new(200), Push: &record.Latency{Unit: "s", Count: 1000, P50: about(m.push), P99: about(2 * m.push)}},
	}
	if b.ends != nil {
		if err = b.ends(env); err != nil {
			run.Status = record.StatusUnconverged
		}
	}
	if saveErr := errors.Join(writer.Save(&run), writer.Close(), folder.Close()); saveErr != nil {
		b.t.Fatal(saveErr)
	}
	run.Dir = filepath.Join(spec.Out, spec.Name())
	return run, err
}

// tuning returns a sweep of these settings on the bench.
func tuning(t *testing.T, b *bench, repeats int, settings ...string) Options {
	t.Helper()
	var parsed []Setting
	for _, text := range settings {
		s, err := ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, s)
	}
	spec := run.DefaultSpec()
	spec.Out, spec.Repeats = filepath.Join(t.TempDir(), "out"), repeats
	o, err := Tuning(spec, parsed, false)
	if err != nil {
		t.Fatal(err)
	}
	o.Repeats, o.Run = repeats, b.run
	return o
}

func flat(string) measured { return measured{10, 0.1} }

func TestRecommendation(t *testing.T) {
	better := func(env string) measured {
		switch env {
		case "B=10ms":
			return measured{10, 0.05} // push better, CPU time the same
		case "B=1s":
			return measured{5, 1} // trades
		}
		return flat(env)
	}
	slo := func(text string) *compare.Objective {
		o, err := compare.ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		return &o
	}
	for name, c := range map[string]struct {
		of          func(string) measured
		repeats     int
		slo         *compare.Objective
		goal        string
		answer      Answer
		recommended string
		says        string
	}{
		"no gain":                        {of: flat, repeats: 5, answer: NoGain, says: "No significant gain"},
		"better":                         {of: better, repeats: 5, answer: Recommends, recommended: "B=10ms", says: "B=1s trades: better rollout.cpuSeconds"},
		"goal":                           {of: better, repeats: 5, goal: "rollout.cpuSeconds", answer: Recommends, recommended: "B=1s", says: "it costs"},
		"goal that nothing reaches":      {of: flat, repeats: 5, goal: "rollout.cpuSeconds", answer: NoGain, says: "No significant gain"},
		"objective excludes":             {of: better, repeats: 5, goal: "rollout.cpuSeconds", slo: slo("push.p50<500ms"), answer: NoGain, says: "B=1s is not considered: it met push.p50<500ms in 0 of 5 runs"},
		"objective that the base misses": {of: better, repeats: 5, slo: slo("push.p50<80ms"), answer: Recommends, recommended: "B=10ms", says: "B=10ms is recommended"},
		"objective that nothing meets":   {of: better, repeats: 5, slo: slo("push.p50<1ms"), answer: NotMet, says: "is met in every run with no value"},
		"too few runs":                   {of: better, repeats: 3, answer: Unknown, says: "too few runs"},
	} {
		o, err := tuning(t, newBench(t, c.of), c.repeats, "A=1,2", "B=10ms,1s").WithObjective(c.slo, c.goal)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(context.Background(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Status != series.Complete || r.Answer != c.answer || r.Recommended != c.recommended || !strings.Contains(strings.Join(r.Sentences, "\n"), c.says) {
			t.Errorf("%s: %s, %s, %q, %q", name, r.Status, r.Answer, r.Recommended, r.Sentences)
		}
		var printed strings.Builder
		if err := Print(&printed, "table", r); err != nil || !strings.Contains(printed.String(), "change.push.p50") {
			t.Errorf("%s: %v\n%s", name, err, printed.String())
		}
	}
}

// A value that is better in one figure is recommended only where it is shown that no other becomes worse by
// more than its margin. That a figure is not established to be worse shows nothing.
func TestHarmThatIsNotExcluded(t *testing.T) {
	for name, c := range map[string]struct {
		cpu, spread float64 // of the value that pushes in half the time; the preset has 10 s
		goal        string
		answer      Answer
		says        string
	}{
		"no harm":                           {cpu: 10, spread: 0.02, answer: Recommends, says: "A=2 is recommended"},
		"harm below the margin is possible": {cpu: 10.3, spread: 0.02, answer: Recommends, says: "A=2 is recommended"},
		"harm is likely":                    {cpu: 10.5, spread: 0.2, answer: Unknown, says: "harm is not excluded: rollout.cpuSeconds +"},
		"nothing is known of harm":          {cpu: 10, spread: 0.4, answer: Unknown, says: "margin 10 %"},
		"harm is accepted":                  {cpu: 10.5, spread: 0.2, goal: "change.push.p50", answer: Recommends, says: "it may cost rollout.cpuSeconds +"},
		"harm is established":               {cpu: 15, spread: 0.02, answer: NoGain, says: "A=2 trades"},
	} {
		b := newBench(t, func(env string) measured {
			if env == "A=2" {
				return measured{c.cpu, 0.05}
			}
			return flat(env)
		})
		b.spread = c.spread
		o, err := tuning(t, b, 5, "A=1,2").WithObjective(nil, c.goal)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Answer != c.answer || (r.Recommended == "A=2") != (c.answer == Recommends) || !strings.Contains(strings.Join(r.Sentences, "\n"), c.says) {
			t.Errorf("%s: %s, %s, %q: want %s, %q", name, r.Answer, r.Recommended, r.Sentences, c.answer, c.says)
		}
		var printed strings.Builder
		if err := Print(&printed, "table", r); err != nil || !strings.Contains(printed.String(), "10 % for processor time, memory and the length of the rollout, 25 % for latencies") {
			t.Errorf("%s: the margins are not printed: %v\n%s", name, err, printed.String())
		}
	}
}

// Among like and like, a value is recommended in few of many tunings.
func TestFalseRecommendations(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		b := newBench(t, flat)
		b.random = rand.New(rand.NewPCG(seed, 3))
		r, err := Run(context.Background(), tuning(t, b, 4, "A=1,2,3"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Recommended != "" {
			found++
		}
	}
	if found > 3 { // 5 % of 20, and two standard deviations
		t.Errorf("%d of 20 tunings without any effect recommend a value", found)
	}
}

// The base and the variants take turns, every other round from the last to the first.
func TestInterleaved(t *testing.T) {
	b := newBench(t, flat)
	if _, err := Run(context.Background(), tuning(t, b, 2, "A=1,2")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"", "A=1", "A=2", "A=2", "A=1", ""}; !slices.Equal(b.asked, want) {
		t.Errorf("%q, want %q", b.asked, want)
	}
}

// A sweep that was interrupted or killed goes on where it was; with more repeats it is added to. Another
// one is not answered by it.
func TestResume(t *testing.T) {
	for _, killed := range []bool{false, true} {
		b := newBench(t, flat)
		o := tuning(t, b, 2, "A=1,2")
		ctx, cancel := context.WithCancel(context.Background())
		file := filepath.Join(o.Spec.Out, o.File)
		var meanwhile []byte // as it is on the disk during the third run, where a kill would leave it
		o.Run = func(ctx context.Context, spec run.Spec, p run.Progress) (record.Run, error) {
			run, err := b.run(ctx, spec, p)
			if len(b.asked) == 3 {
				if meanwhile, err = os.ReadFile(file); err != nil {
					t.Error(err)
				}
				cancel() // its record stays
				return run, context.Canceled
			}
			return run, err
		}
		r, err := Run(ctx, o)
		if !errors.Is(err, context.Canceled) || r.Status != series.Interrupted || len(r.Runs) != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		if killed {
			if err := os.WriteFile(file, meanwhile, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		o.Run = b.run
		if r, err = Run(context.Background(), o); err != nil || r.Status != series.Complete || len(r.Runs) != 6 || len(b.asked) != 7 {
			t.Fatalf("%d runs of %d, %v", len(r.Runs), len(b.asked), err)
		}
		o.Repeats = 4
		if r, err = Run(context.Background(), o); err != nil || len(r.Runs) != 12 || len(b.asked) != 13 || len(r.Effects.Variants[0].Runs.Used) != 4 {
			t.Fatalf("%d runs of %d, %v", len(r.Runs), len(b.asked), err)
		}
		o.Spec.Mesh.Pods = []int{o.Spec.Pods() + 1}
		if _, err := Run(context.Background(), o); err == nil || !strings.HasPrefix(err.Error(), "out: got ") {
			t.Errorf("another sweep: %v", err)
		}
	}
}

// All runs of a sweep are slowed down alike: as the first one was in the end, that alone may be started again.
func TestDilation(t *testing.T) {
	b := newBench(t, flat)
	o := tuning(t, b, 2, "A=1,2")
	o.Spec.Instrument.Dilation.Auto = true
	var factors []float64
	again := 0
	o.Run = func(ctx context.Context, spec run.Spec, p run.Progress) (record.Run, error) {
		done, err := b.run(ctx, spec, p)
		factor := spec.Instrument.Dilation.Factor
		factors = append(factors, factor)
		if spec.StartsAgain {
			again++
			factor *= 2
		}
		done.Scenario.Instrument.Dilation.Factor, done.Environment.Dilation = factor, &record.Dilation{Auto: spec.Choice}
		if spec.Choice == nil {
			t.Error("the record of a run does not say how its factor was chosen")
		}
		return done, err
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if again != 1 || len(factors) != 6 || slices.ContainsFunc(factors[1:], func(k float64) bool { return k != 2*factors[0] }) {
		t.Errorf("factors %v, %d may start again", factors, again)
	}
}

// A mesh that does not converge with a value, or a control plane that exceeds its memory, is
// a result; another failure ends the sweep.
func TestEnds(t *testing.T) {
	for err, want := range map[error]series.Status{
		phases.ErrUnconverged: series.Complete, &process.OutOfMemoryError{}: series.Complete, errors.New("no room on disk"): series.Failed,
	} {
		b := newBench(t, func(env string) measured {
			if env == "A=2" {
				return measured{1, 0.01}
			}
			return flat(env)
		})
		b.ends = func(env string) error {
			if env == "A=2" && slices.Index(b.asked, env) == len(b.asked)-1 { // the first of them
				return err
			}
			return nil
		}
		r, runErr := Run(context.Background(), tuning(t, b, 6, "A=1,2"))
		if r.Status != want || (runErr != nil) != (want == series.Failed) || r.Recommended != "" {
			t.Errorf("%v: %s, %v, %q", err, r.Status, runErr, r.Sentences)
		}
		if want == series.Complete && !strings.Contains(strings.Join(r.Sentences, "\n"), "A=2 is not considered: 1 of its runs did not complete") {
			t.Errorf("%v: %q", err, r.Sentences)
		}
		if want == series.Failed && !strings.Contains(runErr.Error(), "with A=2") {
			t.Error(runErr)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, text := range []string{"", "A", "A=", "A=1", "A=1,1", "A=1,", "A=1, 2", "1A=1,2", "=1,2", "A B=1,2", "GOMAXPROCS=1,2"} {
		if s, err := ParseSetting(text); err == nil || !strings.HasPrefix(err.Error(), "setting: got ") {
			t.Errorf("%q: %v, %v", text, s, err)
		}
	}
	two := []Setting{{"A", []string{"1", "2"}}, {"B", []string{"x", "y", "z"}}}
	for all, want := range map[bool]int{false: 5, true: 6} {
		o, err := Tuning(run.DefaultSpec(), two, all)
		if err != nil || len(o.Variants) != want {
			t.Errorf("all %v: %d variants, %v", all, len(o.Variants), err)
		}
	}
	fixed := run.DefaultSpec()
	fixed.ControlPlane.Env = []string{"A=3"}
	if _, err := Tuning(fixed, two, false); err == nil {
		t.Error("a setting that is fixed is varied")
	}
	if _, err := Tuning(run.DefaultSpec(), append(two, two[0]), false); err == nil {
		t.Error("a setting is varied twice")
	}
	if _, err := Tuning(run.DefaultSpec(), []Setting{{"A", make([]string, 60)}, {"B", make([]string, 60)}}, true); err == nil {
		t.Error("3600 combinations are tried")
	}
}

// A setting that the captured control plane has is varied, and one that is stated in its place is not.
func TestCapturedSetting(t *testing.T) {
	spec := run.DefaultSpec()
	spec.Captured = &run.MeshFile{Mesh: capture.Mesh{Header: capture.Header{ControlPlane: &capture.ControlPlane{
		Revisions: []capture.Revision{{Name: "default", Env: []capture.Variable{{Name: "A", Value: "5"}, {Name: "B", Value: "6"}}}},
	}}}}
	spec.ControlPlane.Env = []string{"A=5", "B=7"}
	o, err := Tuning(spec, []Setting{{"A", []string{"1", "2"}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	varied := spec
	o.Variants[1].Apply(&varied)
	if got := strings.Join(varied.ControlPlane.Env, " "); got != "B=7 A=2" {
		t.Errorf("the second value runs with %s, want B=7 A=2", got)
	}
	if got := strings.Join(spec.ControlPlane.Env, " "); got != "A=5 B=7" {
		t.Errorf("the preset runs with %s", got)
	}
	if _, err := Tuning(spec, []Setting{{"B", []string{"1", "2"}}}, false); err == nil {
		t.Error("a setting that the scenario states is varied")
	}
}
