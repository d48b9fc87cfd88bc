package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// stateName is the file in a group's folder that says whose it is.
const stateName = "processes.json"

func statePath(dir string) string { return filepath.Join(dir, stateName) }

// stateFile is that file's content.
type stateFile struct {
	// Boot names the boot of the machine: process ids mean nothing in another.
	Boot     string       `json:"boot"`
	Owner    identity     `json:"owner"`
	Kept     bool         `json:"kept"`
	Children []childState `json:"children"`
	// ControlGroups are the folders of those that give priorities, each after the
	// one that it is in. They may not exist yet.
	ControlGroups []string `json:"controlGroups,omitempty"`
}

// identity tells a process from a later one with the same id.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // see startTime
}

type childState struct {
	Name string `json:"name"`
	identity
	// MemoryGroup is the folder of its control group, "" if it has none.
	MemoryGroup string `json:"memoryGroup,omitempty"`
}

func newStateFile() (stateFile, error) {
	boot, err := bootID()
	if err != nil {
		return stateFile{}, err
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return stateFile{}, err
	}
	return stateFile{Boot: boot, Owner: identity{PID: os.Getpid(), Start: start}}, nil
}

// create writes the file, complete from its first instant; an error that is
// os.ErrExist says that there is one.
func (s stateFile) create(dir string) error {
	temporary, err := s.write(dir)
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	return os.Link(temporary, statePath(dir))
}

// save replaces the file.
func (s stateFile) save(dir string) error {
	temporary, err := s.write(dir)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, statePath(dir)); err != nil {
		os.Remove(temporary)
		return err
	}
	return nil
}

func (s stateFile) write(dir string) (temporary string, err error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, stateName+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// State is a group as seen from outside, at one moment.
type State struct {
	Dir        string // the group's folder
	Owner      int    // process id of the program that opened it; 0: it gave it up
	OwnerAlive bool
	Kept       bool // its children are meant to outlive the owner
	Children   []Child

	controlGroups []string
}

// Child is one child of a group, in order of start.
type Child struct {
	Name  string
	PID   int
	Alive bool

	memoryGroup string
}

// Inspect reads the state of the group in dir; the error is fs.ErrNotExist
// where there is none.
func Inspect(dir string) (State, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return State{}, fmt.Errorf("inspecting process group: %w", err)
	}
	data, err := os.ReadFile(statePath(dir))
	if err != nil {
		return State{}, fmt.Errorf("inspecting process group: %w", err)
	}
	var file stateFile
	if err := json.Unmarshal(data, &file); err != nil {
		return State{}, fmt.Errorf("inspecting process group %s: %w", statePath(dir), err)
	}
	boot, err := bootID()
	if err != nil {
		return State{}, fmt.Errorf("inspecting process group: %w", err)
	}
	alive := func(i identity) bool { return boot == file.Boot && i.alive() }
	s := State{Dir: dir, Owner: file.Owner.PID, OwnerAlive: alive(file.Owner), Kept: file.Kept, controlGroups: file.ControlGroups}
	for _, c := range file.Children {
		s.Children = append(s.Children, Child{Name: c.Name, PID: c.PID, Alive: alive(c.identity), memoryGroup: c.MemoryGroup})
	}
	return s, nil
}

// Orphans finds the groups in root and the folders below it whose owner is
// dead and that were not meant to be kept. A root that does not exist has none.
// Groups that cannot be read are errors; the others are returned all the same.
func Orphans(root string) ([]State, error) {
	var orphans []State
	var errs []error
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // else removed while we looked
				errs = append(errs, err)
			}
			return nil
		}
		if !d.IsDir() {
			return nil
		}
		s, err := Inspect(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			errs = append(errs, err)
		case !s.OwnerAlive && !s.Kept:
			orphans = append(orphans, s)
		}
		return fs.SkipDir
	})
	return orphans, errors.Join(append(errs, err)...)
}

// Remove ends the group's processes, the last started first, with SIGTERM and
// after the usual grace, or when ctx is done, with SIGKILL; then it deletes
// the folder. Processes are known by their environment, so none is missed that
// was started just before its owner died, and none is taken for another that
// has its id now. A group whose owner lives is not changed, with an error.
func (s State) Remove(ctx context.Context) error {
	now, err := Inspect(s.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // another process was faster
	case err != nil:
		return err
	case now.OwnerAlive:
		return fmt.Errorf("removing process group %s: in use by process %d", s.Dir, now.Owner)
	}
	for {
		members, err := members(s.Dir)
		if err != nil {
			return fmt.Errorf("removing process group %s: %w", s.Dir, err)
		}
		if len(members) == 0 {
			break
		}
		slices.SortStableFunc(members, byStartOrder(now.Children))
		for _, m := range members {
			if err := m.stop(ctx, defaultGrace); err != nil {
				return fmt.Errorf("removing process group %s: %w", s.Dir, err)
			}
		}
	}
	if err := awaitEnd(s.Dir); err != nil {
		return fmt.Errorf("removing process group %s: %w", s.Dir, err)
	}
	for _, child := range now.Children {
		if child.memoryGroup != "" {
			if err := removeGroup(child.memoryGroup); err != nil {
				return fmt.Errorf("removing process group %s: %w", s.Dir, err)
			}
		}
	}
	if err := removeGroups(now.controlGroups); err != nil {
		return fmt.Errorf("removing process group %s: %w", s.Dir, err)
	}
	if err := os.RemoveAll(s.Dir); err != nil {
		return fmt.Errorf("removing process group: %w", err)
	}
	return nil
}

// awaitEnd waits for children that are ending: their environment goes first,
// their ports and files a little later. A child that does not end is one that
// this user may not look at, and so not stop.
func awaitEnd(dir string) error {
	deadline := time.NewTimer(defaultGrace)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		now, err := Inspect(dir)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(now.Children, func(c Child) bool { return c.Alive })
		if i < 0 {
			return nil
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			return fmt.Errorf("%s (process %d) cannot be stopped; is it another user's?", now.Children[i].Name, now.Children[i].PID)
		}
	}
}

// byStartOrder sorts the last started child first, and processes that are no
// children of the owner before all.
func byStartOrder(children []Child) func(a, b *member) int {
	position := func(m *member) int {
		i := slices.IndexFunc(children, func(c Child) bool { return c.PID == m.PID })
		if i < 0 {
			return len(children)
		}
		return i
	}
	return func(a, b *member) int { return position(b) - position(a) }
}
