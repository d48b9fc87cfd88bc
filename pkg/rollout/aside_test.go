package rollout

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
)

// Every thread is bound while the control plane has processors of its own, and
// free again afterwards.
func TestKeepAside(t *testing.T) {
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
	r := &rolloutRun{spec: RolloutSpec{ControlPlaneCPUs: 1}, record: record.Run{}}
	undo, err := r.keepAside(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bound(), all[:len(all)-1]; !slices.Equal(got, want) || !slices.Equal(r.others, want) || !slices.Equal(r.given, all[len(all)-1:]) {
		t.Errorf("threads are on %v, scaler on %v, the control plane on %v, want %v apart from the last", got, r.others, r.given, want)
	}
	if err := undo(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := bound(); !slices.Equal(got, all) {
		t.Errorf("afterwards threads are on %v, want %v", got, all)
	}
	r = &rolloutRun{}
	if undo, err := r.keepAside(context.Background()); err != nil || undo != nil || r.others != nil {
		t.Errorf("without processors of its own: %v, %v", r.others, err)
	}
}
