package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
)

// Spec states how to start one child.
type Spec struct {
	// Name is the name of the child in states and errors, such as "etcd". No two living
	// children of a group have the same one.
	Name string
	// Path is the path of the program; PATH is not searched.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Env is the complete environment. Nil means PATH and HOME only, with
	// scaler's values.
	Env []string
	// Dir is the working folder; "" means scaler's.
	Dir string
	// Log is the file for standard output and standard error. It is appended to, and
	// created with its folder if missing. "" discards the output.
	Log string
	// Files are open files that the child inherits as descriptors 3 and on.
	Files []*os.File
	// Priority is the priority of the child in a group with [GroupOptions.Prioritize];
	// zero means the same as scaler's.
	Priority Priority
	// Network is the network namespace that the child lives in; nil means scaler's.
	Network *Network
	// User is the id of the user, and of the group, that the child runs as; 0 means
	// scaler's. It needs root. Program and working folder may be in folders that the user
	// cannot search.
	User uint32
	// Quota limits the processor time of the child and its descendants. Start fails where
	// [Group.CanLimitProcessors] does.
	Quota Quota
	// MemoryLimit limits the bytes that the child and its descendants may hold, in a
	// control group of their own; 0 means no limit. The kernel kills whatever exceeds it:
	// see [OutOfMemoryError]. Start fails where [CanLimitMemory] does.
	MemoryLimit int64
	// CountMemory requests [Handle.WorkingSet] of the child, which needs a control group
	// for the child. If none is permitted, the child is started anyway. A MemoryLimit
	// includes it.
	CountMemory bool
}

// Process is a started child.
type Process struct {
	spec  Spec
	grace time.Duration
	place placement
	quota string       // folder of the control group of its Quota; "" = it has none
	group *memoryGroup // nil without a MemoryLimit, and where memory is not counted in a group of its own
	count memoryCount
	pid   int
	start uint64 // of pid, see startTime
	done  chan struct{}
	asked atomic.Bool // Stop or Kill was called

	// Written before done is closed, read after.
	err      error
	cpu      time.Duration
	leftover error // its control group could not be removed

	mu     sync.Mutex
	reaped bool // pid may belong to another process from here on
}

// PID returns the child's process id, which is also the id of its process group.
func (p *Process) PID() int { return p.pid }

// Name returns the name given in its Spec.
func (p *Process) Name() string { return p.spec.Name }

// Done is closed when the child has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns the reason why the child ended, with its command and the end of its log. It
// is nil while the child runs, and when it ended because Stop or Kill was called; an end
// that was not requested is an error whatever the exit status.
func (p *Process) Err() error {
	if !p.ended() {
		return nil
	}
	return p.err
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Stop sends SIGTERM to the child's process group, then SIGKILL when the grace of its
// Group has passed or ctx is done, and returns when the child has been reaped. If ctx is
// done already, the child is killed at once.
func (p *Process) Stop(ctx context.Context) error {
	p.asked.Store(true)
	if err := p.signal(unix.SIGTERM); err != nil {
		return err
	}
	grace := time.NewTimer(p.grace)
	defer grace.Stop()
	select {
	case <-p.done:
		return p.leftover
	case <-grace.C:
	case <-ctx.Done():
	}
	if err := p.signal(unix.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return p.leftover
}

// Kill sends SIGKILL to the child's process group and does not wait.
func (p *Process) Kill() {
	p.asked.Store(true)
	_ = p.signal(unix.SIGKILL) // where it fails, Stop returns the error
}

// signal sends a signal to the whole process group, and to no other process: until the
// child is reaped, its pid cannot be given to another process.
func (p *Process) signal(s unix.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := unix.Kill(-p.pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("sending %v to %s (process group %d): %w", s, p.spec.Name, p.pid, err)
	}
	return nil
}

// start forks the child and returns when it runs. mortal asks the kernel to kill it when
// scaler ends; marker is added to its environment. planned is called with the folder of
// the child's control group before that is made.
func start(spec Spec, marker []string, mortal bool, grace time.Duration, place placement, planned func(dir string) error) (*Process, error) {
	log, err := openLog(spec.Log)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	cmd := &exec.Cmd{
		Path: spec.Path, Args: append([]string{spec.Path}, spec.Args...),
		Env: environment(spec.Env, marker), Dir: spec.Dir, Stdout: log, Stderr: log, ExtraFiles: spec.Files,
		// A separate process group, so that a terminal's ctrl-C reaches only scaler. Not
		// a separate session: if the kernel shares processors by session, niceness would
		// not weigh children against each other (sched_autogroup_enabled, see sched(7)).
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if mortal {
		linux.EndWithParent(cmd.SysProcAttr, unix.SIGKILL)
	}
	release := func() {}
	if spec.User > 0 {
		if release, err = asUser(cmd, spec.User); err != nil {
			return nil, errors.Join(fmt.Errorf("starting %s as user %d: %w", spec.Name, spec.User, err), log.Close())
		}
	}
	defer release()
	p := &Process{spec: spec, grace: grace, place: place, done: make(chan struct{})}
	if err := p.makeGroups(planned); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", spec.Name, err), log.Close())
	}
	offset, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		offset = 0 // not a regular file
	}
	started := make(chan error)
	go ownThread(func() { p.run(cmd, offset, started) })
	err = <-started
	log.Close()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// run forks, waits and reaps on one thread. The kernel sends a parent-death signal when
// the thread that forked ends, not the process, so that thread is kept as long as the
// child lives. Niceness and network are set on the thread before the fork, so
// that the child inherits them from the start. See ownThread.
func (p *Process) run(cmd *exec.Cmd, logOffset int64, started chan<- error) {
	if err := p.fork(cmd); err != nil {
		if p.group != nil {
			err = errors.Join(err, p.group.remove())
		}
		started <- errors.Join(err, p.removeQuota())
		return
	}
	p.pid = cmd.Process.Pid
	p.start, _ = startTime(p.pid) // there until we reap it
	started <- nil

	linux.AwaitExit(p.pid)
	p.mu.Lock()
	// Processes that the child started end with it, while its pid, which is also its
	// process group's, is still reserved.
	_ = unix.Kill(-p.pid, unix.SIGKILL)
	err := cmd.Wait()
	p.reaped = true
	reapGroup(p.pid)
	p.mu.Unlock()

	p.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	outOfMemory := false
	if p.group != nil {
		p.leftover = p.group.close()
		outOfMemory = p.spec.MemoryLimit > 0 && p.group.kills > 0 && killed(cmd.ProcessState)
	}
	p.leftover = errors.Join(p.leftover, p.removeQuota())
	if outOfMemory {
		p.err = &OutOfMemoryError{Name: p.spec.Name, Limit: p.spec.MemoryLimit}
	} else if !p.asked.Load() {
		if err == nil {
			err = errors.New("it ended by itself, with exit status 0")
		}
		log := logTail(p.spec.Log, logOffset)
		p.err = &ExitError{Name: p.spec.Name, Command: cmd.Args, Cause: err, Log: p.spec.Log, LogEnd: lastLines(log), LogError: errorLines(log)}
	}
	close(p.done)
}

// asUser makes cmd run as a user. The child opens its program and its working folder by
// file descriptors of this process, because they are often below folders of root. It also
// has the capability to search such folders, for programs that resolve their own paths.
// release closes the descriptors.
func asUser(cmd *exec.Cmd, user uint32) (release func(), err error) {
	program, err := os.Open(cmd.Path)
	if err != nil {
		return nil, err
	}
	release = func() { program.Close() }
	cmd.ExtraFiles = append(slices.Clone(cmd.ExtraFiles), program)
	cmd.Path = "/proc/self/fd/" + strconv.Itoa(2+len(cmd.ExtraFiles)) // as the child numbers it
	if cmd.Dir != "" {
		folder, err := os.Open(cmd.Dir)
		if err != nil {
			release()
			return nil, err
		}
		release = func() { program.Close(); folder.Close() }
		cmd.Dir = "/proc/self/fd/" + strconv.Itoa(int(folder.Fd())) // the child changes to it before it renumbers
	}
	linux.GrantReading(cmd.SysProcAttr)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
	return release, nil
}

func (p *Process) fork(cmd *exec.Cmd) error {
	if err := setNice(p.place.nice); err != nil {
		return err
	}
	if p.spec.Network != nil {
		if err := p.spec.Network.enter(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := p.join(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill() // fails only when it has ended
		_ = cmd.Wait()         // reports that it was killed
		return err
	}
	return nil
}

// join moves the child into its control groups. Until then it has used almost no memory
// and processor time.
func (p *Process) join(pid int) error {
	if p.group != nil {
		if err := p.group.add(pid); err != nil && p.spec.MemoryLimit > 0 {
			return fmt.Errorf("limiting its memory: %w", err)
		} else if err != nil {
			p.count = memoryCount{err: fmt.Errorf("joining a control group: %w", err)}
		}
	}
	if p.place.dir != "" {
		if err := writeControl(p.place.dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("setting its priority: %w", err)
		}
	}
	return nil
}

// ExitError reports the end of a child that was not requested.
type ExitError struct {
	Name    string
	Command []string // the program and its arguments
	Cause   error    // as reported by the operating system
	Log     string   // the whole log's file, "" if there is none
	LogEnd  string   // its last lines, without those of earlier children
	// LogError holds the lines of this child's log that state the error; "" if there are
	// none.
	LogError string
}

// Error returns one line, followed by the lines of the log that state the error or, if
// there are none, by its end.
func (e *ExitError) Error() string {
	s := fmt.Sprintf("running %s (%s): %v", e.Name, strings.Join(e.Command, " "), e.Cause)
	switch {
	case e.LogError != "":
		s += "; its log " + e.Log + " says:\n" + e.LogError
	case e.LogEnd != "":
		s += "; its log " + e.Log + " ends:\n" + e.LogEnd
	}
	return s
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Cause }

func openLog(path string) (*os.File, error) {
	if path == "" {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// logTail returns what was written since offset, or its last part if that is much.
func logTail(path string, offset int64) string {
	const maxBytes = 1 << 20
	if path == "" {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(offset, size-maxBytes), maxBytes))
	if err != nil {
		return ""
	}
	return string(text)
}

// lastLines returns the end of a log.
func lastLines(text string) string {
	const maxBytes, maxLines = 4096, 12
	lines := strings.Split(strings.TrimSpace(text[max(0, len(text)-maxBytes):]), "\n")
	return strings.Join(lines[max(0, len(lines)-maxLines):], "\n")
}

// environment returns the environment of the child. scaler's own is never inherited by
// accident.
func environment(env []string, marker []string) []string {
	if env == nil {
		env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	}
	return append(append([]string(nil), env...), marker...)
}
