package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/scenario"
)

// TestMain lets the test binary be the other process of the tests below.
func TestMain(m *testing.M) {
	if out := os.Getenv("RECORD_TEST_OUT"); out != "" {
		writeUntilKilled(out)
		return
	}
	os.Exit(m.Run())
}

// writeUntilKilled saves as fast as it can, saying so after the first time.
func writeUntilKilled(out string) {
	w, err := Create(out, "killed")
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		if err := w.Save(&Run{Reason: strings.Repeat("x", i%10000)}); err != nil {
			panic(err)
		}
		if err := w.Event(Step{Step: i}); err != nil {
			panic(err)
		}
		if i == 0 {
			os.Stdout.WriteString("saved\n")
		}
	}
}

func create(t *testing.T, dir, name string) *Writer {
	t.Helper()
	w, err := Create(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func readOne(t *testing.T, dir string) Run {
	t.Helper()
	runs, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 {
		t.Fatalf("%d runs, want 1", len(runs))
	}
	return runs[0]
}

func TestCreateLeavesAReadableRecord(t *testing.T) {
	out := filepath.Join(t.TempDir(), "not", "there", "yet")
	w := create(t, out, "run-1")
	run := readOne(t, out)
	if run.Name != "run-1" || run.Status != StatusInterrupted || run.Started.IsZero() {
		t.Errorf("first record %+v: want run-1, interrupted, and when it started", run)
	}
	for _, dir := range []string{w.LogDir(), w.PrometheusDir(), filepath.Join(w.Dir(), latenciesDir)} {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%s: want a folder", dir)
		}
	}
}

func TestCreateErrors(t *testing.T) {
	t.Run("the run is there already", func(t *testing.T) {
		out := t.TempDir()
		if err := create(t, out, "x").Close(); err != nil {
			t.Fatal(err)
		}
		_, err := Create(out, "x")
		checkError(t, err, ErrExists, "output folder", "remove "+filepath.Join(out, "x"))
		readOne(t, out) // the one before is untouched
		create(t, out, "y")
	})
	t.Run("locked", func(t *testing.T) {
		out := t.TempDir()
		w := create(t, out, "x")
		_, err := Create(out, "y")
		checkError(t, err, ErrLocked, out, "output folder")
		if _, err := os.Stat(filepath.Join(out, "y")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("the run that failed left its folder")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		create(t, out, "y")
	})
	t.Run("a file in the way", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		put(t, file, "")
		_, err := Create(file, "x")
		checkError(t, err, syscall.ENOTDIR, file, "output folder")
		_, err = Create(filepath.Join(file, "below"), "x")
		checkError(t, err, syscall.ENOTDIR, file, "output folder")
	})
	t.Run("not writable", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root may write anywhere")
		}
		out := t.TempDir()
		if err := os.Chmod(out, 0o555); err != nil {
			t.Fatal(err)
		}
		_, err := Create(out, "x")
		checkError(t, err, fs.ErrPermission, out, "output folder")
		_, err = Create(filepath.Join(out, "below"), "x")
		checkError(t, err, fs.ErrPermission, out, "output folder")
	})
	t.Run("names that are no folder below", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "out")
		for _, name := range []string{"", ".", "..", "../x", "a/b", "/x", ".hidden", "a b", strings.Repeat("x", 201)} {
			if _, err := Create(out, name); err == nil {
				t.Errorf("name %q: no error", name)
			}
		}
		if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
			t.Error("the output folder was made for a run that was not")
		}
	})
}

func TestSave(t *testing.T) {
	out := t.TempDir()
	w := create(t, out, "x")
	run := Run{Name: "ignored", Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{5}}}}
	if err := w.Save(&run); err != nil {
		t.Fatal(err)
	}
	if got := readOne(t, out); got.Name != "x" || got.PodCount() != 5 || got.Status != StatusInterrupted {
		t.Errorf("saved without a status, read %+v: want x, 5 pods, interrupted", got)
	}
	run.Status = StatusCompleted
	if err := w.Save(&run); err != nil {
		t.Fatal(err)
	}
	if got := readOne(t, out); got.Status != StatusCompleted {
		t.Errorf("status %q, want completed", got.Status)
	}
	run.Arrival = &Arrival{AchievedPerSecond: new(math.NaN())}
	if err := w.Save(&run); err == nil {
		t.Error("saved a figure that is no number: want an error")
	}
	if got := readOne(t, out); got.Status != StatusCompleted || got.Arrival != nil {
		t.Errorf("after an error, read %+v: want what was there before", got)
	}
	noLeftovers(t, w.Dir())
}

func TestDiscard(t *testing.T) {
	top := t.TempDir()
	w, err := Create(filepath.Join(top, "made", "out"), "x")
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(w.LogDir(), "istiod.log"), "started")
	if err := w.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(top, "made")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("folders that Create made are left over")
	}
	if err := errors.Join(w.Discard(), w.Close()); err != nil {
		t.Errorf("discarding and closing again: %v", err)
	}

	before := create(t, top, "before")
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	if err := create(t, top, "x").Discard(); err != nil {
		t.Fatal(err)
	}
	readOne(t, top) // the run before is untouched
	create(t, top, "x")
}

// noLeftovers fails when a folder holds temporary files.
func noLeftovers(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("%s is left over", entry.Name())
		}
	}
}

func TestEventsAndHistograms(t *testing.T) {
	w := create(t, t.TempDir(), "x")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 50 {
				if err := w.Event(Step{Step: i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f, err := os.Open(filepath.Join(w.Dir(), eventsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := 0
	for scanner := bufio.NewScanner(f); scanner.Scan(); lines++ {
		var event struct {
			Time time.Time
			Kind string
		}
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil || event.Time.IsZero() || event.Kind == "" {
			t.Errorf("line %q: want JSON with time and kind (%v)", scanner.Text(), err)
		}
	}
	if lines != 200 {
		t.Errorf("%d events, want 200", lines)
	}

	h := stats.NewHistogram()
	h.Record(time.Second)
	if err := w.Histogram("push.route", h); err != nil {
		t.Fatal(err)
	}
	run := readOne(t, w.Dir())
	file, err := os.Open(run.HistogramPath("push.route"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	back, err := stats.ReadHistogram(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := back.Summary(); s.Count != 1 || *s.Max != 1 {
		t.Errorf("histogram read back as %+v", s)
	}
	if err := w.Histogram("../run", h); err == nil {
		t.Error("a histogram outside latencies: want an error")
	}
}

// A disk that is full keeps what was saved before, and states what to do.
func TestFullDisk(t *testing.T) {
	out := t.TempDir()
	if err := syscall.Mount("tmpfs", out, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(out, 0); err != nil {
			t.Error(err)
		}
	}()
	w, err := Create(out, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Save(&Run{Reason: "small"}); err != nil {
		t.Fatal(err)
	}
	checkError(t, w.Save(&Run{Reason: strings.Repeat("x", 1<<20)}), syscall.ENOSPC, "free space", "output folder", "what it held is kept")
	if got := readOne(t, out); got.Reason != "small" {
		t.Errorf("after the disk was full, reason %.20q: want what was saved before", got.Reason)
	}
	noLeftovers(t, w.Dir())
	var full error
	for i := 0; i < 10000 && full == nil; i++ {
		full = w.Event(WatchLost{Error: strings.Repeat("x", 1000)})
	}
	checkError(t, full, syscall.ENOSPC, "free space")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Create(out, "y")
	checkError(t, err, syscall.ENOSPC, "output folder")
	if _, err := os.Stat(filepath.Join(out, "y")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the run that failed left its folder")
	}
}

// kill -9 at any moment leaves a record that can be read and says interrupted,
// and an output folder that others can use.
func TestKilledWhileSaving(t *testing.T) {
	out := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RECORD_TEST_OUT="+out)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if _, err := io.ReadFull(stdout, make([]byte, len("saved\n"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(out, "other"); !errors.Is(err, ErrLocked) {
		t.Errorf("creating while another process writes: %v, want %v", err, ErrLocked)
	}
	for range 100 { // readers see a whole record at every moment
		readOne(t, out)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is that it was killed
	if got := readOne(t, out); got.Status != StatusInterrupted {
		t.Errorf("status %q, want interrupted", got.Status)
	}
	create(t, out, "other")
}
