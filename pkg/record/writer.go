package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What a run's folder holds.
const (
	runFile       = "run.json"
	eventsFile    = "events.jsonl"
	latenciesDir  = "latencies"
	logsDir       = "logs"
	prometheusDir = "prometheus"
)

// ErrExists is in the error of Create when the output folder holds a run of
// that name already.
var ErrExists = errors.New("the run is there already")

// ErrLocked is in the error of Create when another scaler writes to the same
// output folder.
var ErrLocked = errors.New("another scaler is writing to it")

// Writer writes the record of one run while it goes. Its methods may be called
// from several goroutines.
type Writer struct {
	dir  string
	name string
	lock *os.File  // the output folder, locked
	undo unwinding // all that Create did

	mu     sync.Mutex
	events *os.File
	closed bool
}

// Create makes the folder of a run in the output folder dir, which it makes
// too when it is not there, and writes a first run.json, with status
// interrupted. Until Close, no other process can create a run in dir. Errors
// name the folder and the way out; nothing is left behind then.
func Create(dir, name string) (_ *Writer, err error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("creating a run: %w", err)
	}
	undo := unwinding{}
	defer func() {
		if err != nil {
			undo.run()
		}
	}()
	if err := makeAll(dir, &undo); err != nil {
		return nil, fmt.Errorf("making the output folder: %w: choose a writable folder with --out", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("locking the output folder: %w", err)
	}
	undo.add(func() { lock.Close() })

	w := &Writer{dir: filepath.Join(dir, name), name: name, lock: lock}
	// Mkdir, not MkdirAll: of two who come at once, one must fail.
	if err := os.Mkdir(w.dir, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("creating run %q in %s: %w: choose another --out, or remove %s", name, dir, ErrExists, w.dir)
	} else if err != nil {
		return nil, fmt.Errorf("creating run %q: %w: choose a writable folder with --out", name, err)
	}
	undo.add(func() { os.RemoveAll(w.dir) })
	for _, sub := range []string{latenciesDir, logsDir, prometheusDir} {
		if err := os.Mkdir(filepath.Join(w.dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("creating run %q: %w", name, withFix(err))
		}
	}
	w.events, err = os.OpenFile(filepath.Join(w.dir, eventsFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("creating run %q: %w", name, withFix(err))
	}
	undo.add(func() { w.events.Close() })
	if err := w.Save(&Run{Started: time.Now()}); err != nil {
		return nil, err
	}
	w.undo = undo
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

// makeAll is os.MkdirAll that can be undone: only folders it made are removed.
func makeAll(dir string, undo *unwinding) error {
	var missing []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		undo.add(func() { os.Remove(missing[i]) }) // not when something else has come into it
	}
	return os.MkdirAll(dir, 0o755)
}

// lockDir locks a folder against other processes until the file is closed, or
// its process is gone, however it went. The folder itself carries the lock, so
// that no lock file is left anywhere.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: choose a readable folder with --out", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w: wait until it has ended, or choose another --out", dir, ErrLocked)
		}
		return nil, fmt.Errorf("%s: %w: choose a folder on a local disk with --out", dir, err)
	}
	return f, nil
}

// Dir is the run's folder.
func (w *Writer) Dir() string { return w.dir }

// LogDir is the folder for the logs of what the run starts.
func (w *Writer) LogDir() string { return filepath.Join(w.dir, logsDir) }

// PrometheusDir is the folder for the run's time series.
func (w *Writer) PrometheusDir() string { return filepath.Join(w.dir, prometheusDir) }

// Save writes run.json anew, all or nothing: whatever happens meanwhile, what
// can be read is the old content or the new. It fills in what every record
// carries (version, kind, name) and, as long as run has no status, interrupted.
func (w *Writer) Save(run *Run) error {
	r := *run
	r.APIVersion, r.Kind, r.Schema, r.Name = APIVersion, Kind, Schema, w.name
	if r.Status == "" {
		r.Status = StatusInterrupted
	}
	data, err := json.MarshalIndent(&r, "", "  ")
	if err != nil {
		return fmt.Errorf("saving %s: %w", filepath.Join(w.dir, runFile), err)
	}
	return replaceFile(filepath.Join(w.dir, runFile), func(f io.Writer) error {
		_, err := f.Write(append(data, '\n'))
		return err
	})
}

// Event appends one line to events.jsonl: the time, the kind and the fields,
// which must marshal to JSON; nil means none.
func (w *Writer) Event(kind string, fields any) error {
	line, err := json.Marshal(struct {
		Time   time.Time `json:"time"`
		Kind   string    `json:"kind"`
		Fields any       `json:"fields,omitempty"`
	}{time.Now(), kind, fields})
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
// *stats.Histogram writes itself as such a file.
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

// HistogramPath is the file of a latency's whole distribution in a run that
// was read; stats.ReadHistogram reads it.
func (r *Run) HistogramPath(name string) string { return histogramPath(r.Dir, name) }

// Close ends the writing and lets others into the output folder. It does not
// change run.json. Closing again does nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	err := errors.Join(withFix(w.events.Sync()), w.events.Close(), w.lock.Close())
	if err != nil {
		return fmt.Errorf("closing the record %s: %w", w.dir, err)
	}
	return nil
}

// Discard closes the writer and removes what it and Create made: for a run that
// did not come to start anything. After Close it does nothing.
func (w *Writer) Discard() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.undo.run()
	if _, err := os.Stat(w.dir); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("discarding the record: could not remove %s", w.dir)
	}
	return nil
}

// replaceFile writes path anew by way of a temporary file beside it, which is
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
		return fmt.Errorf("%w: free space on that disk, or choose another with --out", err)
	}
	return err
}

// unwinding is what has to be undone, last first.
type unwinding []func()

func (u *unwinding) add(f func()) { *u = append(*u, f) }

func (u *unwinding) run() {
	for i := len(*u) - 1; i >= 0; i-- {
		(*u)[i]()
	}
}
