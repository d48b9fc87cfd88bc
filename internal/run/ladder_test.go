package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/process"
)

func TestParseSizes(t *testing.T) {
	for in, want := range map[string][]int{
		"200": {200}, "200,400,800": {200, 400, 800}, "200, 400": {200, 400}, "-5": {-5}, "0": {0},
		"": nil, "200,,400": nil, ",200": nil, "200,": nil, "1e9": nil, "2.5": nil, "200;400": nil, "x": nil, "99999999999999999999": nil,
	} {
		got, err := ParseSizes(in)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("ParseSizes(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
}

// Versions take turns, each with a folder of its own, and every other time in reverse.
func TestLadderOfVersions(t *testing.T) {
	l := Ladder{Spec: DefaultSpec(), Pods: []int{20, 40}, Modes: []string{"strict"}, Repeats: 2, Versions: []string{"1.29.1", "1.31.0"}}
	l.Spec.Out = "out"
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range l.Runs() {
		if run.Programs.Istio != filepath.Base(run.Out) {
			t.Errorf("%s of %s is recorded in %s", run.Name(), run.Programs.Istio, run.Out)
		}
		got = append(got, run.Out+"/"+run.Name())
	}
	want := "out/1.29.1/istiod-strict-20 out/1.31.0/istiod-strict-20 out/1.29.1/istiod-strict-40 out/1.31.0/istiod-strict-40 " +
		"out/1.31.0/istiod-strict-40-r2 out/1.29.1/istiod-strict-40-r2 out/1.31.0/istiod-strict-20-r2 out/1.29.1/istiod-strict-20-r2"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("runs %s, want %s", text, want)
	}
	for flag, change := range map[string]func(*Ladder){
		"--versions":      func(l *Ladder) { l.Versions = []string{"1.29.1", "1.29.1"} },
		"--istio-version": func(l *Ladder) { l.Versions = []string{"1.29.1", "1.2"} },
		"--keep":          func(l *Ladder) { l.Pods, l.Repeats, l.Spec.Keep = []int{20}, 1, true },
	} {
		wrong := l
		change(&wrong)
		if err := wrong.Validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("error %v, want one of %s", err, flag)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	for _, s := range []string{"200,400", "200,,400", " 1", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sizes, err := ParseSizes(s)
		if err == nil && len(sizes) != strings.Count(s, ",")+1 {
			t.Errorf("%q: %v", s, sizes)
		}
	})
}

func TestLadderRuns(t *testing.T) {
	names := func(l Ladder) (names []string) {
		l.Spec = DefaultSpec()
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, run := range l.Runs() {
			names = append(names, run.Name())
		}
		return names
	}
	for _, test := range []struct {
		ladder Ladder
		want   string
	}{
		{Ladder{Pods: []int{200}, Modes: []string{"strict"}}, "istiod-strict-200"},
		{Ladder{Pods: []int{200, 400}, Modes: []string{"permissive", "strict"}},
			"istiod-permissive-200 istiod-strict-200 istiod-permissive-400 istiod-strict-400"},
		{Ladder{Pods: []int{200, 400}, Modes: []string{"strict"}, Repeats: 3},
			"istiod-strict-200 istiod-strict-400 istiod-strict-400-r2 istiod-strict-200-r2 istiod-strict-200-r3 istiod-strict-400-r3"},
	} {
		if got := strings.Join(names(test.ladder), " "); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	runs := Ladder{Spec: DefaultSpec(), Pods: []int{20}, Modes: []string{"strict"}, Repeats: 2}.Runs()
	if runs[0].Repeat != 1 || runs[1].Repeat != 2 {
		t.Errorf("repeats are numbered %d and %d", runs[0].Repeat, runs[1].Repeat)
	}
}

func TestLadderValidate(t *testing.T) {
	both := []string{"permissive", "strict"}
	for _, test := range []struct {
		name   string
		pods   []int
		modes  []string
		change func(*Ladder)
		want   string // in the error; "" means none
	}{
		{"plain", []int{200, 400}, both, nil, ""},
		{"a size twice", []int{200, 400, 200}, both, nil, "--pods 200"},
		{"a size too large", []int{200, 1e9}, both, nil, "--pods 1000000000"},
		{"services for the larger alone", []int{20, 400}, both, func(l *Ladder) { l.Spec.Topology.Services = 30 }, "--services 30"},
		{"negative repeats", []int{200}, both, func(l *Ladder) { l.Repeats = -1 }, "--repeats -1"},
		{"too many repeats", []int{200}, both, func(l *Ladder) { l.Repeats = 101 }, "--repeats 101"},
		{"keep with one", []int{200}, []string{"strict"}, func(l *Ladder) { l.Spec.Keep = true }, ""},
		{"keep with several", []int{200}, both, func(l *Ladder) { l.Spec.Keep = true }, "--keep"},
		{"modes that do not differ", []int{200}, both, func(l *Ladder) { l.Spec.Mesh.Settings = controlplane.Modes["strict"] }, "--mode both"},
		{"no size", nil, both, nil, "a size"},
		{"more processors than there are", []int{200}, both, func(l *Ladder) { l.Spec.ControlPlane.CPUs = 100_000 }, "--control-plane-cpus 100000"},
		{"an environment that is none", []int{200}, both, func(l *Ladder) { l.Spec.ControlPlane.Env = []string{"x"} }, "--control-plane-env"},
	} {
		l := Ladder{Spec: DefaultSpec(), Pods: test.pods, Modes: test.modes}
		if test.change != nil {
			test.change(&l)
		}
		err := l.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
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
		{"one alone unconverged", []error{experiment.ErrUnconverged}, 0, experiment.ErrUnconverged, "did not converge"},
		{"unconverged at a size", []error{nil, experiment.ErrUnconverged, nil}, 0, experiment.ErrUnconverged, "1 of 3 runs (b)"},
		{"failed and unconverged", []error{experiment.ErrUnconverged, broken}, 1, broken, "1 of 2 runs failed (b), the first: broken"},
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
		if test.is != experiment.ErrUnconverged && errors.Is(err, experiment.ErrUnconverged) {
			t.Errorf("%s: the error is unconverged: %v", test.name, err)
		}
	}
}

// A ladder that cannot be done starts nothing.
func TestLadderRunRefuses(t *testing.T) {
	l := Ladder{Spec: DefaultSpec(), Pods: []int{0}, Modes: []string{"strict"}}
	if runs, err := l.Run(context.Background(), Progress{}); err == nil || runs != nil {
		t.Errorf("got %v, %v", runs, err)
	}
}
