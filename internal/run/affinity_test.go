package run

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/experiment"
)

// Every thread is bound while the control plane has processors of its own, and
// free again afterwards.
func TestReserve(t *testing.T) {
	all := experiment.Processors()
	if len(all) < 2 {
		t.Skip("there is one processor")
	}
	bound := func() (cpus []int) {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			id, _ := strconv.Atoi(task.Name())
			var set unix.CPUSet
			if unix.SchedGetaffinity(id, &set) != nil {
				continue // it has ended
			}
			for _, cpu := range all {
				if set.IsSet(cpu) && !slices.Contains(cpus, cpu) {
					cpus = append(cpus, cpu)
				}
			}
		}
		slices.Sort(cpus)
		return cpus
	}
	a, err := reserve(all, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bound(), all[:len(all)-1]; !slices.Equal(got, want) || !slices.Equal(a.others, want) || !slices.Equal(a.given, all[len(all)-1:]) {
		t.Errorf("threads are on %v, scaler on %v, the control plane on %v, want %v and the last", got, a.others, a.given, want)
	}
	if err := experiment.BindThreads(all); err != nil {
		t.Fatal(err)
	}
	if got := bound(); !slices.Equal(got, all) {
		t.Errorf("afterwards threads are on %v, want %v", got, all)
	}
	if a, err := reserve(all, 0); err != nil || a.others != nil || a.given != nil {
		t.Errorf("without processors of its own: %+v, %v", a, err)
	}
}
