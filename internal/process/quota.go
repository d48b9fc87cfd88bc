package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the kernel for the period of a limit; see sched-bwc in its documentation.
const (
	minPeriod = time.Millisecond
	maxPeriod = time.Second
	// defaultPeriod is the period of a container of Kubernetes.
	defaultPeriod = 100 * time.Millisecond
)

// Quota limits the processor time of a child and its descendants. The zero value is no limit.
type Quota struct {
	Processors float64       // processor time, per time
	Period     time.Duration // over which the limit holds, from 1 ms to 1 s; 0 = 100 ms
}

// CanLimitProcessors returns the reason why children cannot be given a quota; nil if they can. It
// needs the control groups of a group with priorities, in which that of the child is made.
func (g *Group) CanLimitProcessors(q Quota) error {
	dir, err := g.levels.placement(PriorityFirst).quotaGroup("try", q, func(string) error { return nil })
	if err != nil {
		return err
	}
	return removeGroup(dir)
}

// quotaGroup makes the control group of a child with a quota, in that of its priority, and returns its
// folder. planned is called with it before it is made.
func (p placement) quotaGroup(name string, q Quota, planned func(dir string) error) (dir string, err error) {
	const doing = "limiting its processors: %w"
	if p.dir == "" {
		return "", fmt.Errorf(doing, errors.New("there are no control groups for priorities"))
	}
	dir = filepath.Join(p.dir, groupName(name))
	if err := planned(dir); err != nil {
		return "", fmt.Errorf(doing, err)
	}
	_, v1 := os.Stat(filepath.Join(p.dir, "cpu.cfs_quota_us"))
	if v1 != nil {
		enableControllers(p.dir, "cpu", "memory")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf(doing, err)
	}
	if err := q.limit(dir); err != nil {
		return "", fmt.Errorf(doing, errors.Join(err, removeGroup(dir)))
	}
	return dir, nil
}

// limit sets the limit of a control group.
func (q Quota) limit(dir string) error {
	period, quota := q.micros()
	if _, err := os.Stat(filepath.Join(dir, "cpu.cfs_quota_us")); err != nil { // version 2
		return writeControl(dir, "cpu.max", fmt.Sprintf("%d %d", quota, period))
	}
	// Each write begins a new period.
	if was, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us")); err != nil || strings.TrimSpace(string(was)) != strconv.FormatInt(period, 10) {
		if err := writeControl(dir, "cpu.cfs_period_us", strconv.FormatInt(period, 10)); err != nil {
			return err
		}
	}
	return writeControl(dir, "cpu.cfs_quota_us", strconv.FormatInt(quota, 10))
}

// ChangeQuota gives all children that have a quota, and those with one that are started from now on, another one. The kernel begins a new
// period with it.
func (g *Group) ChangeQuota(q Quota) error {
	if q.Processors <= 0 {
		return fmt.Errorf("changing quotas to %g processors: want more than 0", q.Processors)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.children {
		if p.quota == "" || p.ended() {
			continue
		}
		if err := q.limit(p.quota); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) { // its control group is removed when it ends
			return fmt.Errorf("changing the quota of %s: %w", p.spec.Name, err)
		}
	}
	g.quota = q
	return nil
}

// micros returns the period, and the processor time in it, in microseconds. The kernel takes no less
// than a millisecond of each.
func (q Quota) micros() (period, quota int64) {
	length := q.Period
	if length == 0 {
		length = defaultPeriod
	}
	length = min(max(length, minPeriod), maxPeriod)
	return length.Microseconds(), max(minPeriod.Microseconds(), int64(q.Processors*float64(length.Microseconds())))
}

// makeGroups makes the control groups of the child: that of its quota, which then takes the place of
// that of its priority, and that of its memory.
func (p *Process) makeGroups(planned func(dir string) error) (err error) {
	if p.spec.Quota.Processors > 0 {
		if p.quota, err = p.place.quotaGroup(p.spec.Name, p.spec.Quota, planned); err != nil {
			return err
		}
		p.place.dir = p.quota
	}
	if err := p.makeGroup(planned); err != nil {
		return errors.Join(err, p.removeQuota())
	}
	return nil
}

// removeQuota removes the control group of the quota after the child's processes have ended.
func (p *Process) removeQuota() error {
	if p.quota == "" {
		return nil
	}
	return removeGroup(p.quota)
}
