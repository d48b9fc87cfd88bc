package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const samplesFile = "samples.jsonl"

// Sample is one line of samples.jsonl: the usage of programs up to a moment. One is
// written each second and at both edges of each phase, so that the record of a run
// that was killed still has the usage of its programs.
type Sample struct {
	Time       time.Time       `json:"time"`                 // wall clock; at an edge that of Phase.Start or Phase.End
	At         float64         `json:"at"`                   // seconds on the monotonic clock, from the run's first sample
	Edge       bool            `json:"edge,omitempty"`       // the moment is an edge of a phase
	Components []ComponentRead `json:"components,omitempty"` // those that were read, started or ended then
}

// ComponentRead is one reading of a program's usage. Counters begin at the start of its
// process.
type ComponentRead struct {
	Name    string   `json:"name"`
	Life    int      `json:"life,omitempty"`    // 0 for its first process; one more after each restart
	Started *float64 `json:"started,omitempty"` // seconds, as At, in the first sample of a life
	Ended   bool     `json:"ended,omitempty"`   // the life ended at At; nothing was read. What was accounted to it follows

	At          float64 `json:"at"`                   // seconds, as Sample.At, at which it was read
	CPUSeconds  float64 `json:"cpuSeconds"`           // user and system, of all threads
	Waited      float64 `json:"waited"`               // seconds that threads waited for a processor, added up; -1 = not known
	Late        float64 `json:"late,omitempty"`       // of waited, where time is slowed down: what exceeds K - 1 times the processor time of the same thread; -1 = not known
	MemoryBytes int64   `json:"memoryBytes"`          // resident
	MemoryPeak  int64   `json:"memoryPeak"`           // bytes: the high-water mark of resident memory
	WorkingSet  int64   `json:"workingSet,omitempty"` // bytes, as a control group counts them; 0 = not known
	Threads     int     `json:"threads,omitempty"`    // at that moment
	OpenFiles   int     `json:"openFiles,omitempty"`  // at that moment
}

// SampleLog is the samples.jsonl of a run that is being written. Its methods may be
// called from several goroutines.
type SampleLog struct {
	mu   sync.Mutex
	file *os.File
	size int64 // bytes of whole lines
}

// Append writes samples.
func (l *SampleLog) Append(samples ...Sample) error {
	var lines []byte
	for _, s := range samples {
		line, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("writing samples: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.file.WriteAt(lines, l.size)
	if err != nil {
		// A part of a line must not stay, or the next one would continue it.
		return errors.Join(fmt.Errorf("writing samples (%d of %d bytes): %w", n, len(lines), withFix(err)), l.file.Truncate(l.size))
	}
	l.size += int64(len(lines))
	return nil
}

// Each hands on all samples that were appended, in order, until take fails.
func (l *SampleLog) Each(take func(Sample) error) error {
	l.mu.Lock()
	size := l.size
	l.mu.Unlock()
	return eachLine(io.NewSectionReader(l.file, 0, size), l.file.Name(), decoded(take))
}

// Samples returns the log of what the run's programs use. It can be used until Close.
func (w *Writer) Samples() *SampleLog { return w.samples }

// Samples hands on the samples of a run that was read, in order, until take fails. Its
// error has fs.ErrNotExist in it for a record that has none.
func (r *Run) Samples(take func(Sample) error) error { return r.readLines(samplesFile, decoded(take)) }
