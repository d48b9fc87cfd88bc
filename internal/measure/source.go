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
	// Started is when the life began, no later than any reading of it. The error
	// wraps ErrEnded when that can no longer be found out.
	Started() (time.Time, error)
	// Read reads all counters now. The error wraps ErrEnded when the life is over.
	Read() (Reading, error)
	// ExitCPU is the processor time of the whole life, once it is over and was
	// accounted; false before, and where nobody accounts for it.
	ExitCPU() (time.Duration, bool)
}

// Remote is a [Source] that can say that its Read asks another program, perhaps on another machine, and
// waits for the answer.
type Remote interface {
	// Remote reports whether it does.
	Remote() bool
}

func isRemote(s Source) bool {
	r, ok := s.(Remote)
	return ok && r.Remote()
}

// ErrEnded reports that what a Source reads has ended.
var ErrEnded = errors.New("process has ended")

// Reading is what a component had used at one moment. Counters are since the
// start of its life.
type Reading struct {
	At     time.Time
	CPU    time.Duration // processor time, user and system, of all threads
	Waited time.Duration // time that threads were ready to run and waited for a processor, added up over threads; -1 = not known
	// Late is, where time is slowed down by a factor k, what of Waited is a delay: of each thread, and
	// between two readings, what exceeds k-1 times its own processor time; -1 = not known. See
	// [Sampler.SlowDown]. Sources that cannot be slowed down leave it 0.
	Late     time.Duration
	Resident int64 // bytes
	Peak     int64 // bytes: the high-water mark of Resident
	// WorkingSet is memory as a control group counts it, in bytes; 0 = not known.
	WorkingSet int64
	Threads    int
	Files      int // open files; 0 = not known
}
