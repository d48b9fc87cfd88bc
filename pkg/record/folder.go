package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrExists is in the error of creating a run when the output folder holds a run of
// that name already.
var ErrExists = errors.New("the folder has a run of this name")

// ErrLocked is in the error of Open and Create when another scaler writes to the same
// output folder.
var ErrLocked = errors.New("another scaler is writing to it")

// Folder is an output folder that this process alone writes to, until Close.
type Folder struct {
	dir  string
	lock *os.File
	undo unwinding // the folders that Open made
}

// Open makes the output folder dir if it does not exist, and locks it: until
// Close, no other scaler can write a run into it. Errors name the folder and
// what to do; nothing is left behind then.
func Open(dir string) (_ *Folder, err error) {
	f := &Folder{dir: dir}
	defer func() {
		if err != nil {
			f.undo.run()
		}
	}()
	if err := makeAll(dir, &f.undo); err != nil {
		return nil, fmt.Errorf("making the output folder: %w: choose a writable output folder", err)
	}
	if f.lock, err = lockDir(dir); err != nil {
		return nil, fmt.Errorf("locking the output folder: %w", err)
	}
	return f, nil
}

// Close lets others into the folder. If nothing was left in it, folders that
// Open made are removed.
func (f *Folder) Close() error {
	f.undo.run()
	if err := f.lock.Close(); err != nil {
		return fmt.Errorf("closing the output folder %s: %w", f.dir, err)
	}
	return nil
}

// Check reports whether runs of these names can be created: the error of the
// first that exists already wraps ErrExists.
func (f *Folder) Check(names ...string) error {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return fmt.Errorf("creating a run: %w", err)
		}
		path := filepath.Join(f.dir, name)
		if _, err := os.Lstat(path); err == nil {
			return f.exists(name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("creating run %q: %w: choose a writable output folder", name, err)
		}
	}
	return nil
}

func (f *Folder) exists(name string) error {
	return fmt.Errorf("creating run %q in %s: %w: choose another output folder, or remove %s", name, f.dir, ErrExists, filepath.Join(f.dir, name))
}

// Create makes the folder of a run and writes a first run.json, with status
// interrupted. Runs of one folder may be written side by side. Errors name the
// folder and the way out; nothing is left behind then.
func (f *Folder) Create(name string) (_ *Writer, err error) {
	if err := f.Check(name); err != nil {
		return nil, err
	}
	undo := unwinding{}
	defer func() {
		if err != nil {
			undo.run()
		}
	}()
	w := &Writer{dir: filepath.Join(f.dir, name), name: name}
	// Mkdir, not MkdirAll: of two who come at once, one must fail.
	if err := os.Mkdir(w.dir, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, f.exists(name)
	} else if err != nil {
		return nil, fmt.Errorf("creating run %q: %w: choose a writable output folder", name, err)
	}
	undo.add(func() { os.RemoveAll(w.dir) })
	for _, sub := range []string{latenciesDir, logsDir, prometheusDir} {
		if err := os.Mkdir(filepath.Join(w.dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("creating run %q: %w", name, withFix(err))
		}
	}
	for file, f := range map[string]**os.File{eventsFile: &w.events, timelineFile: &w.timeline} {
		*f, err = os.OpenFile(filepath.Join(w.dir, file), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return nil, fmt.Errorf("creating run %q: %w", name, withFix(err))
		}
		undo.add(func() { (*f).Close() })
	}
	samples, err := os.OpenFile(filepath.Join(w.dir, samplesFile), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("creating run %q: %w", name, withFix(err))
	}
	undo.add(func() { samples.Close() })
	w.samples = &SampleLog{file: samples}
	if err := w.Save(&Run{Started: time.Now()}); err != nil {
		return nil, err
	}
	w.undo = undo
	return w, nil
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
		return nil, fmt.Errorf("%w: choose a readable output folder", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w: wait until it has ended, or choose another output folder", dir, ErrLocked)
		}
		return nil, fmt.Errorf("%s: %w: choose an output folder on a local disk", dir, err)
	}
	return f, nil
}

// Below returns the folder of a run's record relative to the folder out, with slashes; "" for a run
// without a record.
func (r *Run) Below(out string) string {
	if r.Dir == "" {
		return ""
	}
	below, err := filepath.Rel(out, r.Dir)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(below)
}
