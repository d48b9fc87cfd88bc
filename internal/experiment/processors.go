package experiment

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// BindThreads binds every thread of this program to processors. A thread that is
// made meanwhile is bound as the one that made it, so none is missed once all
// that are there were seen.
func BindThreads(cpus []int) error {
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

// Processors are those that scaler, and what it starts, may use.
func Processors() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var all []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all
}
