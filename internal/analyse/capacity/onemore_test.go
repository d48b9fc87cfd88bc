package capacity

import (
	"errors"
	"math"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// pointers returns a pointer to each run.
func pointers(runs []record.Run) (all []*record.Run) {
	for i := range runs {
		all = append(all, &runs[i])
	}
	return all
}

func TestOneMorePod(t *testing.T) {
	for _, c := range []struct {
		name string
		runs []record.Run
		path string
		want error
	}{
		{"a line", strict().runs(nil, 2, 200, 400, 600, 800), steadyMemory, nil},
		{"the square", permissive().runs(nil, 2, 200, 400, 600, 800), rolloutCPU, ErrSquare},
		{"no repeats", strict().runs(nil, 1, 200, 400, 600, 800), steadyMemory, ErrRepeats},
		{"two sizes", strict().runs(nil, 3, 200, 400), steadyMemory, ErrSizes},
		{"not measured", strict().runs(nil, 2, 200, 400, 600), "controlPlane.churn.cpuSeconds", ErrSizes},
	} {
		cost, err := OneMorePod(pointers(c.runs), c.path)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if c.want == ErrSquare && (cost.Model == "" || cost.Value != 0) {
			t.Errorf("%s: %+v, want the model and no slope", c.name, cost)
		}
	}
}

// The slope is that of the plan's own model.
func TestOneMorePodIsThatOfThePlan(t *testing.T) {
	runs := strict().runs(nil, 2, 200, 400, 600, 800)
	plan, err := Make(runs, Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Figures {
		if f.Name == rolloutTime || f.Name == rolloutCPU {
			continue
		}
		cost, err := OneMorePod(pointers(runs), f.Name)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		for _, part := range f.Model {
			if part.Term == pods.name && math.Abs(part.Value-cost.Value) > 1e-9*part.Value {
				t.Errorf("%s: one more pod costs %v, in the plan %v", f.Name, cost.Value, part.Value)
			}
		}
		if cost.Model != f.model() || !(cost.Low < cost.Value && cost.Value < cost.High) {
			t.Errorf("%s: %+v, the plan's model is %s", f.Name, cost, f.model())
		}
	}
}
