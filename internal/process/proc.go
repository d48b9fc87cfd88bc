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
)

// markerName is the environment variable that every child carries, and
// whatever it starts itself; its value is the group's folder.
const markerName = "SCALER_PROCESS_GROUP"

// bootID is different after each boot of the machine; see random(4).
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// startTime is when a process started, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	start, _, err := readStat(pid)
	return start, err
}

// alive says whether the process is still the same one, and not a zombie: an
// orphan may stay one for ever where process 1 does not reap.
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

// member is a living process that carries a group's marker.
type member struct {
	identity
	handle *os.Process // holds the process, not its number, where the kernel can
}

// members finds all living processes of the group in dir that this user may
// look at.
func members(dir string) ([]*member, error) {
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
		handle, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		start, err := startTime(pid)
		// Read after the handle was taken: what carries the marker is what the
		// handle holds. A zombie has no environment.
		env, errEnv := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || errEnv != nil || !hasMarker(env, dir) {
			_ = handle.Release()
			continue
		}
		found = append(found, &member{identity: identity{PID: pid, Start: start}, handle: handle})
	}
	return found, nil
}

func hasMarker(environ []byte, dir string) bool {
	want := []byte(markerName + "=" + dir)
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}

// stop ends a process that is not our child. It cannot be waited for, so its
// end is polled.
func (m *member) stop(ctx context.Context, grace time.Duration) error {
	defer m.handle.Release()
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

func (m *member) signal(s unix.Signal) error {
	err := m.handle.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to process %d: %w", s, m.PID, err)
	}
	return nil
}
