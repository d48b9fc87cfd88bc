package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoot is the mount point of control groups; see cgroups(7).
const cgroupRoot = "/sys/fs/cgroup"

// memoryFiles are the names of the memory controller's files in one version of control
// groups.
type memoryFiles struct {
	limit     string // bytes the group may hold
	swap      string // bytes it may swap out, or hold and swap out; not always there
	swapValue func(limit int64) string
	unlimited func(text string) bool // whether the text in the file limit means no limit
	kills     string                 // has a line "oom_kill N"

	usage    string // bytes that are charged to the group
	inactive string // of memory.stat: file pages not used lately, those of groups below included
	// sockets is the file with the bytes of TCP socket buffers, for versions in which
	// usage does not include them; countSockets is the file that makes the kernel count
	// them once it was written to.
	sockets, countSockets string
}

var memoryV1 = memoryFiles{
	limit: "memory.limit_in_bytes",
	swap:  "memory.memsw.limit_in_bytes", swapValue: func(limit int64) string { return strconv.FormatInt(limit, 10) },
	unlimited: func(text string) bool {
		n, err := strconv.ParseInt(text, 10, 64)
		return err == nil && n >= 1<<62 // the greatest multiple of the page size
	},
	kills: "memory.oom_control",
	usage: "memory.usage_in_bytes", inactive: "total_inactive_file",
	sockets: "memory.kmem.tcp.usage_in_bytes", countSockets: "memory.kmem.tcp.limit_in_bytes",
}

var memoryV2 = memoryFiles{
	limit: "memory.max",
	swap:  "memory.swap.max", swapValue: func(int64) string { return "0" },
	unlimited: func(text string) bool { return text == "max" },
	kills:     "memory.events",
	usage:     "memory.current", inactive: "inactive_file",
}

// OutOfMemoryError reports that the kernel killed a child for exceeding its memory
// limit.
type OutOfMemoryError struct {
	Name  string
	Limit int64 // bytes
}

// Error returns one line.
func (e *OutOfMemoryError) Error() string {
	return fmt.Sprintf("%s was killed by the kernel: out of memory at its limit of %d MiB", e.Name, e.Limit>>20)
}

// killed reports whether a process was ended by SIGKILL, as the kernel does when memory
// runs out.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// groups numbers the control groups, so that their names are unique.
var groups atomic.Int64

func groupName(child string) string {
	return fmt.Sprintf("scaler-%d-%d-%s", os.Getpid(), groups.Add(1), child)
}

// ownGroup matches the path of a control group made by scaler: one named by groupName, or
// one for a priority in it.
var ownGroup = regexp.MustCompile(`^` + cgroupRoot + `/(?:[^/]+/)*scaler-[0-9]+-[0-9]+-[^/]+(?:/(?:first|own|last))?$`)

// isOwnGroup reports whether a path, which may come from a file, is that of a control
// group made by scaler.
func isOwnGroup(dir string) bool { return filepath.Clean(dir) == dir && ownGroup.MatchString(dir) }

// memoryGroup is a control group of one child, which counts its memory and may limit it.
type memoryGroup struct {
	dir   string
	files memoryFiles
	kills int64 // processes that the kernel killed in it, as of its end
}

// CanLimitMemory returns the reason why children cannot be given a memory limit; nil if
// they can.
func CanLimitMemory() error {
	g, err := newMemoryGroup(groupName("try"), 1<<30, func(string) error { return nil })
	if err != nil {
		return err
	}
	return g.remove()
}

// newMemoryGroup makes a control group with a memory limit in bytes and without swap; 0
// means no limit. planned is called with its folder before it is made.
//
// It is made as near to the root as this user is permitted, but below the last group on
// the way that limits scaler itself, so that this limit applies to it too. It is not made
// below scaler's own group: in version 2 a group has either processes or groups, and in
// both versions the creator of that group may want to remove it.
func newMemoryGroup(name string, limit int64, planned func(dir string) error) (*memoryGroup, error) {
	parents, files, err := memoryParents()
	if err != nil {
		return nil, fmt.Errorf("making a control group with a memory limit: %w", err)
	}
	var errs []error
	for _, parent := range parents {
		g := &memoryGroup{dir: filepath.Join(parent, name), files: files}
		if err := planned(g.dir); err != nil {
			return nil, fmt.Errorf("making a control group: %w", err)
		}
		if err := g.make(limit); err != nil {
			errs = append(errs, err)
			continue
		}
		return g, nil
	}
	return nil, fmt.Errorf("making a control group with a memory limit: %w", errs[0])
}

// memoryParents returns the folders of the groups that a new one may be made in, the best
// first, and at least one.
func memoryParents() ([]string, memoryFiles, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, memoryFiles{}, err
	}
	mount, group, v2, err := parseCgroups(string(own), "memory")
	if err != nil {
		return nil, memoryFiles{}, err
	}
	files := memoryV1
	if v2 {
		files = memoryV2
	}
	base := filepath.Join(cgroupRoot, mount)
	var parents []string
	for {
		dir := filepath.Join(base, group)
		parents = append([]string{dir}, parents...)
		text, err := os.ReadFile(filepath.Join(dir, files.limit))
		limited := err == nil && !files.unlimited(strings.TrimSpace(string(text)))
		if group == "/" || limited {
			return parents, files, nil
		}
		group = path.Dir(group)
	}
}

// parseCgroups finds the group of a controller in /proc/PID/cgroup:
// lines of HIERARCHY:CONTROLLERS:PATH. Version 2 has one line, 0::PATH; where
// both versions are mounted, the controller is version 1's if it is named.
func parseCgroups(text, wanted string) (mount, group string, v2 bool, err error) {
	unified := ""
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "/") {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			if controller == wanted {
				return fields[1], path.Clean(fields[2]), false, nil
			}
		}
		if fields[0] == "0" && fields[1] == "" {
			unified = path.Clean(fields[2])
		}
	}
	if unified == "" {
		return "", "", false, fmt.Errorf("no %s controller in /proc/self/cgroup", wanted)
	}
	return "", unified, true, nil
}

func (g *memoryGroup) make(limit int64) error {
	if g.files.limit == memoryV2.limit {
		enableControllers(filepath.Dir(g.dir), "memory")
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	if g.files.countSockets != "" {
		// Version 1 counts the sockets that are made in a group after a limit was set. If
		// that fails, WorkingSet reports it.
		_ = g.write(g.files.countSockets, strconv.FormatInt(1<<62, 10))
	}
	if limit == 0 {
		return nil
	}
	if err := g.write(g.files.limit, strconv.FormatInt(limit, 10)); err != nil {
		return errors.Join(err, g.remove())
	}
	// If the kernel does not count swap, there is no file for it.
	if err := g.write(g.files.swap, g.files.swapValue(limit)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return errors.Join(err, g.remove())
	}
	return nil
}

func (g *memoryGroup) write(name, value string) error { return writeControl(g.dir, name, value) }

// enableControllers enables controllers for the groups below one of version 2. Errors are ignored: the controllers
// are enabled, or the caller fails to write one of their control files, and says so.
func enableControllers(dir string, controllers ...string) {
	for _, c := range controllers {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0)
	}
}

// writeControl writes an existing control file; control groups do not allow to create
// files.
func writeControl(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// add moves a process into the group. Memory that it holds already stays accounted to its
// previous group.
func (g *memoryGroup) add(pid int) error { return g.write("cgroup.procs", strconv.Itoa(pid)) }

// close removes the group after its processes have ended and keeps the number that the
// kernel killed for lack of memory.
func (g *memoryGroup) close() error {
	text, err := os.ReadFile(filepath.Join(g.dir, g.files.kills))
	if err == nil {
		g.kills, _ = statCount(string(text), "oom_kill") // 0 where there is no such line
	}
	return g.remove()
}

// remove deletes the group. A process that was just killed may still be in it for a
// moment.
func (g *memoryGroup) remove() error { return removeGroup(g.dir) }

func removeGroup(dir string) error {
	const tries, pause = 50, 20 * time.Millisecond
	var err error
	for range tries {
		// Not os.Remove, which also deletes files.
		if err = unix.Rmdir(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		<-time.After(pause)
	}
	return fmt.Errorf("removing the control group %s: %w", dir, err)
}
