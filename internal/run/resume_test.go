package run

import (
	"context"
	"errors"
	"os"
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
	l := ladderOf([]int{10, 20, 40, 80}, "strict")
	l.Spec.Out, l.Spec.Instrument.Dilation = t.TempDir(), scenario.Dilation{Auto: true}
	write := func(pods int, status record.Status, change func(*record.Run)) {
		spec := l.Spec
		spec.Mesh.Pods, spec.Instrument.Dilation = scenario.List[int]{pods}, scenario.Dilation{Factor: 3}
		folder, err := record.Open(l.Spec.Out)
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
	write(10, record.StatusCompleted, nil)
	write(20, record.StatusUnconverged, nil)
	write(40, record.StatusInterrupted, nil)

	done, err := l.resume()
	if err != nil || len(done) != 2 || done[0].PodCount() != 10 || done[1].PodCount() != 20 {
		t.Fatalf("%v, %+v", err, done)
	}
	if again, err := l.resume(); err != nil || len(again) != 2 {
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
	if want := []string{"istiod-strict-10", "istiod-strict-20", "istiod-strict-40-interrupted-1"}; !slices.Equal(names, want) {
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
	if err != nil || len(c.runs) != 4 || !slices.Equal(did, []string{"istiod-strict-40", "istiod-strict-80"}) {
		t.Errorf("%v, did %q of %d", err, did, len(c.runs))
	}
	if err := c.err(); !errors.Is(err, phases.ErrUnconverged) || !strings.HasPrefix(err.Error(), "1 of 4 runs (istiod-strict-20)") {
		t.Errorf("the ladder's error is %v", err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "resumed, 2 runs done before") || !strings.Contains(text, "run 3 of 4: istiod-strict-40") {
		t.Error(text)
	}
}

// What another scenario, repeat or scaler left is no result of a ladder, and stays where it is.
func TestAsksFor(t *testing.T) {
	spec := ladderOf([]int{10}, "strict").Spec
	spec.ControlPlane.Env = []string{"A=b"}
	run := newRecord(spec)
	if !spec.asksFor(&run) {
		t.Error("a run of the specification is none")
	}
	for name, change := range map[string]func(*record.Run){
		"seed":     func(r *record.Run) { r.Scenario.Mesh.Seed++ },
		"dilation": func(r *record.Run) { r.Scenario.Instrument.Dilation.Factor++ },
		"repeat":   func(r *record.Run) { r.Repeat++ },
		"scaler":   func(r *record.Run) { r.Environment.Scaler += "x" },
	} {
		other := newRecord(spec)
		change(&other)
		if spec.asksFor(&other) {
			t.Errorf("one with another %s is of the specification", name)
		}
	}
	single := ladderOf([]int{10}, "strict")
	single.Spec.Out = t.TempDir()
	if err := os.Mkdir(single.Spec.Out+"/"+single.Runs()[0].Name(), 0o755); err != nil {
		t.Fatal(err)
	}
	if done, err := single.resume(); err != nil || done != nil {
		t.Errorf("a single run resumes %v, %v", done, err)
	}
}
