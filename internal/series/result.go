package series

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Status is the outcome of a series.
type Status string

// The result of a series has the status Interrupted from its first byte until its end is known. Users of the
// package add statuses of complete ones.
const (
	Complete    Status = "complete"
	Interrupted Status = "interrupted" // by a signal, or killed without a word
	Failed      Status = "failed"      // a run failed
)

// Head begins the result of every series that is kept. Types of results embed it.
type Head struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Digest     string     `json:"digest"` // of all that was asked for
	Status     Status     `json:"status"`
	Started    time.Time  `json:"started"`
	Finished   *time.Time `json:"finished,omitempty"` // absent while it runs and when it was killed
}

// NewHead returns the head of a series that begins now. asked are all the texts in which it may differ
// from another one that is not resumed by it.
func NewHead(kind string, asked ...string) Head {
	sum := sha256.Sum256([]byte(strings.Join(asked, "\x00")))
	return Head{APIVersion: record.APIVersion, Kind: kind, Digest: fmt.Sprintf("%x", sum[:6]), Status: Interrupted, Started: time.Now().UTC()}
}

func (h *Head) head() *Head { return h }

// Result is the result of a series that is kept: a struct that embeds Head.
type Result interface{ head() *Head }

// Folder has the result of a series in a file, and is locked: no other scaler writes to it until
// Close.
type Folder struct {
	dir, file string
	result    Result
	lock      *record.Folder
}

// Open locks a folder for a series, and makes it where there is none. fresh is the result of a series that begins now; it
// is kept in a file of this name. earlier is the result of the same series as far as it came, nil where the folder has
// none. If there is one, fresh takes over its start time. Another series is refused by a *[scenario.Error] of the path out.
func Open[R any, P interface {
	*R
	Result
}](dir, file string, fresh P) (folder *Folder, earlier P, err error) {
	lock, err := record.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	earlier = P(new(R))
	switch err = record.ReadResult(filepath.Join(dir, file), earlier); {
	case errors.Is(err, fs.ErrNotExist):
		earlier, err = nil, nil
	case err != nil:
	case earlier.head().Kind != fresh.head().Kind || earlier.head().Digest != fresh.head().Digest:
		err = scenario.Refuse("out", dir, "an empty folder, or one whose %s is of the same question, which is then resumed", file)
	default:
		fresh.head().Started = earlier.head().Started
	}
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return &Folder{dir, file, fresh, lock}, earlier, nil
}

// Close lets others into the folder. One that Open made and that is empty is removed.
func (f *Folder) Close() error { return f.lock.Close() }

// Save writes the result: all of it or nothing.
func (f *Folder) Save() error { return record.SaveResult(filepath.Join(f.dir, f.file), f.result) }
