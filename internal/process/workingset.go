package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryCount says where the memory of a child is counted.
type memoryCount struct {
	dir   string // the control group that holds it alone
	files *memoryFiles
	err   error // why it is not counted; nil where it is, and where nobody asked for it
}

// makeGroup makes the control group of the child's memory, if the child is to have one.
// In version 2 a process is in one group, so that a child in a group for its priority is
// counted there. planned is called with the group's folder before it is made.
func (p *Process) makeGroup(planned func(dir string) error) (err error) {
	if p.spec.MemoryLimit == 0 && !p.spec.CountMemory {
		return nil
	}
	if _, files, err := memoryParents(); err == nil && files.usage == memoryV2.usage && p.place.dir != "" {
		p.count = memoryCount{dir: p.place.dir, files: &files}
		return nil
	}
	p.group, err = newMemoryGroup(groupName(p.spec.Name), p.spec.MemoryLimit, planned)
	switch {
	case err == nil:
		p.count = memoryCount{dir: p.group.dir, files: &p.group.files}
	case p.spec.MemoryLimit > 0:
		return err
	default:
		p.group, p.count = nil, memoryCount{err: err}
	}
	return nil
}

// ErrNotCounted reports that counting the memory of a process was not requested.
var ErrNotCounted = errors.New("its memory is not counted by a control group")

// WorkingSet returns the bytes that a child with [Spec.CountMemory] or [Spec.MemoryLimit]
// holds, as its control group counts them: everything that the kernel charges to the
// child, including its page tables, its share of the page cache and its socket buffers,
// without the file pages that were not used lately, which the kernel can reclaim.
// Kubernetes calls this the working set and evicts by it; its value excludes sockets with
// version 1 of control groups, which counts them separately. The error says why the value
// is not known. It is of no use once the child has ended.
func (h Handle) WorkingSet() (int64, error) {
	if h.child == nil || h.child.count == (memoryCount{}) {
		return 0, ErrNotCounted
	}
	return h.child.count.workingSet(h.id.PID)
}

func (c memoryCount) workingSet(pid int) (int64, error) {
	if c.err != nil {
		return 0, c.err
	}
	members, err := os.ReadFile(filepath.Join(c.dir, "cgroup.procs"))
	if err != nil {
		return 0, fmt.Errorf("reading a control group: %w", err)
	}
	if strings.TrimSpace(string(members)) != strconv.Itoa(pid) {
		return 0, fmt.Errorf("the control group %s does not hold process %d alone", c.dir, pid)
	}
	held, err := readCount(c.dir, c.files.usage)
	if err != nil {
		return 0, err
	}
	stat, err := os.ReadFile(filepath.Join(c.dir, "memory.stat"))
	if err != nil {
		return 0, fmt.Errorf("reading a control group: %w", err)
	}
	inactive, err := statCount(string(stat), c.files.inactive)
	if err != nil {
		return 0, fmt.Errorf("reading memory.stat of %s: %w", c.dir, err)
	}
	held = max(0, held-inactive)
	if c.files.sockets != "" {
		sockets, err := readCount(c.dir, c.files.sockets)
		if err != nil {
			return 0, err
		}
		held += sockets
	}
	return held, nil
}

// readCount reads a control file that has one number.
func readCount(dir, name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0, fmt.Errorf("reading a control group: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s of %s: %w", name, dir, err)
	}
	return n, nil
}

// statCount finds the line "NAME N" of a control file.
func statCount(text, name string) (int64, error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, fmt.Errorf("it has no line %s", name)
}
