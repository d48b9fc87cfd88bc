package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"
)

const timelineFile = "timeline.jsonl"

// Moment is one line of timeline.jsonl: the state of a run at a moment. One is
// written each second from baseline on, until the run ends in any way.
type Moment struct {
	Time time.Time `json:"time"` // wall clock, as Phase.Start
	// Programs are the control plane, the cluster's programs and scaler, by name;
	// one that does not run, or was started less than a second ago, is absent.
	Programs map[string]Load `json:"programs,omitempty"`

	Created   int `json:"created"`   // pods there
	Ready     int `json:"ready"`     // of those, seen Ready once
	Connected int `json:"connected"` // sidecars that have an open stream
	Complete  int `json:"complete"`  // sidecars that became complete
	Converged int `json:"converged"` // sidecars that hold exactly what is expected of them now

	Responses    map[string]int64 `json:"responses,omitempty"` // so far, by type
	Attempts     int64            `json:"attempts"`            // dials so far
	Refusals     int64            `json:"refusals"`            // streams refused so far
	Certificates int64            `json:"certificates"`        // issued so far
}

// Load is the usage of a program at a moment, by its last reading, which is at most one
// second old.
type Load struct {
	Cores       float64 `json:"cores"`       // mean over the second before
	MemoryBytes float64 `json:"memoryBytes"` // resident
}

// Moment appends one to timeline.jsonl.
func (w *Writer) Moment(m Moment) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing the time line: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timeline == nil {
		return nil // closed: the run has ended
	}
	if _, err := w.timeline.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the time line: %w", withFix(err))
	}
	return nil
}

// Timeline reads the time line of a run that was read. Its error has
// fs.ErrNotExist in it for a record that has none.
func (r *Run) Timeline() ([]Moment, error) {
	var moments []Moment
	err := r.readLines(timelineFile, decoded(func(m Moment) error {
		moments = append(moments, m)
		return nil
	}))
	return moments, err
}

// readLines hands on each line of a file of the run's folder that is written a line
// at a time. A last line without its end is passed over: its writer was killed, or
// writes on. A run that was not read has no files.
func (r *Run) readLines(file string, take func([]byte) error) error {
	if r.Dir == "" {
		return fmt.Errorf("reading %s: %w", file, fs.ErrNotExist)
	}
	path := filepath.Join(r.Dir, file)
	f, err := r.OpenFile(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	defer f.Close()
	return eachLine(f, path, take)
}

// decoded returns a function that decodes a line of JSON and passes the value to take.
func decoded[T any](take func(T) error) func(line []byte) error {
	return func(line []byte) error {
		var t T
		if err := json.Unmarshal(line, &t); err != nil {
			return err
		}
		return take(t)
	}
}

// eachLine hands on each line. The path is for errors.
func eachLine(r io.Reader, path string, take func([]byte) error) error {
	lines := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			err = fmt.Errorf("longer than %d bytes", maxLine)
		case err == nil && n > maxLines:
			err = fmt.Errorf("more than %d lines", maxLines)
		case err == nil:
			line = bytes.TrimSpace(line)
			disarm(line)
			err = take(line)
		}
		if err != nil {
			return fmt.Errorf("reading %s, line %d: %w", path, n, err)
		}
	}
}
