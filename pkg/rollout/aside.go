package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepAside keeps scaler, and with it all that it starts but the control plane,
// off the processors that the control plane is given: they are its own, as those
// of a node of its own would be. Taking it back lets scaler run everywhere again.
func (r *rolloutRun) keepAside(context.Context) (undo, error) {
	all := processors()
	r.given = lastProcessors(all, r.spec.ControlPlaneCPUs)
	if r.given == nil {
		return nil, nil
	}
	r.others = all[:len(all)-len(r.given)]
	if err := bindThreads(r.others); err != nil {
		return nil, fmt.Errorf("keeping off the control plane's processors: %w", err)
	}
	return func(context.Context) error { return bindThreads(all) }, nil
}

// bindThreads binds every thread of this program to processors. A thread that is
// made meanwhile is bound as the one that made it, so none is missed once all
// that are there were seen.
func bindThreads(cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	for bound := map[int]bool{}; ; {
		before := len(bound)
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, task := range tasks {
			id, err := strconv.Atoi(task.Name())
			if err != nil || bound[id] {
				continue
			}
			if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("binding a thread to processors %v: %w", cpus, err)
			}
			bound[id] = true
		}
		if len(bound) == before {
			return nil
		}
	}
}
