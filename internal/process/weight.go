package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Bounds of the kernel; see cgroup-v1/cgroups and cgroup-v2 in its documentation.
const (
	maxShares = 262144
	maxWeight = 10000
	// sharesPerWeight converts version 2's weight to version 1's shares: both
	// defaults, 100 and 1024, mean the same.
	sharesPerWeight = 10.24
)

// weightGroups are the control groups of a run: one for the whole run, and below it one
// for each priority. Scaler itself is in the group of its own priority until they are
// removed.
type weightGroups struct {
	v2               bool
	home             string // scaler's original group
	run              string
	first, own, last string
}

// plannedError reports that control groups could not be recorded before they were made.
type plannedError struct{ error }

func (e *plannedError) Unwrap() error { return e.error }

// newWeightGroups makes the control groups and moves scaler into its own.
//
// In version 1 the group of the run is made in scaler's own group, so that its limits
// also apply to the run. In version 2 a group has either processes or groups, so the
// group of the run is made next to scaler's own or further up, but not above a group that
// limits the processors of scaler.
func newWeightGroups(name string, limitsMemory bool, planned func(dirs []string) error) (*weightGroups, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mount, group, v2, err := parseCgroups(string(own), "cpu")
	if err != nil {
		return nil, err
	}
	if _, _, memoryV2, err := parseCgroups(string(own), "memory"); v2 && limitsMemory && err == nil && memoryV2 {
		return nil, errors.New("a process with a memory limit has no other control group")
	}
	base := filepath.Join(cgroupRoot, mount)
	parents := []string{group}
	if v2 {
		if parents, err = weightParents(group, func(group string) bool { return limitsProcessors(filepath.Join(base, group)) }); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, parent := range parents {
		run := filepath.Join(base, parent, name)
		w := &weightGroups{
			v2: v2, home: filepath.Join(base, group), run: run,
			first: filepath.Join(run, "first"), own: filepath.Join(run, "own"), last: filepath.Join(run, "last"),
		}
		if err := planned(w.dirs()); err != nil {
			return nil, &plannedError{err}
		}
		if err := w.make(); err != nil {
			errs = append(errs, errors.Join(err, w.remove()))
			continue
		}
		return w, nil
	}
	return nil, fmt.Errorf("making control groups with a processor weight: %w", errs[0])
}

// weightParents returns the groups of version 2 in which a group may be made that is next
// to or above this one, the nearest first. limited reports whether a group limits the
// processors of its members; such a limit must stay in force.
func weightParents(group string, limited func(group string) bool) ([]string, error) {
	if group == "/" {
		return []string{"/"}, nil // the root has processes and groups
	}
	var parents []string
	for group != "/" {
		if limited(group) {
			break
		}
		group = path.Dir(group)
		parents = append(parents, group)
	}
	if parents == nil {
		return nil, errors.New("the control group of scaler limits its processors")
	}
	return parents, nil
}

// limitsProcessors reports whether a group of version 2 limits processor time.
func limitsProcessors(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	return err == nil && !strings.HasPrefix(string(text), "max")
}

// dirs returns all of the groups' folders, parents before children.
func (w *weightGroups) dirs() []string { return []string{w.run, w.own, w.first, w.last} }

// dir returns the folder of the group of a priority.
func (w *weightGroups) dir(p Priority) string {
	switch p {
	case PriorityFirst:
		return w.first
	case PriorityLast:
		return w.last
	default:
		return w.own
	}
}

// level converts a weight to the unit of the version.
func (w *weightGroups) level(weight int) int {
	if w.v2 {
		return weight
	}
	return int(float64(weight) * sharesPerWeight)
}

func (w *weightGroups) priorities() Priorities {
	p := Priorities{Mechanism: MechanismShares, First: w.level(weightFirst), Own: w.level(weightOwn), Last: w.level(weightLast)}
	if w.v2 {
		p.Mechanism = MechanismWeight
	}
	return p
}

// make makes the groups and moves scaler. If only processes of the last level want a
// processor, their weight is a small part of the run's; because the run has the greatest
// weight, they still weigh as much as one ordinary program.
func (w *weightGroups) make() error {
	most := maxShares
	if w.v2 {
		most = maxWeight
	}
	p := w.priorities()
	for _, each := range []struct {
		dir   string
		level int
	}{{w.run, most}, {w.own, p.Own}, {w.first, p.First}, {w.last, p.Last}} {
		if err := w.makeOne(each.dir, each.level); err != nil {
			return err
		}
	}
	return writeControl(w.own, "cgroup.procs", strconv.Itoa(os.Getpid()))
}

func (w *weightGroups) makeOne(dir string, level int) error {
	file := "cpu.shares"
	if w.v2 {
		file = "cpu.weight"
		enableControllers(filepath.Dir(dir), "cpu", "memory") // memory to count it, where that is permitted
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return writeControl(dir, file, strconv.Itoa(level))
}

// moveBack moves scaler to where it came from.
func (w *weightGroups) moveBack() error {
	err := writeControl(w.home, "cgroup.procs", strconv.Itoa(os.Getpid()))
	if err != nil {
		return fmt.Errorf("leaving a control group: %w", err)
	}
	return nil
}

// remove moves scaler back and removes the groups.
func (w *weightGroups) remove() error {
	if _, err := os.Stat(w.own); err == nil {
		if err := w.moveBack(); err != nil {
			return err
		}
	}
	return removeGroups(w.dirs())
}

// removeGroups removes control groups, which are listed parents first. Those that do not
// exist are skipped.
func removeGroups(dirs []string) error {
	var errs []error
	for i := len(dirs) - 1; i >= 0; i-- {
		if _, err := os.Stat(dirs[i]); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		errs = append(errs, removeGroup(dirs[i]))
	}
	return errors.Join(errs...)
}
