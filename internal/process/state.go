package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// State is the state of a group at one moment, as seen from outside.
type State struct {
	Dir        string // the group's folder
	Owner      int    // process id of the program that opened it; 0: it gave it up
	OwnerAlive bool   // it holds its lock, wherever it runs
	Kept       bool   // its children are meant to outlive the owner
	Children   []Child

	file    stateFile
	remnant bool // see remnant.go; nothing else is known of it
}

// Child is one child of a group, in order of start.
type Child struct {
	Name string
	PID  int
	// Alive is also false for a process that is not visible from here: in another process
	// id namespace or on another machine.
	Alive bool

	controlGroups []string // of its memory, and of its quota
}

// Inspect reads the state of the group in dir. The error is fs.ErrNotExist if there is
// none, and a [ForeignError] if the folder was not made by this user with this version of
// the file.
func Inspect(dir string) (State, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return State{}, fmt.Errorf("inspecting process group: %w", err)
	}
	s, err := inspect(dir)
	if err != nil {
		return State{}, fmt.Errorf("inspecting process group: %w", err)
	}
	return s, nil
}

func inspect(dir string) (State, error) {
	file, err := readState(dir)
	if err != nil {
		return State{}, err
	}
	owned, err := ownerHolds(dir, file)
	if err != nil {
		return State{}, err
	}
	at, err := here()
	if err != nil {
		return State{}, err
	}
	s := State{Dir: dir, Owner: file.Owner.PID, OwnerAlive: owned, Kept: file.Kept, file: file}
	for _, c := range file.Children {
		alive := at.sameIDs(file.location) && c.alive()
		child := Child{Name: c.Name, PID: c.PID, Alive: alive}
		for _, dir := range []string{c.MemoryGroup, c.QuotaGroup} {
			if dir != "" {
				child.controlGroups = append(child.controlGroups, dir)
			}
		}
		s.Children = append(s.Children, child)
	}
	return s, nil
}

// ownerHolds reports whether the owner of a group lives. The lock decides that, not a
// process id, which may belong to another process here.
func ownerHolds(dir string, file stateFile) (bool, error) {
	var stat unix.Stat_t
	err := unix.Lstat(filepath.Join(dir, ownerLock), &stat)
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Lstat(statePath(dir)); errors.Is(gone, fs.ErrNotExist) {
			return false, gone // another process removed it meanwhile
		}
		return false, &ForeignError{dir, "it has no " + ownerLock}
	} else if err != nil {
		return false, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Ino != file.Lock {
		return false, &ForeignError{dir, "it is a copy of a process group: its " + ownerLock + " is another file"}
	}
	return held(dir, ownerLock)
}

// Orphans finds the groups in root and the folders below it whose owner is dead and that
// were not meant to be kept. A root that does not exist has none. Groups that cannot be
// read, and folders that are not groups of this user and version, are reported as errors;
// the others are returned nevertheless.
func Orphans(root string) ([]State, error) {
	// A root may be a symbolic link, which WalkDir would not follow.
	resolved, err := filepath.EvalSymlinks(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("looking for process groups: %w", err)
	}
	var orphans []State
	var errs []error
	err = filepath.WalkDir(resolved, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // else removed while we looked
				errs = append(errs, err)
			}
			return nil
		}
		if !d.IsDir() && d.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		s, err := Inspect(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if d.IsDir() && isRemnantFolder(resolved, path) {
				orphans = append(orphans, State{Dir: path, remnant: true})
				return fs.SkipDir
			}
			return nil
		case err != nil:
			errs = append(errs, err)
		case !s.OwnerAlive && !s.Kept:
			orphans = append(orphans, s)
		}
		if !d.IsDir() {
			return nil // SkipDir would skip the rest of the same folder
		}
		return fs.SkipDir
	})
	return orphans, errors.Join(append(errs, err)...)
}

// Remove ends the group's processes, the last started first, with SIGTERM and then, after
// the usual grace or when ctx is done, with SIGKILL; then it deletes the folder.
// Processes are identified by the group's random id in their environment and by their
// user, so that none is missed that was started just before its owner died, and no other
// process that has its id now is ended. If it is called several times at once, in any
// processes, one call does the work, and the others wait for it. It returns an error, and
// changes nothing, if the group's owner lives or its processes are not visible from here.
func (s State) Remove(ctx context.Context) error {
	if s.remnant {
		return removeRemnant(s.Dir)
	}
	if _, err := s.now(); errors.Is(err, fs.ErrNotExist) {
		return nil // another process was faster
	} else if err != nil {
		return err
	}
	removing, err := awaitLock(ctx.Done(), s.Dir, removalLock, unix.LOCK_EX, os.O_CREATE, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errHeld):
		return fmt.Errorf("removing process group %s: waiting for another removal: %w", s.Dir, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("removing process group %s: %w", s.Dir, err)
	}
	defer removing.release()
	now, err := s.now()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	// A shared lock, so that others can see that no owner lives, and none can begin.
	owner, err := takeLock(s.Dir, ownerLock, unix.LOCK_SH, 0)
	if errors.Is(err, errHeld) {
		return inUse("removing", now)
	} else if err != nil {
		return fmt.Errorf("removing process group %s: %w", s.Dir, err)
	}
	defer owner.release()
	if err := now.remove(ctx); err != nil {
		return fmt.Errorf("removing process group %s: %w", s.Dir, err)
	}
	return nil
}

// now returns the current state of the group if it may be removed, else an error.
func (s State) now() (State, error) {
	now, err := Inspect(s.Dir)
	if err != nil {
		return State{}, err
	}
	if now.file.ID != s.file.ID {
		return State{}, fs.ErrNotExist // another group has its folder
	}
	if now.OwnerAlive {
		return State{}, inUse("removing", now)
	}
	at, err := here()
	if err != nil {
		return State{}, err
	}
	if origin := now.file.location; !at.sees(origin) {
		return State{}, fmt.Errorf("removing process group %s: its processes ran on %s (process ids of %s), where they cannot be seen from here: remove it there, or delete the folder if that is gone", s.Dir, origin.Host, origin.Namespace)
	}
	return now, nil
}

func inUse(doing string, s State) error {
	at, err := here()
	if err == nil && !at.sameIDs(s.file.location) {
		return fmt.Errorf("%s process group %s: in use by process %d of %s", doing, s.Dir, s.Owner, s.file.Host)
	}
	return fmt.Errorf("%s process group %s: in use by process %d", doing, s.Dir, s.Owner)
}

// remove does the work of Remove. The caller has the locks.
func (s State) remove(ctx context.Context) error {
	for {
		members, err := members(s.file)
		if err != nil {
			return err
		}
		if len(members) == 0 {
			break
		}
		slices.SortStableFunc(members, byStartOrder(s.Children))
		if err := stopAll(ctx, members); err != nil {
			return err
		}
	}
	if err := awaitEnd(s.Dir); err != nil {
		return err
	}
	for _, child := range s.Children {
		for _, dir := range child.controlGroups {
			if err := removeGroup(dir); err != nil {
				return err
			}
		}
	}
	if err := removeGroups(s.file.ControlGroups); err != nil {
		return err
	}
	return deleteFolder(s.Dir)
}

func stopAll(ctx context.Context, members []*member) error {
	var errs []error
	for _, m := range members {
		if len(errs) == 0 {
			if err := m.stop(ctx, defaultGrace); err != nil {
				errs = append(errs, err)
			}
		}
		m.close()
	}
	return errors.Join(errs...)
}

// deleteFolder deletes a group's folder. The files that identify it as a group are
// deleted last, so that a killed removal can be repeated.
func deleteFolder(dir string) error {
	last := []string{stateName, ownerLock, removalLock}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(last, e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for _, name := range last {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// Another process that waits for the lock may recreate its file meanwhile.
	for range removeTries {
		if err = os.RemoveAll(dir); !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
	}
	return err
}

const removeTries = 100

// awaitEnd waits for children that are ending: their environment disappears first, their
// ports and files a little later. A child that does not end is one that this user may not
// inspect, and therefore not stop.
func awaitEnd(dir string) error {
	deadline := time.NewTimer(defaultGrace)
	defer deadline.Stop()
	poll := time.NewTicker(lockPoll)
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

// byStartOrder sorts the last started child first, and processes that are not children of
// the owner before all.
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
