package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
)

// defaultGrace is long enough for an API server without clients to end its watches and
// for Prometheus to write its head block.
const defaultGrace = 10 * time.Second

// GroupOptions configure a group.
type GroupOptions struct {
	// Keep lets children outlive this program. If this program ends before
	// [Group.MarkKept], they are orphans that [Orphans] finds. False: the kernel kills
	// them when this program ends.
	Keep bool
	// Grace is the time from SIGTERM to SIGKILL for each child; 0 means 10 s.
	Grace time.Duration
	// Prioritize gives children with [PriorityFirst] precedence over scaler, and scaler
	// precedence over those with [PriorityLast], when they compete for processors: by
	// control groups of this group where that is permitted, which scaler joins until it
	// stops the group, and by niceness otherwise. A program can have one such group at a
	// time. False: all have the same priority.
	Prioritize bool
	// LimitsMemory reports that a child will have a MemoryLimit, which rules out
	// priorities by control groups of version 2.
	LimitsMemory bool
}

// Group is the set of children of one run or cluster. Its methods may be
// called by several goroutines.
type Group struct {
	dir    string
	opts   GroupOptions
	levels *levels // nil without Prioritize

	mu       sync.Mutex
	owner    *lock // of the folder, until MarkKept or Stop
	state    stateFile
	children []*Process // in order of start
	quota    Quota      // that ChangeQuota set; zero = as their Spec states
	stopped  bool
}

// OpenGroup makes a group that owns the folder dir, which is created if missing,
// accessible only for this user. The whole folder belongs to the group: cleaning up after
// a killed owner deletes it with everything in it, so records must not be written there,
// and a folder that is not empty is refused. If the folder belongs to a group already,
// the error says to whose.
//
// Until the group is stopped or kept, this process holds a lock in the folder, which
// shows others that it lives.
func OpenGroup(dir string, opts GroupOptions) (*Group, error) {
	if opts.Grace == 0 {
		opts.Grace = defaultGrace
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening process group: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening process group: %w", err)
	}
	// Processes that outlive their parent become children of this program.
	if err := linux.AdoptOrphans(); err != nil {
		return nil, fmt.Errorf("opening process group: becoming the parent of what escapes: %w", err)
	}
	g := &Group{dir: dir, opts: opts}
	if _, err := readState(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, taken(dir)
	}
	if err := checkEmpty(dir); err != nil {
		return nil, fmt.Errorf("opening process group %s: %w", dir, err)
	}
	g.owner, err = ownFolder(dir)
	if errors.Is(err, errHeld) {
		return nil, taken(dir)
	} else if err != nil {
		return nil, fmt.Errorf("opening process group %s: %w", dir, err)
	}
	if err := g.begin(); err != nil {
		g.owner.release()
		return nil, err
	}
	return g, nil
}

// ownFolder makes a folder and takes its lock. Until it has the lock, a cleanup may
// mistake the folder for a remnant.
func ownFolder(dir string) (l *lock, err error) {
	for range removeTries {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		l, err = awaitLock(nil, dir, ownerLock, unix.LOCK_EX, os.O_CREATE, ownerLockTime)
		if !errors.Is(err, fs.ErrNotExist) {
			return l, err
		}
	}
	return nil, err
}

// plan records control groups before they are made, so that a cleanup finds them.
func (g *Group) plan(dirs []string) error {
	g.state.ControlGroups = dirs
	return g.save()
}

// Priorities returns how children are prioritized; the zero value without
// [GroupOptions.Prioritize].
func (g *Group) Priorities() Priorities {
	if g.levels == nil {
		return Priorities{}
	}
	return g.levels.Priorities
}

// begin marks the locked folder as the group's.
func (g *Group) begin() (err error) {
	if _, err := os.Lstat(statePath(g.dir)); err == nil {
		g.owner.release() // or this process would seem to be its owner
		return taken(g.dir)
	}
	if err := checkEmpty(g.dir); err != nil {
		return fmt.Errorf("opening process group %s: %w", g.dir, err)
	}
	if err = os.Chmod(g.dir, 0o700); err == nil {
		if g.state, err = newStateFile(g.owner); err == nil {
			err = g.save()
		}
	}
	if err == nil && g.opts.Prioritize {
		if g.levels, err = newLevels(groupName("run"), g.opts.LimitsMemory, g.plan); err != nil {
			err = errors.Join(err, os.Remove(statePath(g.dir)))
		}
	}
	if err != nil {
		return fmt.Errorf("opening process group %s: %w", g.dir, err)
	}
	return nil
}

// checkEmpty returns an error that names anything in a folder except the locks of an
// earlier group.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isRemnant(e.Name()) {
			return fmt.Errorf("the folder holds %s, which no process group made that still is one: delete or move it", e.Name())
		}
	}
	return nil
}

// taken returns the error for a folder in use. It names the process that uses it and the
// remedy.
func taken(dir string) error {
	s, err := Inspect(dir)
	switch {
	case err != nil:
		return fmt.Errorf("opening process group %s: in use: %w", dir, err)
	case s.OwnerAlive:
		return inUse("opening", s)
	case s.Kept:
		return fmt.Errorf("opening process group %s: kept by an earlier command; scaler cluster down ends it", dir)
	default:
		return fmt.Errorf("opening process group %s: left by process %d, which was killed; scaler cleanup removes it", dir, s.Owner)
	}
}

// Dir returns the group's folder as an absolute path.
func (g *Group) Dir() string { return g.dir }

// Start starts a child in its own process group and returns when the program was
// executed; use [WaitReady] to wait for readiness. A child's name may be reused after the
// previous one has ended; the new child takes its place in the order in which all are
// stopped.
func (g *Group) Start(spec Spec) (*Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return nil, fmt.Errorf("starting %s: its process group %s was stopped", spec.Name, g.dir)
	}
	place := len(g.children)
	for i, p := range g.children {
		if p.spec.Name != spec.Name {
			continue
		}
		if !p.ended() {
			return nil, fmt.Errorf("starting %s: it runs already, as process %d", spec.Name, p.pid)
		}
		place = i
	}
	if spec.Quota.Processors > 0 && g.quota.Processors > 0 {
		spec.Quota = g.quota
	}
	marker := []string{markerName + "=" + g.state.ID, folderName + "=" + g.dir}
	weights := g.state.ControlGroups
	planned := slices.Clip(weights)
	p, err := start(spec, marker, !g.opts.Keep, g.opts.Grace, g.levels.placement(spec.Priority), func(dir string) error {
		planned = append(planned, dir)
		return g.plan(planned)
	})
	g.state.ControlGroups = weights // the child's state has its groups from now on
	if err != nil {
		return nil, err
	}
	child := childState{Name: spec.Name, identity: identity{PID: p.pid, Start: p.start}, QuotaGroup: p.quota}
	if p.group != nil {
		child.MemoryGroup = p.group.dir
	}
	if place < len(g.children) {
		g.children[place], g.state.Children[place] = p, child
	} else {
		g.children, g.state.Children = append(g.children, p), append(g.state.Children, child)
	}
	if err := g.save(); err != nil {
		p.Kill()
		<-p.Done()
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// MarkKept records that the children are to outlive this program, and releases ownership:
// they are not orphans, and [State.Remove] may end them from now on. It returns an error
// in a group without Keep.
func (g *Group) MarkKept() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.opts.Keep {
		return fmt.Errorf("keeping process group %s: it was opened without Keep", g.dir)
	}
	// Children that were stopped on purpose, such as a recorder that has finished, are
	// not among those kept.
	var kept []childState
	for i, p := range g.children {
		if !p.ended() || !p.asked.Load() {
			kept = append(kept, g.state.Children[i])
		}
	}
	g.state.Children = kept
	g.state.Kept, g.state.Owner = true, identity{}
	if err := errors.Join(g.levels.abandon(), g.save()); err != nil {
		return fmt.Errorf("keeping process group %s: %w", g.dir, err)
	}
	g.owner.release()
	return nil
}

// Stop stops the children one after another, the last started first, each as
// [Process.Stop] does, and closes the group: nothing more can be started, and the folder,
// which remains, may be deleted or reused. It returns when all children have been reaped.
// If ctx is done it kills at once; further calls do nothing.
func (g *Group) Stop(ctx context.Context) error {
	return g.close(ctx, func() error {
		for _, name := range []string{stateName, ownerLock} {
			if err := os.Remove(filepath.Join(g.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("closing process group: %w", err)
			}
		}
		return nil
	})
}

// Remove stops the children as [Group.Stop] does and deletes the folder. After
// [Group.MarkKept] it must not be called.
func (g *Group) Remove(ctx context.Context) error {
	err := g.close(ctx, func() error {
		if err := deleteFolder(g.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("removing process group %s: %w", g.dir, err)
	}
	if _, err := readState(g.dir); !errors.Is(err, fs.ErrNotExist) {
		return nil // another group has the folder now
	}
	// It was stopped before.
	if err := os.RemoveAll(g.dir); err != nil {
		return fmt.Errorf("removing process group: %w", err)
	}
	return nil
}

// close stops the children and, while the folder is still locked, calls end to release
// it.
func (g *Group) close(ctx context.Context, end func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return nil
	}
	var errs []error
	for _, p := range slices.Backward(g.children) {
		errs = append(errs, p.Stop(ctx))
	}
	errs = append(errs, g.collect())
	if err := errors.Join(append(errs, g.levels.leave())...); err != nil {
		return err // the state file stays, for a cleanup to find
	}
	g.stopped = true
	defer g.owner.release()
	return end()
}

// collect ends the descendants of children and the processes that left their process
// groups, as daemons do. The kernel has made them children of this program.
func (g *Group) collect() error {
	for _, p := range g.children {
		reap(-p.pid)
	}
	for {
		found, err := members(g.state)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, m := range found {
			err = errors.Join(err, m.kill())
			m.close()
		}
		if err != nil {
			return err
		}
	}
}
