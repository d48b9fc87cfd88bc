package capacity

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// What one replica does for the mesh, whoever serves its sidecars, in replicated.
const (
	watchedBytes   = 30e3
	servedBytes    = 300e3
	watchedSeconds = 0.01
)

// replicated returns a run of n pods in strict mode with so many replicas. The first replica
// needs most; the sums are of all.
func replicated(n, replicas int) record.Run {
	w := strict()
	of := float64(replicas)
	each := func(n float64) float64 { return 20e6 + watchedBytes*n + servedBytes*n/of }
	w.memory = func(n float64) float64 { return each(n)*of + emptyResident*(of-1) }
	cpu := w.cpu
	w.cpu = func(n float64) float64 { return cpu(n) + watchedSeconds*n*(of-1) }
	r := w.run(n, nil)
	r.Environment.ControlPlane.Replicas = replicas
	r.Phases[0].Seconds = new(*r.Phases[0].Seconds / of) // the limiters admit so many times as many
	r.Arrival.AchievedPerSecond = new(200.0)
	if replicas == 1 {
		return r
	}
	r.ControlPlane.Baseline.MemoryBytes.Mean = new(emptyResident * of)
	r.Replicas = &record.Replicas{Each: map[string]*record.Replica{}}
	for i := range replicas {
		memory := emptyResident + each(float64(n)) - 1e6*float64(i)
		one := &record.Replica{}
		one.Usage.Baseline = &record.Usage{MemoryBytes: &record.Level{Mean: new(float64(emptyResident))}}
		one.Usage.Rollout = &record.Usage{MemoryBytes: &record.Level{Peak: &memory}}
		one.Usage.Steady = &record.Usage{MemoryBytes: &record.Level{Peak: &memory}}
		r.Replicas.Each[fmt.Sprintf("istiod-%d", i)] = one
	}
	return r
}

// ladder returns two runs of each size with each number of replicas.
func ladder(replicas ...int) []record.Run {
	var all []record.Run
	for _, n := range []int{200, 400, 600, 800} {
		for _, r := range replicas {
			all = append(all, replicated(n, r), replicated(n, r))
		}
	}
	return all
}

// Runs of one and of three replicas determine what two need, each and together, and what
// the one needs that is left of them.
func TestReplicasAreFitted(t *testing.T) {
	const n = 1600
	plan, err := Make(ladder(1, 3), Options{Pods: n, Within: 40 * time.Second, ReplicasMax: 3})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Request.Replicas != 2 {
		t.Fatalf("%d replicas, want 2: %+v", plan.Request.Replicas, plan.Request)
	}
	memory := func(replicas float64) float64 {
		return emptyResident + 20e6 + watchedBytes*n + servedBytes*n/replicas
	}
	for name, want := range map[string]float64{
		rolloutMemory: memory(2), steadyMemory: memory(2), rolloutCPU: strict().cpu(n) + watchedSeconds*n,
	} {
		if got := plan.figure(t, name).Forecast; math.Abs(got/want-1) > 1e-6 {
			t.Errorf("%s %g, want %g", name, got, want)
		}
	}
	gone := plan.States[len(plan.States)-1]
	if gone.Name != stateReplicaGone || math.Abs(gone.MemoryBytes.Forecast/memory(1)-1) > 1e-6 {
		t.Errorf("the last state is %+v, want %s with %g", gone, stateReplicaGone, memory(1))
	}
	if plan.Decides.Memory != stateReplicaGone {
		t.Errorf("memory is decided by %q, want by %q", plan.Decides.Memory, stateReplicaGone)
	}
	if text := plan.warningAbout("request.replicas", ""); text != "" {
		t.Errorf("warning %q, want none: the runs had 1 and 3 replicas", text)
	}
}

// The forecast that is compared with runs is one of as many replicas as these had.
func TestValidationIsOfTheReplicasThatWereRun(t *testing.T) {
	for most, want := range map[int]int{1: 1, 2: 1, 3: 3, 5: 3} {
		plan, err := Make(ladder(1, 3), Options{Validate: true, ReplicasMax: most})
		if err != nil {
			t.Fatal(err)
		}
		f := plan.figure(t, rolloutMemory)
		if plan.Request.Replicas != want || f.Error == nil || math.Abs(*f.Error) > 1e-6 {
			t.Errorf("--replicas-max %d: %d replicas, %+v; want %d and no error", most, plan.Request.Replicas, f, want)
		}
	}
}

// What the runs do not tell of replicas is stated, or refused.
func TestReplicasThatWereNotRun(t *testing.T) {
	hurry := Options{Pods: 1600, Within: 40 * time.Second}
	for _, c := range []struct {
		name     string
		runs     []record.Run
		most     int
		replicas int
		want     string // in the warning, or in the error where replicas is 0
	}{
		{"of one replica", ladder(1), 3, 2, "no run had several replicas"},
		{"all of three", ladder(3), 3, 3, "all runs had 3 replicas"},
		{"all of three, nothing is asked for", ladder(3), 0, 3, "all runs had 3 replicas"},
		{"all of three, two are allowed", ladder(3), 2, 0, "replicasMax: got 2, want 3 or more, as the runs have"},
		{"beyond those that were run", ladder(1, 2), 3, 3, "no run had more than 2 replicas"},
	} {
		o := hurry
		o.ReplicasMax = c.most
		if c.replicas == 3 {
			o.Within, o.Processors = 30*time.Second, 2
		}
		plan, err := Make(c.runs, o)
		switch {
		case c.replicas == 0:
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q in the error", c.name, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case plan.Request.Replicas != c.replicas || plan.warningAbout("request.replicas", c.want) == "":
			t.Errorf("%s: %d replicas, %v; want %d and a warning with %q", c.name, plan.Request.Replicas, plan.Warnings, c.replicas, c.want)
		}
	}
}

// Repeats are runs of a size with the same number of replicas.
func TestRunsOfOtherReplicasAreNoRepeats(t *testing.T) {
	var once []record.Run
	for _, n := range []int{200, 400, 800} {
		once = append(once, replicated(n, 1), replicated(n, 3))
	}
	if _, err := Make(once, Options{Pods: 1600}); err == nil || !strings.Contains(err.Error(), "every size was run once") {
		t.Errorf("of runs without repeats: %v", err)
	}
}
