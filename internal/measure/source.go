package measure

import (
	"errors"
	"time"
)

// Source reads what one life of a component uses: a process from its start to its
// end, or a container. The life that follows has a Source of its own. A Source
// belongs to one [Sampler], which does not call it concurrently.
type Source interface {
	// ID names the life in messages; no other life has the same.
	ID() string
	// Started returns when the life began, no later than any reading of it. The error
	// wraps ErrEnded if that cannot be found out any more.
	Started() (time.Time, error)
	// Read reads all counters now. The error wraps ErrEnded when the life is over.
	Read() (Reading, error)
	// ExitCPU returns the processor time of the whole life, once it is over and was
	// accounted; false before, and where it is not accounted.
	ExitCPU() (time.Duration, bool)
}

// Remote is a [Source] whose Read may query another program, perhaps on another machine, and
// wait for the answer.
type Remote interface {
	// Remote reports whether Read does.
	Remote() bool
}

func isRemote(s Source) bool {
	r, ok := s.(Remote)
	return ok && r.Remote()
}

// ErrEnded reports that the life that a Source reads has ended.
var ErrEnded = errors.New("process has ended")

// Reading holds the counters of a component at one moment, which count from the
// start of its life.
type Reading struct {
	At     time.Time
	CPU    time.Duration // processor time, user and system, of all threads
	Waited time.Duration // time that threads were ready to run and waited for a processor, added up over threads; -1 = not known
	// Late is the part of Waited that is a delay where time is slowed down by a factor k: of each thread, and
	// between two readings, the wait beyond k-1 times its own processor time; -1 = not known. See
	// [Sampler.SlowDown]. Sources that cannot be slowed down leave it 0.
	Late     time.Duration
	Resident int64 // bytes
	Peak     int64 // bytes: the high-water mark of Resident
	// WorkingSet is memory as a control group counts it, in bytes; 0 = not known.
	WorkingSet int64
	Threads    int
	Files      int // open files; 0 = not known
}
