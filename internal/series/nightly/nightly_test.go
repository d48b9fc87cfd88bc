package nightly

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
)

// begun is when the first night begins.
var begun = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)

// measured is the record of a run whose needs grow with its pods, in a folder.
func measured(t *testing.T, spec run.Spec) record.Run {
	t.Helper()
	pods := float64(spec.Topology.Pods)
	differ := 1 + 0.01*float64(spec.Repeat)
	r := record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema, Name: spec.Name(), Dir: filepath.Join(spec.Out, spec.Name()),
		Status: record.StatusCompleted, Finished: &begun,
		Spec: record.Spec{Pods: spec.Topology.Pods, Services: spec.Topology.Pods / 10, Topology: "layers", FanOut: 3, Burst: "all", Mode: "strict", XDS: "delta"},
		Environment: record.Environment{
			CPUs: 2, Existing: &record.ExistingCluster{Context: "staging", Run: spec.Name() + "-3f9a1c"},
			ControlPlane: record.ControlPlaneSource{Name: "istiod", Version: "1.31.0", Replicas: 1, GOMAXPROCS: 2},
		},
		Phases: []record.Phase{{Name: record.PhaseRollout, Seconds: new(pods / 20 * differ), EndedBy: record.EndedByConverged}},
		ControlPlane: &record.ByPhase[*record.Usage]{
			Baseline: &record.Usage{MemoryBytes: &record.Level{Mean: new(120e6)}},
			Rollout:  &record.Usage{CPUSeconds: new(0.02 * pods * differ), MemoryBytes: &record.Level{Peak: new(140e6 + 330e3*pods*differ)}},
			Steady:   &record.Usage{MemoryBytes: &record.Level{Peak: new(140e6 + 330e3*pods*differ)}},
		},
		XDS: &record.XDS{ConfigurationBytes: &record.ConfigurationBytes{Mean: new(18.4e3)}},
	}
	write(t, r)
	return r
}

func write(t *testing.T, r record.Run) {
	t.Helper()
	text, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(r.Dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.Dir, "run.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// store writes an earlier night of a cluster.
func store(t *testing.T, out, name, server string, status record.Status) {
	t.Helper()
	n := &Night{APIVersion: record.APIVersion, Kind: Kind, Server: server, Status: status, Dir: filepath.Join(out, name)}
	if err := errors.Join(os.MkdirAll(n.Dir, 0o755), n.save()); err != nil {
		t.Fatal(err)
	}
}

// server is that of the cluster of the nights.
const server = "https://192.0.2.1:6443"

// options are nights in a new folder.
func options(t *testing.T) Options {
	o := Options{
		Ladder: run.Ladder{Spec: run.DefaultSpec(), Pods: []int{50, 100, 200}, Modes: []string{"strict"}, Repeats: 2},
		Plan:   capacity.Options{Pods: 800, Headroom: 0.3, ReplicasMax: 1},
		Server: server,
		Now:    func() time.Time { return begun },
		Run: func(_ context.Context, s run.Spec, _ run.Progress) (record.Run, error) {
			return measured(t, s), nil
		},
		Remove: func(_ context.Context, run string) error { t.Errorf("run %s is removed", run); return nil },
	}
	o.Ladder.Spec.Out = filepath.Join(t.TempDir(), "nights")
	return o
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestNight(t *testing.T) {
	o := options(t)
	n, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"istiod-strict-100", "istiod-strict-100-r2", "istiod-strict-200", "istiod-strict-200-r2", "istiod-strict-50", "istiod-strict-50-r2",
		"nightly.json", "plan.json", "plan.md", "report.html", "report.md",
	}
	dir := filepath.Join(o.Ladder.Spec.Out, "20261123T020000Z")
	if got := names(t, dir); n.Dir != dir || !slices.Equal(got, want) {
		t.Errorf("night %s has %v, want %s with %v", n.Dir, got, dir, want)
	}
	var printed strings.Builder
	if err := n.Print(&printed); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"istiod-strict-200-r2", "800 pods", "6 runs of 6 used a control plane that was there already"} {
		if !strings.Contains(printed.String(), text) {
			t.Errorf("what is printed lacks %q:\n%s", text, printed.String())
		}
	}
	var saved Night
	text, err := os.ReadFile(filepath.Join(dir, FileName))
	if err == nil {
		err = json.Unmarshal(text, &saved)
	}
	if err != nil || saved.Status != record.StatusCompleted || saved.Finished == nil || saved.Met == nil || !*saved.Met || len(saved.Runs) != 6 {
		t.Errorf("%s has %s, %v", FileName, text, err)
	}
}

// The first run that fails ends the night. What was measured is reported, and why there is no plan is stated.
func TestNightOfAFailedRun(t *testing.T) {
	for _, test := range []struct {
		err  error
		runs int // that are done until one fails
	}{{errors.New("the API server is too slow"), 0}, {experiment.ErrUnconverged, 2}} {
		o := options(t)
		done := 0
		ran := o.Run
		o.Run = func(ctx context.Context, s run.Spec, p run.Progress) (record.Run, error) {
			if done++; done > test.runs {
				return record.Run{}, test.err
			}
			return ran(ctx, s, p)
		}
		n, err := Run(t.Context(), o)
		if !errors.Is(err, test.err) || done != test.runs+1 {
			t.Fatalf("%d runs, %v, want the end with the first of %v", done, err, test.err)
		}
		if n.Status != record.StatusFailed || len(n.Runs) != done || n.Runs[test.runs].Error != test.err.Error() {
			t.Errorf("the night has %+v", n)
		}
		if reported := slices.Contains(names(t, n.Dir), "report.html"); reported != (test.runs > 0) || (n.WithoutPlan != "") != reported {
			t.Errorf("after %d runs: reported %v, without a plan because %q", test.runs, reported, n.WithoutPlan)
		}
	}
}

// A night deletes the oldest ones, nothing else of the folder, and first what runs that did not complete left in the cluster.
func TestNights(t *testing.T) {
	o := options(t)
	o.Keep = 2
	out := o.Ladder.Spec.Out
	earlier := run.Spec{Out: filepath.Join(out, "20261120T020000Z"), ControlPlane: "istiod", Mode: "strict"}
	killed := measured(t, earlier)
	killed.Status, killed.Finished = record.StatusInterrupted, nil
	write(t, killed)
	earlier.Repeat = 2
	failed := measured(t, earlier) // whose objects could not be deleted
	failed.Status = record.StatusFailed
	write(t, failed)
	earlier.Repeat = 3
	measured(t, earlier)
	var removed []string
	o.Remove = func(_ context.Context, run string) error {
		if _, err := os.Stat(killed.Dir); err != nil {
			t.Error("the record is deleted before what its run left")
		}
		removed = append(removed, run)
		return nil
	}
	for _, name := range []string{"20261120T020000Z", "20261121T020000Z", "20261122T020000Z", "20261199T020000Z", "other"} {
		store(t, out, name, server, record.StatusCompleted)
	}
	for name, file := range map[string]string{"20261101T020000Z": "other.json", "20261102T020000Z": FileName} {
		dir := filepath.Join(out, name)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, file), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := []string{lockName, "20261101T020000Z", "20261102T020000Z", "20261122T020000Z", "20261123T020000Z", "20261199T020000Z", "other"}
	if got := names(t, out); !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
	if want := []string{killed.Environment.Existing.Run, failed.Environment.Existing.Run}; !slices.Equal(removed, want) {
		t.Errorf("removed %v, want %v", removed, want)
	}
}

// What cannot be deleted does not end a night, and is asked for again by the next one, in contrast to what was deleted.
func TestLeftInTheCluster(t *testing.T) {
	o := options(t)
	out := o.Ladder.Spec.Out
	const name = "20261120T020000Z"
	store(t, out, name, server, record.StatusInterrupted)
	var labels []string
	for repeat := range 2 {
		killed := measured(t, run.Spec{Out: filepath.Join(out, name), ControlPlane: "istiod", Mode: "strict", Repeat: repeat + 1})
		killed.Status, killed.Finished = record.StatusInterrupted, nil
		write(t, killed)
		labels = append(labels, killed.Environment.Existing.Run)
	}
	denied := errors.New("denied")
	var asked []string
	o.Remove = func(ctx context.Context, run string) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("deleting has no time limit")
		}
		if asked = append(asked, run); run == labels[0] {
			return denied
		}
		return nil
	}
	n, err := Run(t.Context(), o)
	if n == nil || !errors.Is(err, denied) || n.Missed() || n.Status != record.StatusCompleted || len(n.Runs) != 6 {
		t.Fatalf("with a cluster that is not clean: %+v, %v", n, err)
	}
	want := []Left{{Run: labels[0], Night: name, Error: "denied"}}
	if saved, err := read(n.Dir); err != nil || !slices.Equal(saved.Left, want) || saved.Server != server {
		t.Errorf("%s has %+v, %v, want %+v left", FileName, saved, err, want)
	}
	if saved, err := read(filepath.Join(out, name)); err != nil || !slices.Equal(saved.Removed, labels[1:]) {
		t.Errorf("the earlier night has %+v, %v, want %v removed", saved, err, labels[1:])
	}
	o.Now = func() time.Time { return begun.AddDate(0, 0, 1) }
	if n, err := Run(t.Context(), o); n == nil || !errors.Is(err, denied) {
		t.Errorf("the next night: %+v, %v", n, err)
	}
	if want := []string{labels[0], labels[1], labels[0]}; !slices.Equal(asked, want) {
		t.Errorf("asked to delete what %v left, want %v", asked, want)
	}
}

// Nights of another cluster are neither cleaned up nor deleted.
func TestNightsOfAnotherCluster(t *testing.T) {
	o := options(t) // whose Remove is an error
	o.Keep = 1
	const name = "20261120T020000Z"
	store(t, o.Ladder.Spec.Out, name, "https://192.0.2.2:6443", record.StatusInterrupted)
	killed := measured(t, run.Spec{Out: filepath.Join(o.Ladder.Spec.Out, name), ControlPlane: "istiod", Mode: "strict"})
	killed.Status, killed.Finished = record.StatusInterrupted, nil
	write(t, killed)
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := []string{lockName, name, "20261123T020000Z"}; !slices.Equal(names(t, o.Ladder.Spec.Out), want) {
		t.Errorf("the folder has %v, want %v", names(t, o.Ladder.Spec.Out), want)
	}
}

// Nights that fail do not take the place of the newest one that completed, or of one whose runs left something.
func TestKeptNights(t *testing.T) {
	o := options(t)
	o.Keep = 2
	out := o.Ladder.Spec.Out
	for name, status := range map[string]record.Status{
		"20261117T020000Z": record.StatusFailed, "20261118T020000Z": record.StatusCompleted, "20261119T020000Z": record.StatusCompleted,
		"20261120T020000Z": record.StatusFailed, "20261121T020000Z": record.StatusFailed, "20261122T020000Z": record.StatusFailed,
	} {
		store(t, out, name, server, status)
	}
	failed := measured(t, run.Spec{Out: filepath.Join(out, "20261120T020000Z"), ControlPlane: "istiod", Mode: "strict"})
	failed.Status = record.StatusFailed
	write(t, failed)
	o.Remove = func(context.Context, string) error { return errors.New("denied") }
	slow := errors.New("the API server is too slow")
	ran := o.Run
	o.Run = func(context.Context, run.Spec, run.Progress) (record.Run, error) {
		if got := names(t, out); len(got) != 8 {
			t.Errorf("during the night the folder has %v", got)
		}
		return record.Run{}, slow
	}
	if _, err := Run(t.Context(), o); !errors.Is(err, slow) {
		t.Fatalf("%v, want %v", err, slow)
	}
	want := []string{lockName, "20261119T020000Z", "20261120T020000Z", "20261122T020000Z", "20261123T020000Z"}
	if got := names(t, out); !slices.Equal(got, want) {
		t.Errorf("after a night that failed the folder has %v, want %v", got, want)
	}

	o.Run, o.Remove = ran, func(context.Context, string) error { return nil }
	if n, err := Run(t.Context(), o); n != nil || !errors.Is(err, fs.ErrExist) {
		t.Errorf("into the folder of another night: %+v, %v, want %v", n, err, fs.ErrExist)
	}
	o.Now = func() time.Time { return begun.AddDate(0, 0, 1) }
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want = []string{lockName, "20261123T020000Z", "20261124T020000Z"}
	if got := names(t, out); !slices.Equal(got, want) {
		t.Errorf("after a night that completed the folder has %v, want %v", got, want)
	}
}

// A run that does not converge is all that was wrong, or not.
func TestMissed(t *testing.T) {
	for _, test := range []struct {
		err   error
		write bool // report.html cannot be written
		want  bool
	}{
		{experiment.ErrUnconverged, false, true},
		{experiment.ErrUnconverged, true, false},
		{errors.Join(experiment.ErrUnconverged, &experiment.TeardownError{Step: "deleting", Err: errors.New("denied")}), false, false},
		{errors.New("the API server is too slow"), false, false},
		{nil, false, false},
	} {
		o := options(t)
		ran := o.Run
		o.Run = func(ctx context.Context, s run.Spec, p run.Progress) (record.Run, error) {
			if test.write {
				if err := os.MkdirAll(filepath.Join(s.Out, "report.html"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			run, err := ran(ctx, s, p)
			return run, errors.Join(err, test.err)
		}
		n, err := Run(t.Context(), o)
		if n == nil || n.Missed() != test.want || test.err != nil && !errors.Is(err, test.err) {
			t.Errorf("%v, written %v: %+v, %v, want missed %v", test.err, !test.write, n, err, test.want)
		}
	}
}

func TestAnnounce(t *testing.T) {
	got := announce(attach.Target{Target: existing.Target{Context: "staging"}}, "a-3f9a1c")
	for _, want := range []string{"scaler.mesh/run=a-3f9a1c", "'scaler cleanup --run a-3f9a1c --context staging'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Ladder.Modes = []string{"strict", "permissive"} }, "parsing --mode both: want one mode"},
		{func(o *Options) { o.Ladder.Pods = []int{50, 100} }, "parsing --pods: want 3 sizes at least"},
		{func(o *Options) { o.Ladder.Repeats = 1 }, "parsing --repeats 1: want 2 at least"},
		{func(o *Options) { o.Plan.Pods = 1601 }, "parsing --plan-pods 1601: want 50 to 1600"},
		{func(o *Options) { o.Plan.Pods = 49 }, "parsing --plan-pods 49: want 50 to 1600"},
		{func(o *Options) { o.Keep = -1 }, "parsing --keep-nights -1: want 0 or more"},
		{func(o *Options) { o.Plan.Pods = 1600 }, ""},
	} {
		o := options(t)
		test.change(&o)
		if err := o.Validate(); (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}
