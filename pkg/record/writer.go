package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"scaler.mesh/scaler/internal/boundedfile"
)

// What a run's folder holds.
const (
	runFile       = "run.json"
	eventsFile    = "events.jsonl"
	latenciesDir  = "latencies"
	logsDir       = "logs"
	prometheusDir = "prometheus"
)

// Writer writes the record of one run while it goes. Its methods may be called
// from several goroutines.
type Writer struct {
	dir    string
	name   string
	folder *Folder   // closed with the writer; nil where it is its owner's
	undo   unwinding // all that Create did

	samples *SampleLog

	mu       sync.Mutex
	events   *os.File
	timeline *os.File // nil once closed
	closed   bool
}

// Create opens the output folder dir and creates a run in it, for one run
// alone: the folder is closed when the writer is.
func Create(dir, name string) (*Writer, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("creating a run: %w", err)
	}
	folder, err := Open(dir)
	if err != nil {
		return nil, err
	}
	w, err := folder.Create(name)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	w.folder = folder
	return w, nil
}

// checkName holds names to what is one folder below any other, on any disk.
func checkName(name string) error {
	const want = "want letters, digits, '-', '_' and '.', not starting with '.'"
	if name == "" || strings.HasPrefix(name, ".") || len(name) > 200 {
		return fmt.Errorf("name %q: %s", name, want)
	}
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && r != '-' && r != '_' && r != '.' {
			return fmt.Errorf("name %q: %s", name, want)
		}
	}
	return nil
}

// Dir returns the run's folder.
func (w *Writer) Dir() string { return w.dir }

// LogDir returns the folder for the logs of what the run starts.
func (w *Writer) LogDir() string { return filepath.Join(w.dir, logsDir) }

// PrometheusDir returns the folder for the run's time series.
func (w *Writer) PrometheusDir() string { return filepath.Join(w.dir, prometheusDir) }

// Save replaces run.json atomically: readers see the old content or the new, also
// if the program is killed. It fills in what every record
// carries (version, kind, name) and, as long as run has no status, interrupted.
func (w *Writer) Save(run *Run) error {
	r := *run
	r.APIVersion, r.Kind, r.Schema, r.Name = APIVersion, Kind, Schema, w.name
	if r.Status == "" {
		r.Status = StatusInterrupted
	}
	return saveRun(w.dir, &r)
}

// saveRun writes the run.json of the run whose folder is dir.
func saveRun(dir string, run any) error {
	path := filepath.Join(dir, runFile)
	data, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return fmt.Errorf("saving %s: %w", path, err)
	}
	return replaceFile(path, func(f io.Writer) error {
		_, err := f.Write(append(data, '\n'))
		return err
	})
}

// Event appends one line to events.jsonl: the time, the kind and the fields.
func (w *Writer) Event(e Event) error {
	kind := e.EventKind()
	line, err := json.Marshal(struct {
		Time   time.Time `json:"time"`
		Kind   EventKind `json:"kind"`
		Fields Event     `json:"fields"`
	}{time.Now(), kind, e})
	if err != nil {
		return fmt.Errorf("writing event %q: %w", kind, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.events.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing event %q: %w", kind, withFix(err))
	}
	return nil
}

// Histogram writes a whole distribution to latencies/NAME.hgrm, where NAME is
// the latency's path below latencies, as in "certificate" or "push.route";
// h writes the file in the format of HdrHistogram's percentile distributions.
func (w *Writer) Histogram(name string, h io.WriterTo) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("writing a histogram: %w", err)
	}
	return replaceFile(histogramPath(w.dir, name), func(f io.Writer) error {
		_, err := h.WriteTo(f)
		return err
	})
}

func histogramPath(dir, name string) string {
	return filepath.Join(dir, latenciesDir, name+".hgrm")
}

// HistogramPath returns the file of a latency's whole distribution in a run that
// was read; stats.ReadHistogram reads it.
func (r *Run) HistogramPath(name string) string { return histogramPath(r.Dir, name) }

// PrometheusPath returns the folder of the time series of a run that was read; a
// run that ended early may have none.
func (r *Run) PrometheusPath() string { return filepath.Join(r.Dir, prometheusDir) }

// Close ends the writing. It does not change run.json. Closing again does
// nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	err := errors.Join(withFix(w.events.Sync()), w.events.Close(), withFix(w.timeline.Sync()), w.timeline.Close(),
		withFix(w.samples.file.Sync()), w.samples.file.Close())
	w.timeline = nil
	if w.folder != nil {
		err = errors.Join(err, w.folder.Close())
	}
	if err != nil {
		return fmt.Errorf("closing the record %s: %w", w.dir, err)
	}
	return nil
}

// Discard closes the writer and removes what it and Create made, and all that was written into the run's
// folder: for a run that did not come to start anything, or is started again. After Close it does nothing.
func (w *Writer) Discard() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	err := os.RemoveAll(w.dir)
	if err != nil {
		err = fmt.Errorf("discarding the record: %w", err)
	}
	w.undo.run()
	if w.folder != nil {
		err = errors.Join(err, w.folder.Close())
	}
	return err
}

// SaveResult writes a result of several runs, such as that of `scaler limits`, as JSON to path. It
// writes all of it or nothing.
func SaveResult(path string, result any) error {
	return replaceFile(path, func(f io.Writer) error {
		encoder := json.NewEncoder(f)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	})
}

// ReadResult reads what SaveResult wrote to path. Its error names the file; without one, it has fs.ErrNotExist in it.
func ReadResult(path string, result any) error {
	text, err := boundedfile.Read(path, maxDocument)
	if err == nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, boundedfile.Cause(err))
	}
	return nil
}

// replaceFile writes path anew by way of a temporary file in the same folder, which is
// on the disk before it takes the name.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("saving %s: %w", path, withFix(err))
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("saving %s (what it held is kept): %w", path, withFix(err))
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in dir last through a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// withFix adds the way out to errors of a disk that takes no more.
func withFix(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: free space on that disk, or choose an output folder on another", err)
	}
	return err
}

// unwinding is a stack of clean-up functions; the last added runs first.
type unwinding []func()

func (u *unwinding) add(f func()) { *u = append(*u, f) }

func (u *unwinding) run() {
	for i := len(*u) - 1; i >= 0; i-- {
		(*u)[i]()
	}
}
