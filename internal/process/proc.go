package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
)

const (
	// markerName is the environment variable that every child and its descendants have;
	// its value is the group's random id.
	markerName = "SCALER_PROCESS_GROUP"
	// folderName is the variable with the group's folder, for people. The program does
	// not use it, because paths on a host and in containers may be equal.
	folderName = "SCALER_PROCESS_GROUP_DIR"
)

// bootID returns an id that differs after each boot of the machine; see random(4).
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// startTime returns the time when a process started, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	start, _, err := readStat(pid)
	return start, err
}

// alive reports whether the process is still the same one, and not a zombie: an orphan
// may stay a zombie for ever if process 1 does not reap.
func (i identity) alive() bool {
	start, state, err := readStat(i.PID)
	return err == nil && start == i.Start && state != 'Z' && state != 'X'
}

func readStat(pid int) (start uint64, state byte, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	return parseStat(data)
}

// parseStat reads fields 3 (state) and 22 (starttime) of /proc/PID/stat, see
// proc_pid_stat(5). Field 2, the program's name in parentheses, may itself
// hold spaces and parentheses.
func parseStat(data []byte) (start uint64, state byte, err error) {
	end := bytes.LastIndexByte(data, ')')
	fields := bytes.Fields(data[end+1:])
	const first = 3 // field number of fields[0]
	if end < 0 || len(fields) <= 22-first || len(fields[0]) != 1 {
		return 0, 0, fmt.Errorf("reading process status %q: too few fields", data)
	}
	start, err = strconv.ParseUint(string(fields[22-first]), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("reading process status %q: %w", data, err)
	}
	return start, fields[0][0], nil
}

// member is a living process that has a group's id in its environment.
type member struct {
	identity
	pidfd int // refers to the process, never to a later one with its id
}

// members finds all living processes of a group that this user may inspect.
func members(group stateFile) ([]*member, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []*member
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		m, err := asMember(pid, group)
		if err != nil {
			for _, m := range found {
				m.close()
			}
			return nil, err
		}
		if m != nil {
			found = append(found, m)
		}
	}
	return found, nil
}

// asMember opens a process if it belongs to the group: its environment has the random id,
// and its user is the group's. It returns nil otherwise. What is read of a process id
// between opening its pidfd and finding that the process still exists belongs to that
// process.
func asMember(pid int, group stateFile) (*member, error) {
	// Most processes do not belong to the group: this check opens nothing. A zombie has
	// no environment.
	if !carries(pid, group.ID) {
		return nil, nil
	}
	pidfd, err := linux.OpenProcess(pid)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("taking hold of process %d (pidfd_open, which Linux has since 5.3): %w", pid, err)
	}
	m := &member{identity: identity{PID: pid}, pidfd: pidfd}
	start, err := startTime(pid)
	var stat unix.Stat_t
	errStat := unix.Stat(fmt.Sprintf("/proc/%d", pid), &stat)
	if err != nil || errStat != nil || int(stat.Uid) != group.UID || !carries(pid, group.ID) || linux.SignalProcess(pidfd, 0) != nil {
		m.close()
		return nil, nil
	}
	m.Start = start
	return m, nil
}

// carries reports whether a process has the id of a group in its environment.
func carries(pid int, id string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && hasMarker(environ, id)
}

// SameGroup reports whether a process belongs to the same group as this one, according to
// their environments.
func SameGroup(pid int) bool {
	id := os.Getenv(markerName)
	return id != "" && carries(pid, id)
}

func hasMarker(environ []byte, id string) bool {
	want := []byte(markerName + "=" + id)
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}

func (m *member) close() { _ = unix.Close(m.pidfd) }

// stop ends a process that is not a child of this one. It cannot be waited for, so its
// end is polled.
func (m *member) stop(ctx context.Context, grace time.Duration) error {
	if err := m.signal(unix.SIGTERM); err != nil {
		return err
	}
	killAt := time.NewTimer(grace)
	defer killAt.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	done := ctx.Done()
	for m.alive() {
		select {
		case <-poll.C:
			continue
		case <-killAt.C:
		case <-done:
			done = nil
		}
		if err := m.signal(unix.SIGKILL); err != nil {
			return err
		}
	}
	return nil
}

// kill ends a process at once, and reaps it if it has become a child of this one.
func (m *member) kill() error {
	if err := m.signal(unix.SIGKILL); err != nil {
		return err
	}
	fds := []unix.PollFd{{Fd: int32(m.pidfd), Events: unix.POLLIN}} // readable at its end
	for {
		n, err := unix.Poll(fds, int(defaultGrace.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return fmt.Errorf("process %d, which escaped its parent, does not end: %w", m.PID, errors.Join(err, unix.ETIMEDOUT))
		}
		reap(m.PID)
		return nil
	}
}

// reap takes the exit status of processes that have become children of this one, if they
// have ended: of one process, or with a negative id of a whole process group. It reports
// whether some have not ended.
func reap(pid int) (running bool) {
	for {
		reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || reaped == 0 {
			return err == nil
		}
	}
}

// reapGroup waits for the processes of a group that were killed and have become children
// of this process. That takes a moment, unless the kernel holds one of them.
func reapGroup(pgid int) {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for began := time.Now(); reap(-pgid) && time.Since(began) < reapTime; {
		<-poll.C
	}
}

// reapTime limits reapGroup: a process that takes longer is reaped when the group ends.
const reapTime = time.Second

func (m *member) signal(s unix.Signal) error {
	err := linux.SignalProcess(m.pidfd, s)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("sending %v to process %d: %w", s, m.PID, err)
	}
	return nil
}
