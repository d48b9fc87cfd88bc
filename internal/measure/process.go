package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/process"
)

// ticksPerSecond is the unit of times in /proc/PID/stat, fixed by the kernel's
// interface whatever its own timer is.
const ticksPerSecond = 100

// OfProcess reads a process of this machine, from /proc and from its clock.
func OfProcess(handle process.Handle) Source { return &processSource{handle: handle} }

// Self reads this program.
func Self() Source { return OfProcess(process.Self()) }

// processSource reads one process. One that has ended, reaped or not, or whose id
// was given to another, is ErrEnded.
//
// Processor time comes from the process's own clock (clock_getcpuclockid(3)):
// the scheduler's sum over all threads, ended ones included, exact to the
// nanosecond even for a thread that is running now. /proc/PID/stat gives the
// same sum cut to two counts of 10 ms, up to 20 ms late; adding up
// /proc/PID/task/*/schedstat loses the threads that ended, and is a timer tick
// late for running ones.
//
// Run delays have no such sum, so they are added up over threads. What a
// thread waited after its last reading is lost when it ends.
type processSource struct {
	handle process.Handle
	proc   *procfs.Proc // nil before the first use
	delays threadDelays
}

// ID implements Source.
func (s *processSource) ID() string { return s.handle.String() }

// ExitCPU implements Source.
func (s *processSource) ExitCPU() (time.Duration, bool) { return s.handle.ExitCPU() }

// stat finds the process, if it still is the same one.
func (s *processSource) stat() (procfs.ProcStat, error) {
	if s.proc == nil {
		proc, err := procfs.NewProc(s.handle.PID())
		if err != nil {
			return procfs.ProcStat{}, gone(err)
		}
		s.proc = &proc
	}
	stat, err := s.proc.Stat()
	if err != nil {
		return procfs.ProcStat{}, gone(err)
	}
	if stat.Starttime != s.handle.StartTicks() {
		return procfs.ProcStat{}, ErrEnded
	}
	return stat, nil
}

// Started implements Source.
func (s *processSource) Started() (time.Time, error) {
	stat, err := s.stat()
	if err != nil {
		return time.Time{}, err
	}
	var boot unix.Timespec
	if err := unix.ClockGettime(linux.ClockBoot, &boot); err != nil {
		return time.Time{}, fmt.Errorf("reading the time since boot: %w", err)
	}
	now := time.Now()
	// The tick of its start was cut off: take the latest moment that fits, so
	// that no process seems older than a window it was started in.
	const tick = time.Second / ticksPerSecond
	age := time.Duration(boot.Nano()) - time.Duration(stat.Starttime+1)*tick
	age = max(age, time.Microsecond) // before any reading
	return now.Add(-age), nil
}

// Read implements Source.
func (s *processSource) Read() (Reading, error) {
	stat, err := s.stat()
	if err != nil {
		return Reading{}, err
	}
	if stat.State == "Z" || stat.State == "X" {
		return Reading{}, ErrEnded
	}
	r := Reading{At: time.Now(), Threads: stat.NumThreads}
	if r.CPU, err = processClock(s.handle.PID()); err != nil {
		return Reading{}, gone(err)
	}
	status, err := s.proc.NewStatus()
	if err != nil {
		return Reading{}, gone(err)
	}
	r.Resident, r.Peak = int64(status.VmRSS), int64(status.VmHWM)
	r.WorkingSet, _ = s.handle.WorkingSet() // Uncounted has the reason
	r.Files, err = s.proc.FileDescriptorsLen()
	if err != nil && !errors.Is(err, fs.ErrPermission) { // those of another user are not shown
		return Reading{}, gone(err)
	}
	kept, err := s.readDelays(r.CPU)
	if err != nil {
		return Reading{}, gone(err)
	}
	r.Waited, r.Late = -1, -1
	if kept {
		r.Waited, r.Late = s.delays.waited, s.delays.late
	}
	return r, nil
}

// slowDown implements slowable.
func (s *processSource) slowDown(k float64) { s.delays.slowdown = k }

// Uncounted returns why readings of a source have no working set; nil if they have one.
func Uncounted(src Source) error {
	s, ok := src.(*processSource)
	if !ok {
		return process.ErrNotCounted
	}
	_, err := s.handle.WorkingSet()
	return err
}

// ReadCPU implements cpuReader. It is repeated where scaler did not run in the middle of
// it.
func (s *processSource) ReadCPU() (time.Time, time.Duration, error) {
	const tries, most = 3, time.Millisecond
	var before time.Time
	var used, passed time.Duration
	for range tries {
		var err error
		before = time.Now()
		if used, err = processClock(s.handle.PID()); err != nil {
			return time.Time{}, 0, gone(err)
		}
		if passed = time.Since(before); passed < most {
			break
		}
	}
	return before.Add(passed / 2), used, nil
}

// readDelays adds what each thread waited since the last reading. False means that the
// kernel keeps no run delays.
func (s *processSource) readDelays(used time.Duration) (bool, error) {
	threads, err := s.threads()
	if err != nil {
		return false, err
	}
	now := make(map[int]threadTime, len(threads))
	var ran uint64
	for _, thread := range threads {
		stat, err := thread.Schedstat()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // ended since it was listed
		}
		if err != nil {
			return false, err
		}
		ran += stat.RunningNanoseconds
		now[thread.PID] = threadTime{ran: time.Duration(stat.RunningNanoseconds), waited: time.Duration(stat.WaitingNanoseconds)}
	}
	s.delays.add(now)
	return keepsDelays(ran, used), nil
}

// keepsDelays reports whether the kernel keeps run delays, by the nanoseconds that it
// says threads ran for and by the processor time that their process used. One that
// was looked at before it came to run has used none.
func keepsDelays(ran uint64, used time.Duration) bool { return ran > 0 || used == 0 }

func (s *processSource) threads() (procfs.Procs, error) { return procfs.AllThreads(s.handle.PID()) }

// processClock returns the processor time the process has used, by the clock whose
// id clock_getcpuclockid(3) derives from a pid: its complement, shifted, and
// 2 for the scheduler's count.
func processClock(pid int) (time.Duration, error) {
	const schedulerCount = 2
	var used unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|schedulerCount, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Nano()), nil
}

// gone converts errors of /proc and the clock that mean the end of the process to ErrEnded. A
// clock of a pid that is nobody's is an invalid argument.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return ErrEnded
	}
	return err
}
