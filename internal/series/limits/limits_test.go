package limits

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// made are options of a search of change rates by runs that are made up: the p99 in
// seconds of a rate.
func made(t *testing.T, p99 func(rate float64) float64) Options {
	t.Helper()
	objective, err := compare.ParseObjective("push.p99<2s")
	if err != nil {
		t.Fatal(err)
	}
	spec := run.DefaultSpec()
	spec.Out = filepath.Join(t.TempDir(), "out")
	spec.Load.Changes = scenario.Changes{PerSecond: 1, Kind: scenario.RouteChange}
	return Options{
		Find: ChangeRate, Objective: objective, Scale: Scale{Min: 0.5, Max: 64, Start: 1, Resolution: 0.1}, MaxRuns: 20, Spec: spec,
		Run: func(_ context.Context, spec run.Spec, _ run.Progress) (record.Run, error) {
			return changed(spec, p99(float64(spec.Load.Changes.PerSecond))), nil
		},
	}
}

// changed returns a run whose pushes had a p99.
func changed(spec run.Spec, p99 float64) record.Run {
	count, rate := spec.Load.Changes.Count(time.Duration(spec.Phases.Changes)), float64(spec.Load.Changes.PerSecond)
	return record.Run{
		Status: record.StatusCompleted, Dir: filepath.Join(spec.Out, "run"),
		Change: &record.Change{
			Changes: &count, OfferedPerSecond: &rate, AchievedPerSecond: &rate,
			Push: &record.Latency{Unit: "s", Count: int64(200 * count), P99: &p99},
		},
	}
}

func TestSearchesForALimit(t *testing.T) {
	for name, c := range map[string]struct {
		p99    func(float64) float64
		status series.Status
		passes float64 // 0 = none; limits are at 10
		fails  float64
		says   string
	}{
		"found":          {func(rate float64) float64 { return rate / 5 }, Found, 9.5, 10.5, "is between them"},
		"not met":        {func(float64) float64 { return 3 }, NotMet, 0, 0.5, "is not met even with 0.5/s"},
		"met throughout": {func(float64) float64 { return 1 }, MetThroughout, 64, 0, "is met even with 64/s"},
	} {
		o := made(t, c.p99)
		r, err := Search(context.Background(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Status != c.status || (r.Bracket.Passes == nil) != (c.passes == 0) || (r.Bracket.Fails == nil) != (c.fails == 0) || !strings.Contains(r.Sentence, c.says) {
			t.Errorf("%s: %+v", name, r)
		}
		if c.status == Found && !(*r.Bracket.Passes < 10 && *r.Bracket.Fails >= 10 && *r.Bracket.Fails <= *r.Bracket.Passes*1.1) {
			t.Errorf("%s: from %v to %v", name, *r.Bracket.Passes, *r.Bracket.Fails)
		}
		var printed strings.Builder
		if err := Print(&printed, "table", r); err != nil || !strings.Contains(printed.String(), r.Sentence) || strings.Count(printed.String(), "\n") < len(r.Runs)+2 {
			t.Errorf("%s: %v, %s", name, err, printed.String())
		}
		saved, err := os.ReadFile(filepath.Join(o.Spec.Out, FileName))
		if err != nil || !strings.Contains(string(saved), `"status": "`+string(c.status)+`"`) {
			t.Errorf("%s: saved %s, %v", name, saved, err)
		}
	}
}

// What ends a run says whether the objective is missed, is unknown, or the search failed.
func TestJudge(t *testing.T) {
	o := made(t, nil)
	spec := o.at(20)
	slow := changed(spec, 1)
	slow.Warnings = []record.Warning{{About: "change.achievedPerSecond", Reason: record.ReasonSlowChange}}
	slowAndLate := changed(spec, 3)
	slowAndLate.Warnings = slow.Warnings
	few := changed(o.at(5), 0.1)
	few.Change.Changes = new(99)
	few.Change.Withhold()
	lost := changed(spec, 0)
	lost.Change.Push.P99, lost.Change.Push.Lost = nil, 100
	crashed := record.Run{Warnings: []record.Warning{{Reason: record.ReasonCrashed}}}
	for name, c := range map[string]struct {
		run   record.Run
		err   error
		want  Outcome
		fails bool
	}{
		"met":                     {run: changed(spec, 1.9), want: Met},
		"missed":                  {run: changed(spec, 2), want: Missed},
		"lost":                    {run: lost, want: Missed},
		"too few changes":         {run: few, want: Unknown},
		"not measured":            {run: record.Run{}, want: Unknown},
		"slow bench, met":         {run: slow, want: Unknown},
		"slow bench, missed":      {run: slowAndLate, want: Missed},
		"out of memory":           {err: &process.OutOfMemoryError{}, want: Missed},
		"not converged":           {err: phases.ErrUnconverged, want: Missed},
		"control plane crashed":   {run: crashed, err: errors.New("it ended a second time"), want: Missed},
		"failed for other reason": {err: errors.New("no room on disk"), want: Unknown, fails: true},
	} {
		tried, err := o.judge(Tried{}, &c.run, c.err)
		if tried.Outcome != c.want || (err != nil) != c.fails || (tried.Outcome == Unknown) && tried.Why == "" {
			t.Errorf("%s: %+v, %v", name, tried, err)
		}
	}
}

// A run that does not decide the objective ends the search without an answer.
func TestUndecided(t *testing.T) {
	o := made(t, nil)
	o.Run = func(context.Context, run.Spec, run.Progress) (record.Run, error) { return record.Run{}, nil }
	r, err := Search(context.Background(), o)
	if !errors.Is(err, ErrUndecided) || r.Status != Undecided || len(r.Runs) != 1 || r.Bracket != (Bracket{}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// A search that was interrupted or killed says what it knows, and goes on where it was. Another question is
// not answered by it.
func TestResume(t *testing.T) {
	for _, killed := range []bool{false, true} {
		var rates []float64
		o := made(t, func(rate float64) float64 {
			rates = append(rates, rate)
			return rate / 5
		})
		ctx, cancel := context.WithCancel(context.Background())
		do, file := o.Run, filepath.Join(o.Spec.Out, FileName)
		var meanwhile []byte // as it is on the disk during the fourth run, where a kill would leave it
		o.Run = func(ctx context.Context, spec run.Spec, p run.Progress) (record.Run, error) {
			if len(rates) == 3 {
				var err error
				if meanwhile, err = os.ReadFile(file); err != nil {
					t.Error(err)
				}
				cancel()
				return record.Run{}, context.Canceled
			}
			return do(ctx, spec, p)
		}
		r, err := Search(ctx, o)
		if !errors.Is(err, context.Canceled) || r.Status != series.Interrupted || *r.Bracket.Passes != 4 || len(r.Runs) != 3 {
			t.Fatalf("%+v, %v", r, err)
		}
		if killed {
			var left Result
			if err := json.Unmarshal(meanwhile, &left); err != nil || left.Sentence != r.Sentence || left.Finished != nil || len(left.Runs) != 3 {
				t.Errorf("a kill leaves %s, %v", meanwhile, err)
			}
			if err := os.WriteFile(file, meanwhile, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		o.Run, o.MaxRuns = do, 5
		if r, err = Search(context.Background(), o); err != nil || r.Status != MaxRunsDone || len(r.Runs) != 5 {
			t.Fatalf("%+v, %v", r, err)
		}
		o.MaxRuns = 20
		if r, err = Search(context.Background(), o); err != nil || r.Status != Found {
			t.Fatalf("%+v, %v", r, err)
		}
		if sorted := slices.Sorted(slices.Values(rates)); len(slices.Compact(sorted)) != len(rates) {
			t.Errorf("rates are tried twice: %v", rates)
		}
		o.Spec.Mesh.Pods = []int{o.Spec.Pods() + 1}
		if _, err := Search(context.Background(), o); err == nil || !strings.HasPrefix(err.Error(), "out: got ") {
			t.Errorf("another question: %v", err)
		}
	}
}

// The phase of a change rate is long enough for the quantile.
func TestLongEnough(t *testing.T) {
	o := made(t, nil)
	for rate, want := range map[float64]time.Duration{0.5: 200 * time.Second, 3: 33400 * time.Millisecond, 50: 30 * time.Second} {
		spec := o.at(rate)
		if time.Duration(spec.Phases.Changes) != want || spec.Load.Changes.Count(time.Duration(spec.Phases.Changes)) < record.ChangesForP99 {
			t.Errorf("%v/s: %s with %d changes, want %s", rate, time.Duration(spec.Phases.Changes), spec.Load.Changes.Count(time.Duration(spec.Phases.Changes)), want)
		}
	}
	// A p50 takes no more changes.
	var err error
	if o.Objective, err = compare.ParseObjective("push.p50<2s"); err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(o.at(0.5).Phases.Changes); got != 30*time.Second {
		t.Errorf("p50: %s", got)
	}
}

func TestParseValues(t *testing.T) {
	for _, c := range []struct {
		find Find
		text string
		want float64
		say  string
	}{
		{ChangeRate, "5/s", 5, "5/s"}, {ChangeRate, "0.25/s", 0.25, "0.25/s"}, {Pods, "200", 200, "200 pods"},
		{Memory, "512Mi", 512 << 20, "512Mi"}, {Memory, "2Gi", 2 << 30, "2048Mi"}, {CPUs, "1", 1, "1 processor"}, {CPUs, "4", 4, "4 processors"},
	} {
		got, err := c.find.Parse(c.text)
		if err != nil || got != c.want || c.find.Print(got) != c.say {
			t.Errorf("%s %q: %v, %v, %q", c.find, c.text, got, err, c.find.Print(got))
		}
	}
	for find, texts := range map[Find][]string{ChangeRate: {"5", "5/s:route", "0/s", "1001/s", ""}, Pods: {"0", "5.5", "x"}, Memory: {"1Mi", "17Ti", "x"}, CPUs: {"0", "-1"}} {
		for _, text := range texts {
			if got, err := find.Parse(text); err == nil || !strings.Contains(err.Error(), ", want ") {
				t.Errorf("%s %q: %v, %v", find, text, got, err)
			}
		}
	}
}
