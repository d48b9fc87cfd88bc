package rehearsal_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/analyse/assess"
	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/series/rehearsal"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// options returns a rehearsal of a sample from 1.29.1 to 1.31.0, whose runs are recorded and not done.
func options(t *testing.T, out string) rehearsal.Options {
	t.Helper()
	d := scenario.New(scenario.Default())
	for _, field := range [][2]string{
		{"mesh.file", "sample:bookinfo"}, {"controlPlane.version", "1.29.1"}, {"controlPlane.upgrade.to", "1.31.0"},
		{"controlPlane.replicas", "2"}, {"instrument.dilation", "1"}, {"controlPlane.env", "A=b"}, {"controlPlane.upgrade.env", "C=d"},
	} {
		if err := d.Set(field[0], field[1], ""); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := run.New(run.Spec{Out: out, State: t.TempDir()}, d)
	if err != nil {
		t.Fatal(err)
	}
	o := rehearsal.Options{Spec: spec, Captured: assess.NewCaptured(&spec.Captured.Mesh, true)}
	o.Variables = func(_ context.Context, s run.Spec) (map[string]string, error) {
		return map[string]map[string]string{"1.29.1": {"A": "x"}, "1.31.0": {"C": ""}}[s.ControlPlane.Version], nil
	}
	return o
}

// done writes the record of a run.
func done(t *testing.T, spec run.Spec, status record.Status) record.Run {
	t.Helper()
	w, err := record.Create(spec.Out, spec.Name())
	if err != nil {
		t.Fatal(err)
	}
	r := record.Run{Status: status, Name: spec.Name(), Scenario: spec.Scenario}
	r.Environment.ControlPlane.Version = spec.ControlPlane.Version
	if err := errors.Join(w.Save(&r), w.Close()); err != nil {
		t.Fatal(err)
	}
	r.Dir = filepath.Join(spec.Out, spec.Name())
	return r
}

// The steps differ in what they are for alone: both versions have the same mesh and replicas, and the new one its faults and settings.
func TestSteps(t *testing.T) {
	o := options(t, t.TempDir())
	o.Captured.History = &capture.History{Figures: []capture.Observed{{Figure: "clusterEvents", Kind: "EndpointSlice update", Percentiles: capture.Percentiles{P90: 0.5}}}}
	var specs []run.Spec
	o.Run = func(_ context.Context, spec run.Spec, _ run.Progress) (record.Run, error) {
		specs = append(specs, spec)
		return done(t, spec, record.StatusCompleted), nil
	}
	if err := rehearsal.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(specs) != 3 {
		t.Fatalf("got %d runs, want 3", len(specs))
	}
	for i, want := range []struct {
		folder, version, to, faults, changes string
		replicas                             int
		keeps                                run.Keeping
		env                                  []string
	}{
		{"from", "1.29.1", "", "", "0.5/s:endpoint", 2, run.KeepSettled, []string{"A=b"}},
		{"to", "1.31.0", "", "restart-replica@steady reset-streams:100%@steady", "0.5/s:endpoint", 2, run.KeepSettled, []string{"A=b", "C=d"}},
		{"upgrade", "1.29.1", "1.31.0", "", "", 1, run.KeepNothing, []string{"A=b"}},
	} {
		s := specs[i]
		c := s.ControlPlane
		if filepath.Base(s.Out) != want.folder || c.Version != want.version || c.Upgrade.To != want.to || c.Replicas != want.replicas || s.KeepConfiguration != want.keeps ||
			s.Load.FaultsText() != want.faults || s.Load.Changes.String() != want.changes || !slices.Equal(c.Env, want.env) || s.Captured != o.Spec.Captured {
			t.Errorf("step %s: got %s, version %s, to %s, %d replicas, faults %q, changes %q, env %q", want.folder, s.Out, c.Version, c.Upgrade.To, c.Replicas, s.Load.FaultsText(), s.Load.Changes, c.Env)
		}
	}
	specs = nil
	o.Spec.ControlPlane.Replicas, o.Spec.Out = 1, t.TempDir()
	if err := rehearsal.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, want := specs[1].Load.FaultsText(), "restart-control-plane@steady reset-streams:100%@steady"; got != want {
		t.Errorf("with one replica: got the faults %q, want %q", got, want)
	}
}

// For a plan, several copies are rolled out with one istiod of the new version after the steps. The same command adds a plan to a rehearsal that is
// complete, and one without it keeps the plan.
func TestGrowth(t *testing.T) {
	o := options(t, t.TempDir())
	o.Spec.ControlPlane.Memory = 1 << 30
	o.Run = func(_ context.Context, spec run.Spec, _ run.Progress) (record.Run, error) {
		return done(t, spec, record.StatusCompleted), nil
	}
	if err := rehearsal.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	d := scenario.New(o.Spec.Scenario)
	d.Scenario.Mesh.Scale = scenario.List[int]{1, 2, 3}
	d.Scenario.ControlPlane.Upgrade = scenario.Upgrade{}
	runs, err := run.NewLadder(run.Spec{Out: o.Spec.Out, State: t.TempDir()}, d)
	if err != nil {
		t.Fatal(err)
	}
	withPlan := o
	withPlan.Growth = &rehearsal.Growth{Scale: 6, Runs: runs, Do: func(_ context.Context, l run.Ladder, _ run.Progress) error {
		for _, s := range l.Runs() {
			if c := s.ControlPlane; c.Version != "1.31.0" || c.Replicas != 1 || c.Memory != 0 || c.Upgrade.To != "" || !slices.Equal(c.Env, []string{"A=b", "C=d"}) || s.Load.FaultsText() != "kill-control-plane@steady" {
				t.Errorf("got %+v with faults %q", c, s.Load.FaultsText())
			}
			done(t, s, record.StatusCompleted)
		}
		return nil
	}}
	if err := rehearsal.Run(t.Context(), withPlan); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		facts, err := rehearsal.Read(o.Spec.Out)
		if err != nil {
			t.Fatal(err)
		}
		if g := facts.Growth; g == nil || g.Scale != 6 || g.Plan != nil || !strings.Contains(g.Unknown, "want runs that are all of one captured mesh") {
			t.Errorf("got %+v, want that runs without a mesh do not allow a plan", g)
		}
		if err := rehearsal.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("no disk")
	withPlan.Growth.Do = func(context.Context, run.Ladder, run.Progress) error { return failed }
	if err := rehearsal.Run(t.Context(), withPlan); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
}

// A rehearsal without waves needs another version or a setting, too.
func TestSameVersion(t *testing.T) {
	o := options(t, t.TempDir())
	o.Spec.Mesh.Dataplane = scenario.List[string]{"ambient"}
	o.Spec.ControlPlane.Upgrade.To, o.Spec.ControlPlane.Upgrade.Env = o.Spec.ControlPlane.Version, nil
	if refused, ok := errors.AsType[*scenario.Error](o.Validate()); !ok || refused.Path != "controlPlane.upgrade.to" {
		t.Errorf("got %v, want that the version is refused", refused)
	}
}

// A mesh in ambient mode has all steps, and an error of the version has the name of what was asked.
func TestAmbient(t *testing.T) {
	o := options(t, t.TempDir())
	o.Spec.Captured, o.Spec.Mesh.File, o.Spec.Mesh.Pods = nil, "", scenario.List[int]{20}
	o.Spec.Mesh.Dataplane = scenario.List[string]{"ambient"}
	wrong := o
	wrong.Spec.ControlPlane.Upgrade.To = "nonsense"
	if refused, ok := errors.AsType[*scenario.Error](wrong.Validate()); !ok || refused.Path != "controlPlane.upgrade.to" || refused.Value != `"nonsense"` {
		t.Errorf("got %v, want that the version is refused", refused)
	}
	var steps []string
	o.Run = func(_ context.Context, spec run.Spec, _ run.Progress) (record.Run, error) {
		steps = append(steps, filepath.Base(spec.Out))
		return done(t, spec, record.StatusCompleted), nil
	}
	if err := rehearsal.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"from", "to", "upgrade"}; !slices.Equal(steps, want) {
		t.Errorf("got the steps %q, want %q", steps, want)
	}
	facts, err := rehearsal.Read(o.Spec.Out)
	if err != nil || facts.Upgrade.Run == nil || facts.Onto.Run.Environment.ControlPlane.Version != "1.31.0" {
		t.Errorf("got %+v, %v", facts, err)
	}
}

// A rehearsal that was interrupted goes on with the step that was cut short; of another question its folder is refused.
func TestResume(t *testing.T) {
	out := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	o := options(t, out)
	var steps []string
	o.Run = func(ctx context.Context, spec run.Spec, _ run.Progress) (record.Run, error) {
		step := filepath.Base(spec.Out)
		steps = append(steps, step)
		if step == "to" && ctx.Err() == nil && len(steps) == 2 {
			interrupt()
			done(t, spec, record.StatusInterrupted)
			return record.Run{Status: record.StatusInterrupted}, context.Canceled
		}
		if step == "upgrade" {
			return done(t, spec, record.StatusUnconverged), phases.ErrUnconverged
		}
		return done(t, spec, record.StatusCompleted), nil
	}
	if err := rehearsal.Run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was interrupted", err)
	}
	if _, err := rehearsal.Read(out); !errors.Is(err, rehearsal.ErrIncomplete) {
		t.Errorf("got %v, want %v", err, rehearsal.ErrIncomplete)
	}
	if err := rehearsal.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := []string{"from", "to", "to", "upgrade"}; !slices.Equal(steps, want) {
		t.Errorf("got the steps %q, want %q", steps, want)
	}
	facts, err := rehearsal.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if e := facts.Environment; e == nil || !reflect.DeepEqual(*e, assess.Environment{Kept: []string{"C"}, Removed: []assess.Variable{{Name: "A", Value: "b", Default: "x"}}}) {
		t.Errorf("got the variables %+v", e)
	}
	for _, folder := range []string{"to", "to-interrupted-1"} { // 'scaler diff' wants one record in each of its folders
		if runs, err := record.Read(filepath.Join(out, folder)); err != nil || len(runs) != 1 {
			t.Errorf("%s: got %d records and %v, want 1", folder, len(runs), err)
		}
	}
	if facts.From.Run.Environment.ControlPlane.Version != "1.29.1" || facts.Onto.Run.Environment.ControlPlane.Version != "1.31.0" || facts.Upgrade.Run.Status != record.StatusUnconverged || !facts.Captured.Stated || facts.Diff != nil {
		t.Errorf("got %+v", facts)
	}
	if err := rehearsal.Run(t.Context(), o); err != nil || len(steps) != 4 {
		t.Errorf("got %v and the steps %q, want none done again", err, steps)
	}
	other := o
	other.Spec.ControlPlane.Memory = 1 << 30
	if refused, ok := errors.AsType[*scenario.Error](rehearsal.Run(t.Context(), other)); !ok || refused.Path != "out" {
		t.Errorf("got %v, want that the folder is refused", refused)
	}
}

// A run that fails for another reason ends the rehearsal, and is no result.
func TestFailure(t *testing.T) {
	o := options(t, t.TempDir())
	failed := errors.New("no disk")
	o.Run = func(context.Context, run.Spec, run.Progress) (record.Run, error) { return record.Run{}, failed }
	if err := rehearsal.Run(t.Context(), o); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
	if _, err := rehearsal.Read(o.Spec.Out); !errors.Is(err, rehearsal.ErrIncomplete) {
		t.Errorf("got %v, want %v", err, rehearsal.ErrIncomplete)
	}
}
