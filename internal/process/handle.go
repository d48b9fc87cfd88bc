package process

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Handle refers to one process of this machine, and not to a later one with the same id.
// It may be kept and passed on after the process has ended. Handles of the same process
// are equal if they were made in the same way. The zero Handle refers to no process.
type Handle struct {
	id    identity
	child *Process // whose end is accounted; nil = not a child of this process
}

// Self refers to this program.
func Self() Handle { return Find(os.Getpid()) }

// Find returns a handle to the process that has an id now. If there is none, the handle
// refers to a process that has ended.
func Find(pid int) Handle {
	start, _ := startTime(pid) // 0 where it has ended: no process started then
	return Handle{id: identity{PID: pid, Start: start}}
}

// Handle refers to the child.
func (p *Process) Handle() Handle {
	return Handle{id: identity{PID: p.pid, Start: p.start}, child: p}
}

// PID returns the process id. Another process may have it after this one has ended.
func (h Handle) PID() int { return h.id.PID }

// StartTicks returns the time when the process started, in clock ticks after boot, as
// field 22 of /proc/PID/stat; 0 for a process that had ended when the handle was made.
func (h Handle) StartTicks() uint64 { return h.id.Start }

// ExitCPU returns the processor time, user and system, that a child used in its life, as
// the kernel accounted it when the child was reaped; false while it runs and for a process
// that is no child. Threads are included, children that it did not wait for are not.
func (h Handle) ExitCPU() (time.Duration, bool) {
	if h.child == nil || !h.child.ended() {
		return 0, false
	}
	return h.child.cpu, true
}

// WithoutExitCPU returns a handle to the same process that never has an ExitCPU: for a
// child whose accounted time includes that of others.
func (h Handle) WithoutExitCPU() Handle {
	h.child = nil
	return h
}

// String describes the process in messages. The text is unique among the processes of
// this boot.
func (h Handle) String() string {
	return fmt.Sprintf("process %d (started at tick %d)", h.id.PID, h.id.Start)
}

// MarshalJSON writes the process id.
func (h Handle) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(h.id.PID), 10), nil
}
