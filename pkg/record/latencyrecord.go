package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// LatencyWriter writes the record of one LatencyRun while it goes.
type LatencyWriter struct {
	dir, name string
	folder    *Folder
}

// CreateLatency opens the output folder dir, for this run alone, and creates the
// folder of a latency run in it with a first run.json, whose status is
// interrupted. Errors name the folder and the way out; nothing is left behind
// then.
func CreateLatency(dir, name string) (_ *LatencyWriter, err error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("creating a run: %w", err)
	}
	folder, err := Open(dir)
	if err != nil {
		return nil, err
	}
	w := &LatencyWriter{dir: filepath.Join(dir, name), name: name, folder: folder}
	var undo unwinding
	defer func() {
		if err != nil {
			undo.run()
			err = errors.Join(err, folder.Close())
		}
	}()
	if err := folder.Check(name); err != nil {
		return nil, err
	}
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating run %q: %w: choose a writable output folder", name, withFix(err))
	}
	undo.add(func() { os.RemoveAll(w.dir) })
	if err := os.Mkdir(w.LogDir(), 0o755); err != nil {
		return nil, fmt.Errorf("creating run %q: %w", name, withFix(err))
	}
	return w, w.Save(&LatencyRun{Started: time.Now().UTC(), Rows: []LatencyRow{}})
}

// Dir returns the run's folder.
func (w *LatencyWriter) Dir() string { return w.dir }

// LogDir returns the folder for the logs of what the run starts.
func (w *LatencyWriter) LogDir() string { return filepath.Join(w.dir, logsDir) }

// Save writes run.json anew, as Writer.Save does: all or nothing, and as
// interrupted as long as run has no status.
func (w *LatencyWriter) Save(run *LatencyRun) error {
	r := *run
	r.APIVersion, r.Kind, r.Schema, r.Name = APIVersion, LatencyKind, Schema, w.name
	if r.Status == "" {
		r.Status = StatusInterrupted
	}
	return saveRun(w.dir, &r)
}

// Close ends the writing. It does not change run.json.
func (w *LatencyWriter) Close() error { return w.folder.Close() }
