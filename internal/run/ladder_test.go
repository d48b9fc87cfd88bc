package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// ladderOf returns the runs of the default scenario with these sizes and modes.
func ladderOf(pods []int, modes ...string) Ladder {
	l := Ladder{Spec: DefaultSpec()}
	l.Spec.Mesh.Pods, l.Spec.Mesh.Mode = pods, modes
	return l
}

func seconds(n int) scenario.Duration { return scenario.Duration(time.Duration(n) * time.Second) }

// capturedLadder returns the runs of a sample at these scales.
func capturedLadder(t *testing.T, scales string) (Ladder, error) {
	t.Helper()
	d := scenario.New(scenario.Default())
	for path, value := range map[string]string{"mesh.file": "sample:bookinfo", "mesh.scale": scales, "instrument.dilation": "1"} {
		if err := d.Set(path, value, ""); err != nil {
			t.Fatal(err)
		}
	}
	return NewLadder(Spec{Out: t.TempDir()}, d)
}

// The scales of a captured mesh are sizes: each is one run, of the mesh in so many copies.
func TestLadderOfScales(t *testing.T) {
	l, err := capturedLadder(t, "1,3")
	if err != nil {
		t.Fatal(err)
	}
	l.Spec.Repeats = 2
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range l.Runs() {
		got = append(got, run.Name())
		r := newRecord(run)
		if scale := run.Captured.Scale; !slices.Equal(run.Mesh.Scale, []int{scale}) || r.Mesh.Namespaces != scale || r.PodCount() != 6*scale || len(r.Scenario.Mesh.Scale) != 1 || r.Scenario.Mesh.Scale[0] != scale {
			t.Errorf("%s of scale %d is recorded with %+v and %+v", run.Name(), scale, r.Mesh, r.Scenario.Mesh)
		}
	}
	if text := strings.Join(got, " "); text != "istiod-captured-6 istiod-captured-18 istiod-captured-18-r2 istiod-captured-6-r2" {
		t.Errorf("runs %s", text)
	}
	if _, err := capturedLadder(t, "2,2"); err == nil || !strings.Contains(err.Error(), "mesh.scale: got 2, want each value once") {
		t.Errorf("one scale twice: %v", err)
	}
	same := *l.Spec.Scales[1]
	same.Scale, l.Spec.Scales = 4, append(l.Spec.Scales, &same)
	if err := l.Validate(); err == nil || !strings.Contains(err.Error(), "mesh.scale: got 4, want one scale: sample:bookinfo has 18 sidecars with 3 copies as well") {
		t.Errorf("two scales of one size: %v", err)
	}
}

// Versions take turns, each with a folder of its own, and every other time in reverse.
func TestLadderOfVersions(t *testing.T) {
	l := ladderOf([]int{20, 40}, "strict")
	l.Spec.Repeats, l.Spec.Out, l.Versions = 2, "out", []string{"1.29.1", "1.31.0"}
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range l.Runs() {
		if run.Programs.Istio != filepath.Base(run.Out) || run.ControlPlane.Version != run.Programs.Istio {
			t.Errorf("%s of %s is recorded in %s", run.Name(), run.Programs.Istio, run.Out)
		}
		got = append(got, run.Out+"/"+run.Name())
	}
	want := "out/1.29.1/istiod-strict-20 out/1.31.0/istiod-strict-20 out/1.29.1/istiod-strict-40 out/1.31.0/istiod-strict-40 " +
		"out/1.31.0/istiod-strict-40-r2 out/1.29.1/istiod-strict-40-r2 out/1.31.0/istiod-strict-20-r2 out/1.29.1/istiod-strict-20-r2"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("runs %s, want %s", text, want)
	}
	for want, change := range map[string]func(*Ladder){
		`versions: got "1.29.1,1.29.1", want each version once`: func(l *Ladder) { l.Versions = []string{"1.29.1", "1.29.1"} },
		`controlPlane.version: got "1.2"`:                       func(l *Ladder) { l.Versions = []string{"1.29.1", "1.2"} },
		"keep: want it with":                                    func(l *Ladder) { l.Spec.Mesh.Pods, l.Spec.Repeats, l.Spec.Keep = []int{20}, 1, true },
	} {
		wrong := l
		change(&wrong)
		if err := wrong.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestLadderRuns(t *testing.T) {
	for _, test := range []struct {
		pods    []int
		modes   []string
		repeats int
		want    string
	}{
		{[]int{200}, []string{"strict"}, 1, "istiod-strict-200"},
		{[]int{200, 400}, []string{"permissive", "strict"}, 0,
			"istiod-permissive-200 istiod-strict-200 istiod-permissive-400 istiod-strict-400"},
		{[]int{200, 400}, []string{"strict"}, 3,
			"istiod-strict-200 istiod-strict-400 istiod-strict-400-r2 istiod-strict-200-r2 istiod-strict-200-r3 istiod-strict-400-r3"},
	} {
		l := ladderOf(test.pods, test.modes...)
		l.Spec.Repeats = test.repeats
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, run := range l.Runs() {
			names = append(names, run.Name())
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	l := ladderOf([]int{20}, "strict")
	l.Spec.Repeats = 2
	if runs := l.Runs(); runs[0].Repeat != 1 || runs[1].Repeat != 2 {
		t.Errorf("repeats are numbered %d and %d", runs[0].Repeat, runs[1].Repeat)
	}
}

func TestLadderValidate(t *testing.T) {
	both := []string{"permissive", "strict"}
	for _, test := range []struct {
		name   string
		pods   []int
		modes  []string
		change func(*Spec)
		want   string // in the error; "" means none
	}{
		{"plain", []int{200, 400}, both, nil, ""},
		{"a size twice", []int{200, 400, 200}, both, nil, "mesh.pods: got 200, want each value once"},
		{"a size too large", []int{200, 1e9}, both, nil, "mesh.pods: got 1000000000, want 1 to 100000"},
		{"a mode twice", []int{200}, []string{"strict", "strict"}, nil, `mesh.mode: got "strict", want each value once`},
		{"services for the larger alone", []int{20, 400}, both, func(s *Spec) { s.Mesh.Services = 30 }, "mesh.services: got 30, want 1 to 20, no more than pods"},
		{"fan-out", []int{20}, both, func(s *Spec) { s.Mesh.FanOut = -1 }, "mesh.fanOut: got -1, want 1 or more"},
		{"parts for the larger alone", []int{20, 400}, both, func(s *Spec) { s.Mesh.Parts.DestinationRules = new(30) }, "mesh.parts.destinationRules: got 30, want 0 to 2, no more than services"},
		{"keep with one", []int{200}, []string{"strict"}, func(s *Spec) { s.Keep = true }, ""},
		{"keep with several", []int{200}, both, func(s *Spec) { s.Keep = true }, "keep: want it with"},
		{"modes that do not differ", []int{200}, both, func(s *Spec) { s.Mesh.Settings = controlplane.Modes["strict"] }, "mesh.mode: want it without mesh.settings.mtls"},
		{"no size", nil, both, nil, "mesh.pods: want one value at least"},
		{"no mode", []int{200}, nil, nil, "mesh.mode: want one value at least"},
		{"processors of another machine", []int{200}, both, func(s *Spec) { s.ControlPlane.Processors, s.Instrument.Workers = 1000, 2 }, "controlPlane.processors: got 1000, want "},
		{"an environment that is none", []int{200}, both, func(s *Spec) { s.ControlPlane.Env = []string{"x"} }, `controlPlane.env: got "x", want NAME=VALUE`},
	} {
		l := ladderOf(test.pods, test.modes...)
		if test.change != nil {
			test.change(&l.Spec)
		}
		err := l.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

// A ladder that is interrupted returns the runs that were begun, and begins no other.
func TestLadderInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said, ended []string
	var begun []series.Position
	c := newClimb(ladderOf([]int{10, 20, 40}, "strict"), nil, func(string) {}, func(ctx context.Context, spec Spec) (record.Run, error) {
		run := record.Run{Name: spec.Name(), Dir: spec.Name(), Status: record.StatusCompleted}
		if spec.Pods() == 20 {
			cancel()
			run.Status = record.StatusInterrupted
			return run, context.Cause(ctx)
		}
		return run, nil
	})
	c.ended = func(name string, run *record.Run) { ended = append(ended, name+" "+string(run.Status)) }
	err := series.Series{Plan: c, Headline: "rollouts", Say: func(line string) { said = append(said, line) }, Begun: func(at series.Position) { begun = append(begun, at) }}.Run(ctx)
	if want := []string{"istiod-strict-10 completed", "istiod-strict-20 interrupted"}; !slices.Equal(ended, want) {
		t.Errorf("ended: %v, want %v", ended, want)
	}
	if len(begun) != 2 || begun[1].Number != 2 || begun[1].Runs != 3 || begun[1].After >= begun[0].After || begun[0].After != c.ladder.Runs()[1].Expected()+c.ladder.Runs()[2].Expected() {
		t.Errorf("begun: %+v", begun)
	}
	if !errors.Is(err, context.Canceled) || len(c.runs) != 2 || c.runs[1].Status != record.StatusInterrupted {
		t.Errorf("%v, %+v", err, c.runs)
	}
	if text := strings.Join(said, "\n"); !strings.HasPrefix(text, "rollouts: 3 runs, about ") || !strings.Contains(text, "\nrun 1 of 3: istiod-strict-10\nistiod-strict-10: completed; took 0s; 2 runs more, about ") || !strings.HasSuffix(text, "\nrun 2 of 3: istiod-strict-20") {
		t.Error(text)
	}
}

// Two runs in a row that fail end a ladder, and one that could not begin does so at once.
func TestLadderGivesUp(t *testing.T) {
	broken := errors.New("broken")
	for dir, want := range map[string]int{"out": givingUp, "": 1} {
		asked := 0
		c := newClimb(ladderOf([]int{10, 20, 40}, "strict"), nil, func(string) {}, func(context.Context, Spec) (record.Run, error) {
			asked++
			return record.Run{Dir: dir, Status: record.StatusFailed}, broken
		})
		if err := (series.Series{Plan: c}).Run(t.Context()); !errors.Is(err, broken) || asked != want {
			t.Errorf("%v after %d runs, want %d", err, asked, want)
		}
	}
}

// chosen returns a ladder whose factor was chosen: 3.
func chosen(pods ...int) Ladder {
	l := ladderOf(pods, "strict")
	l.Spec.Instrument.Dilation.Factor, l.Spec.Choice, l.Spec.StartsAgain = 3, &record.DilationChoice{Limit: 0.4}, true
	return l
}

func waited() error {
	return &tooFast{record.DilationRestart{Factor: 3, Component: "istiod", Phase: record.PhaseRollout, Share: 0.25, Bound: 0.1}}
}

// A ladder whose first run is too fast starts it again, once, and does all runs with twice the factor. The records say why.
func TestLadderStartsAgain(t *testing.T) {
	var did, said []string
	c := newClimb(chosen(10, 20), nil, func(line string) { said = append(said, line) }, func(_ context.Context, spec Spec) (record.Run, error) {
		did = append(did, fmt.Sprint(spec.Name(), " at ", spec.dilation(), " again ", spec.StartsAgain))
		if spec.StartsAgain {
			return record.Run{}, fmt.Errorf("rollout: %w", waited())
		}
		if why := spec.Choice.Restart; why == nil || why.Factor != 3 || why.Component != "istiod" || why.Share != 0.25 {
			t.Errorf("%s: the record says %+v", spec.Name(), why)
		}
		return record.Run{Name: spec.Name(), Dir: spec.Name(), Status: record.StatusCompleted}, nil
	})
	if err := (series.Series{Plan: c}).Run(t.Context()); err != nil || c.err() != nil || len(c.runs) != 2 {
		t.Errorf("%v, %v, %d runs", err, c.err(), len(c.runs))
	}
	if want := []string{"istiod-strict-10 at 3 again true", "istiod-strict-10 at 6 again false", "istiod-strict-20 at 6 again false"}; !slices.Equal(did, want) {
		t.Errorf("did %q, want %q", did, want)
	}
	if want := "istiod waited for processors for 25 % of rollout, and the bound is 10 %: a dilation of 3 is too small; the run is started again with 6; expected duration: about "; len(said) != 1 || !strings.HasPrefix(said[0], want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// Only the first run may start again, and one that was started again does not.
func TestLadderStartsAgainOnce(t *testing.T) {
	var again []bool
	c := newClimb(chosen(10, 20, 40), nil, func(string) {}, func(_ context.Context, spec Spec) (record.Run, error) {
		again = append(again, spec.StartsAgain)
		return record.Run{Dir: spec.Name(), Status: record.StatusCompleted}, nil
	})
	if err := (series.Series{Plan: c}).Run(t.Context()); err != nil || !slices.Equal(again, []bool{true, false, false}) {
		t.Errorf("%v, %v", err, again)
	}
}

// A ladder that is interrupted between a run and its second start begins no other. One that could not be taken down neither.
func TestLadderDoesNotStartAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	left := &steps.TeardownError{Step: "starting the cluster", Err: errors.New("etcd did not end")}
	for name, test := range map[string]struct {
		ctx context.Context
		err error
		do  func()
	}{
		"interrupted":    {ctx, waited(), cancel},
		"not taken down": {t.Context(), errors.Join(waited(), left), func() {}},
	} {
		asked := 0
		c := newClimb(chosen(10, 20), nil, func(string) {}, func(context.Context, Spec) (record.Run, error) {
			asked++
			test.do()
			return record.Run{}, test.err
		})
		err := (series.Series{Plan: c}).Run(test.ctx)
		if asked != 1 || len(c.runs) != 0 || errors.Is(err, context.Canceled) != (name == "interrupted") || errors.Is(err, left.Err) != (name == "not taken down") {
			t.Errorf("%s: %d runs were begun: %v", name, asked, err)
		}
	}
}

func TestOutcome(t *testing.T) {
	broken := errors.New("broken")
	outOfMemory := fmt.Errorf("supervising: %w", &process.OutOfMemoryError{Name: "istiod", Limit: 1 << 29})
	for _, test := range []struct {
		name   string
		errs   []error
		inARow int
		is     error  // of the error; nil: there is none
		text   string // in it
	}{
		{"all well", []error{nil, nil}, 0, nil, ""},
		{"one alone", []error{broken}, 1, broken, "broken"},
		{"one alone unconverged", []error{phases.ErrUnconverged}, 0, phases.ErrUnconverged, "did not converge"},
		{"unconverged at a size", []error{nil, phases.ErrUnconverged, nil}, 0, phases.ErrUnconverged, "1 of 3 runs (b)"},
		{"failed and unconverged", []error{phases.ErrUnconverged, broken}, 1, broken, "1 of 2 runs failed (b), the first: broken"},
		{"failed twice", []error{nil, broken, broken}, 2, broken, "2 of 3 runs failed (b, c)"},
		{"failed here and there", []error{broken, nil, broken}, 1, broken, "2 of 3 runs failed (a, c)"},
		{"out of memory from a size on", []error{nil, outOfMemory, outOfMemory}, 0, outOfMemory, "2 of 3 runs failed (b, c), the first: supervising: istiod was killed by the kernel: out of memory at its limit of 512 MiB"},
	} {
		o := outcome{of: len(test.errs)}
		for i, err := range test.errs {
			o.take(string(rune('a'+i)), err)
		}
		err := o.err()
		if o.inARow != test.inARow || !errors.Is(err, test.is) || (err == nil) != (test.is == nil) || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: got %v, %d in a row", test.name, err, o.inARow)
		}
		if test.is != phases.ErrUnconverged && errors.Is(err, phases.ErrUnconverged) {
			t.Errorf("%s: the error is unconverged: %v", test.name, err)
		}
	}
}

// A ladder that cannot be done starts nothing.
func TestLadderRunRefuses(t *testing.T) {
	l := ladderOf([]int{0}, "strict")
	if runs, err := l.Run(context.Background(), Progress{}); err == nil || runs != nil {
		t.Errorf("got %v, %v", runs, err)
	}
}
