package series

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// listed is the result of a series of runs that are known from the beginning.
type listed struct {
	Head
	Runs []named `json:"runs"`
}

type named struct {
	Name string `json:"name"`
	Done
}

// list is the plan of such a series.
type list struct {
	names  []string
	result *listed
	do     func(ctx context.Context, name string) (record.Run, error)
	asked  []string // names of the runs that were begun
}

// expected is the time that each of its runs is expected to take.
const expected = 50 * time.Second

func (l *list) Next() (Run, bool) {
	if len(l.result.Runs) == len(l.names) {
		return Run{}, false
	}
	name := l.names[len(l.result.Runs)]
	return Run{Name: name, Expected: expected, Do: func(ctx context.Context) (record.Run, error) {
		l.asked = append(l.asked, name)
		return l.do(ctx, name)
	}}, true
}

func (l *list) Take(done Done, _ *record.Run, err error) (string, error) {
	if IsFailure(err) {
		return "failed", err
	}
	l.result.Runs = append(l.result.Runs, named{l.names[len(l.result.Runs)], done})
	return string(done.Status), nil
}

func (l *list) Left() (int, time.Duration) {
	n := len(l.names) - len(l.result.Runs)
	return n, time.Duration(n) * expected
}

// run does the series of a list in a folder, as a user of the package does.
func (l *list) run(ctx context.Context, dir string, say func(string)) (err error) {
	l.result = &listed{Head: NewHead("List", l.names...)}
	folder, earlier, err := Open(dir, "list.json", l.result)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if earlier != nil {
		l.result.Runs = earlier.Runs
	}
	err = Series{
		Plan: l, Headline: "doing", Out: dir, Folder: folder, Before: len(l.result.Runs), Say: say,
	}.Run(ctx)
	return errors.Join(err, folder.Save())
}

// completed returns a run that completes after a time.
func completed(after time.Duration) func(context.Context, string) (record.Run, error) {
	return func(context.Context, string) (record.Run, error) {
		time.Sleep(after) //nolint:forbidigo // of the bubble's clock
		return record.Run{Status: record.StatusCompleted}, nil
	}
}

// folderVariable names the folder of the series that this program does in place of tests.
const folderVariable = "SERIES_TEST_FOLDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(folderVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT)
	defer stop()
	l := &list{names: []string{"a", "b", "c", "d"}, do: func(ctx context.Context, name string) (record.Run, error) {
		if name != "c" {
			return record.Run{Status: record.StatusCompleted}, nil
		}
		fmt.Println("in c")
		<-ctx.Done()
		return record.Run{Status: record.StatusInterrupted}, context.Cause(ctx)
	}}
	if err := l.run(ctx, dir, nil); !errors.Is(err, context.Canceled) {
		panic(err)
	}
}

// A process that is killed in the middle of a run, or interrupted, loses no run that was done, and the same series is
// resumed where it was. Meanwhile nobody else writes to its folder.
func TestResume(t *testing.T) {
	for _, end := range []unix.Signal{unix.SIGKILL, unix.SIGINT} {
		t.Run(unix.SignalName(end), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), folderVariable+"="+dir)
			child.Stderr = os.Stderr
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "in c\n" {
				t.Fatalf("%q, %v", line, err)
			}
			l := &list{names: []string{"a", "b", "c", "d"}, do: completed(0)}
			if err := l.run(t.Context(), dir, nil); !errors.Is(err, record.ErrLocked) {
				t.Errorf("while another one runs: %v", err)
			}
			if err := child.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			if err := child.Wait(); (err == nil) != (end == unix.SIGINT) {
				t.Fatal(err)
			}

			var left listed
			if err := record.ReadResult(filepath.Join(dir, "list.json"), &left); err != nil {
				t.Fatal(err)
			}
			if left.Status != Interrupted || len(left.Runs) != 2 || (left.Finished == nil) != (end == unix.SIGKILL) {
				t.Errorf("what is left: %+v", left)
			}
			other := &list{names: []string{"a", "b"}, do: completed(0)}
			refused := new(scenario.Error)
			if err := other.run(t.Context(), dir, nil); !errors.As(err, &refused) || refused.Path != "out" || other.asked != nil {
				t.Errorf("another series: %v, runs %v", err, other.asked)
			}
			var said []string
			if err := l.run(t.Context(), dir, func(line string) { said = append(said, line) }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(l.asked, []string{"c", "d"}) || l.result.Status != Complete || !l.result.Started.Equal(left.Started) || !slices.Equal(names(l.result), l.names) {
				t.Errorf("it did %v, and the result is %+v", l.asked, l.result)
			}
			if len(said) == 0 || said[0] != "doing: 2 runs, about 1m40s; resumed, 2 runs done before" || !slices.Contains(said, "run 3 of 4: c") {
				t.Errorf("it said %q", said)
			}
			var kept listed
			if err := record.ReadResult(filepath.Join(dir, "list.json"), &kept); err != nil || !reflect.DeepEqual(names(&kept), l.names) || kept.Status != Complete {
				t.Errorf("it kept %+v, %v", kept, err)
			}
		})
	}
}

func names(r *listed) (all []string) {
	for _, one := range r.Runs {
		all = append(all, one.Name)
	}
	return all
}

// How long a series takes is announced, and follows from what the runs took.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		l := &list{names: []string{"a", "b", "c"}, do: completed(30 * time.Second)}
		dir := t.TempDir()
		for range 2 {
			if err := l.run(t.Context(), dir, func(line string) { said = append(said, line) }); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			"doing: 3 runs, about 2m30s",
			"run 1 of 3: a", "a: completed; took 30s; 2 runs more, about 1m0s",
			"run 2 of 3: b", "b: completed; took 30s; 1 run more, about 30s",
			"run 3 of 3: c", "c: completed; took 30s",
			"doing: 3 runs done before, and none is left",
		}
		if !slices.Equal(said, want) {
			t.Errorf("said\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A run that did not complete, or was started again, says nothing of how long others take.
func TestProgressOfOtherRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := record.Run{Status: record.StatusCompleted}
		again.Environment.Dilation = &record.Dilation{Auto: &record.DilationChoice{Restart: &record.DilationRestart{}}}
		runs := map[string]record.Run{"a": again, "b": {Status: record.StatusUnconverged}, "c": {Status: record.StatusCompleted}, "d": {Status: record.StatusCompleted}}
		var said []string
		l := &list{names: []string{"a", "b", "c", "d"}, do: func(_ context.Context, name string) (record.Run, error) {
			time.Sleep(100 * time.Second) //nolint:forbidigo // of the bubble's clock
			return runs[name], nil
		}}
		if err := l.run(t.Context(), t.TempDir(), func(line string) { said = append(said, line) }); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"a: completed; took 1m40s; 3 runs more, about 2m30s", "b: unconverged; took 1m40s; 2 runs more, about 1m40s", "c: completed; took 1m40s; 1 run more, about 1m40s",
		} {
			if !slices.Contains(said, want) {
				t.Errorf("it did not say %q, but\n%s", want, strings.Join(said, "\n"))
			}
		}
	})
}

// A run that fails ends the series, and is done again when it is resumed.
func TestFailure(t *testing.T) {
	broken := errors.New("no space left on device")
	dir := t.TempDir()
	l := &list{names: []string{"a", "b", "c"}, do: func(_ context.Context, name string) (record.Run, error) {
		if name == "b" {
			return record.Run{Status: record.StatusFailed}, broken
		}
		return record.Run{Status: record.StatusCompleted}, nil
	}}
	if err := l.run(t.Context(), dir, nil); !errors.Is(err, broken) || l.result.Status != Failed || len(l.result.Runs) != 1 {
		t.Errorf("%v, %+v", err, l.result)
	}
	l.do = completed(0)
	if err := l.run(t.Context(), dir, nil); err != nil || !slices.Equal(l.asked, []string{"a", "b", "b", "c"}) {
		t.Errorf("%v, runs %v", err, l.asked)
	}
}

// A run that completes although the series was interrupted is kept; no other is begun.
func TestInterruptedAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := fmt.Errorf("a signal: %w", context.Canceled)
	l := &list{names: []string{"a", "b"}, do: func(context.Context, string) (record.Run, error) {
		cancel(cause)
		return record.Run{Status: record.StatusCompleted}, nil
	}}
	if err := l.run(ctx, t.TempDir(), nil); !errors.Is(err, cause) || l.result.Status != Interrupted || len(l.result.Runs) != 1 || len(l.asked) != 1 {
		t.Errorf("%v, %+v, runs %v", err, l.result, l.asked)
	}
}

// What went wrong while an interrupted run was taken down is not lost, nor that it was interrupted.
func TestInterruptionKeepsErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	broken := errors.New("stopping etcd: timeout")
	l := &list{names: []string{"a"}, do: func(context.Context, string) (record.Run, error) {
		cancel()
		return record.Run{Status: record.StatusInterrupted}, broken
	}}
	if err := l.run(ctx, t.TempDir(), nil); !errors.Is(err, broken) || !errors.Is(err, context.Canceled) || l.result.Runs != nil {
		t.Errorf("%v, %+v", err, l.result)
	}
}

// The folder of a series that is refused is left as it was.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "list.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &list{names: []string{"a"}, do: completed(0)}
	if err := l.run(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "list.json") || l.asked != nil {
		t.Errorf("%v, runs %v", err, l.asked)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "list.json")); string(text) != "{" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestTurns(t *testing.T) {
	got := Turns(3, func(repeat int) []string { return []string{fmt.Sprint("a", repeat), fmt.Sprint("b", repeat)} })
	if want := []string{"a1", "b1", "b2", "a2", "a3", "b3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFree(t *testing.T) {
	dir := t.TempDir()
	path := func(n int) string { return filepath.Join(dir, fmt.Sprint(n)) }
	for _, n := range []int{2, 3, 5} {
		if err := os.Mkdir(path(n), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range map[int]int{1: 1, 2: 4, 4: 4, 5: 6} {
		if got := Free(from, path); got != want {
			t.Errorf("from %d: %d, want %d", from, got, want)
		}
	}
}
