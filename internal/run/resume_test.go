package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// A ladder does the runs that have no result in its folder, with the factor of those that have, and returns all of them.
func TestLadderResumes(t *testing.T) {
	l := ladderOf([]int{10, 20, 40, 60, 80}, "strict")
	l.Spec.Out, l.Spec.Instrument.Dilation = t.TempDir(), scenario.Dilation{Auto: true}
	write := func(pods int, status record.Status, change func(*record.Run)) {
		spec := l.Spec
		spec.Mesh.Pods, spec.Instrument.Dilation = scenario.List[int]{pods}, scenario.Dilation{Factor: 3}
		writeRun(t, spec, status, change)
	}
	write(10, record.StatusCompleted, nil)
	write(20, record.StatusUnconverged, nil)
	write(40, record.StatusInterrupted, nil)
	write(60, record.StatusInterrupted, func(r *record.Run) { *r = record.Run{Started: r.Started, Status: r.Status} })
	write(80, record.StatusCompleted, func(r *record.Run) { r.Environment.Scaler = "v0" })

	done, others, err := l.resume()
	if err != nil || len(done) != 2 || done[0].PodCount() != 10 || done[1].PodCount() != 20 {
		t.Fatalf("%v, %+v", err, done)
	}
	if why := others[filepath.Join(l.Spec.Out, "istiod-strict-80")]; !strings.Contains(why, "another scaler") {
		t.Errorf("the run of another scaler is not resumed, as %q", why)
	}
	if again, _, err := l.resume(); err != nil || len(again) != 2 {
		t.Errorf("the second time %v, %d runs", err, len(again))
	}
	entries, err := os.ReadDir(l.Spec.Out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if want := []string{"istiod-strict-10", "istiod-strict-20", "istiod-strict-40-interrupted-1", "istiod-strict-60-interrupted-1", "istiod-strict-80"}; !slices.Equal(names, want) {
		t.Errorf("folders %q, want %q", names, want)
	}

	l.Spec.SlowAs(&done[0])
	var did, said []string
	c := newClimb(l, done, func(string) {}, func(_ context.Context, spec Spec) (record.Run, error) {
		did = append(did, spec.Name())
		if spec.dilation() != 3 || spec.StartsAgain {
			t.Errorf("%s at %g, again %t", spec.Name(), spec.dilation(), spec.StartsAgain)
		}
		return record.Run{Name: spec.Name(), Dir: spec.Name(), Status: record.StatusCompleted}, nil
	})
	err = series.Series{Plan: c, Headline: "rollouts", Before: len(done), Say: func(line string) { said = append(said, line) }}.Run(t.Context())
	if err != nil || len(c.runs) != 5 || !slices.Equal(did, []string{"istiod-strict-40", "istiod-strict-60", "istiod-strict-80"}) {
		t.Errorf("%v, did %q of %d", err, did, len(c.runs))
	}
	if err := c.err(); !errors.Is(err, phases.ErrUnconverged) || !strings.HasPrefix(err.Error(), "1 of 5 runs (istiod-strict-20)") {
		t.Errorf("the ladder's error is %v", err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "resumed, 2 runs done before") || !strings.Contains(text, "run 3 of 5: istiod-strict-40") {
		t.Error(text)
	}
}

// A ladder of a captured mesh does the scales that have no result in its folder; one of another content is no result of it.
func TestLadderOfScalesResumes(t *testing.T) {
	l, err := capturedLadder(t, "1,2,3")
	if err != nil {
		t.Fatal(err)
	}
	runs := l.Runs()
	writeRun(t, runs[0], record.StatusCompleted, nil)
	writeRun(t, runs[1], record.StatusInterrupted, nil)
	writeRun(t, runs[2], record.StatusCompleted, func(r *record.Run) { r.Mesh.Digest = "0" })
	done, others, err := l.resume()
	if err != nil || len(done) != 1 || done[0].PodCount() != 6 {
		t.Errorf("%v, resumed %d runs", err, len(done))
	}
	if why := others[filepath.Join(l.Spec.Out, "istiod-captured-18")]; why != "it is of another captured mesh" {
		t.Errorf("the run of another mesh is not resumed, as %q", why)
	}
}

// What another scenario, repeat or scaler left is no result of a ladder, and stays where it is.
func TestDiffers(t *testing.T) {
	spec := ladderOf([]int{10}, "strict").Spec
	spec.ControlPlane.Env = []string{"A=b"}
	run := newRecord(spec)
	if why := spec.differs(&run); why != "" {
		t.Errorf("a run of the specification is none: %s", why)
	}
	for name, test := range map[string]struct {
		change func(*record.Run)
		want   string
	}{
		"seed":     {func(r *record.Run) { r.Scenario.Mesh.Seed = 9 }, `it is of another scenario: mesh.seed is "9" there, not "1"`},
		"dilation": {func(r *record.Run) { r.Scenario.Instrument.Dilation.Factor = 7 }, `it is of another scenario: instrument.dilation is "7" there, not "1"`},
		"many": {func(r *record.Run) {
			r.Scenario.Mesh.Seed, r.Scenario.Mesh.FanOut, r.Scenario.Load.Churn, r.Scenario.Load.Probes, r.Scenario.Mesh.Services = 9, 9, 9, 9, 9
		}, "and 2 more"},
		"repeat": {func(r *record.Run) { r.Repeat = 2 }, "it is repeat 2, not 0"},
		"scaler": {func(r *record.Run) { r.Environment.Scaler = "v0" }, `it is of another scaler, "v0", and this one is "`},
		"early":  {func(r *record.Run) { r.Scenario = scenario.Scenario{} }, "its record does not state what it is of"},
	} {
		other := newRecord(spec)
		test.change(&other)
		if why := spec.differs(&other); !strings.Contains(why, test.want) {
			t.Errorf("one with another %s differs by %q, want %q", name, why, test.want)
		}
	}
	single := ladderOf([]int{10}, "strict")
	single.Spec.Out = t.TempDir()
	if err := os.Mkdir(single.Spec.Out+"/"+single.Runs()[0].Name(), 0o755); err != nil {
		t.Fatal(err)
	}
	if done, _, err := single.resume(); err != nil || done != nil {
		t.Errorf("a single run resumes %v, %v", done, err)
	}
}

// writeRun leaves the record of a run of the specification in its folder.
func writeRun(t *testing.T, spec Spec, status record.Status, change func(*record.Run)) {
	t.Helper()
	folder, err := record.Open(spec.Out)
	if err != nil {
		t.Fatal(err)
	}
	w, err := folder.Create(spec.Name())
	if err != nil {
		t.Fatal(err)
	}
	run := newRecord(spec)
	run.Status = status
	if change != nil {
		change(&run)
	}
	if err := errors.Join(w.Save(&run), w.Close(), folder.Close()); err != nil {
		t.Fatal(err)
	}
}

// ResumeOne takes the result that the folder has, and refuses that of something else, with the reason. RunOne takes none.
func TestResumeOne(t *testing.T) {
	spec := ladderOf([]int{10}, "strict").Spec
	spec.Out, spec.State = t.TempDir(), t.TempDir()
	writeRun(t, spec, record.StatusUnconverged, nil)
	var said []string
	run, err := ResumeOne(t.Context(), spec, Progress{Say: func(line string) { said = append(said, line) }})
	if !errors.Is(err, phases.ErrUnconverged) || run.PodCount() != 10 || run.Dir == "" {
		t.Errorf("error %v, run %+v", err, run)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "resumed, the run was done before: "+run.Dir) {
		t.Errorf("it said %q", text)
	}
	other := spec
	other.Mesh.Seed = 9
	if _, err := ResumeOne(t.Context(), other, Progress{}); !errors.Is(err, record.ErrExists) || !strings.HasSuffix(err.Error(), `; not resumed, as it is of another scenario: mesh.seed is "1" there, not "9"`) {
		t.Errorf("another seed: %v", err)
	}
	if _, err := RunOne(t.Context(), spec, Progress{}); !errors.Is(err, record.ErrExists) || strings.Contains(err.Error(), "resumed") {
		t.Errorf("a run that resumes nothing: %v", err)
	}
}
