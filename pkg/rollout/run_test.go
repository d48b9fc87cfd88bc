package rollout

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// traced makes steps that write down what is done and taken back.
func traced(trace *[]string, name string, err error) step {
	return step{name, func(context.Context) (undo, error) {
		*trace = append(*trace, name)
		return func(ctx context.Context) error {
			*trace = append(*trace, "-"+name)
			return ctx.Err()
		}, err
	}}
}

func TestStepsAreTakenBackInReverse(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		fails error
		want  []string
	}{
		"all done":   {nil, []string{"a", "b", "c", "-c", "-b", "-a"}},
		"the second": {broken, []string{"a", "b", "-b", "-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var trace []string
			err := runSteps(t.Context(), []step{traced(&trace, "a", nil), traced(&trace, "b", c.fails), traced(&trace, "c", nil)})
			if !errors.Is(err, c.fails) {
				t.Errorf("error is %v, want %v", err, c.fails)
			}
			if !slices.Equal(trace, c.want) {
				t.Errorf("did %v, want %v", trace, c.want)
			}
		})
	}
}

func TestStepsAreTakenBackAfterAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var trace []string
	err := runSteps(ctx, []step{
		traced(&trace, "a", nil),
		{"interrupted", func(context.Context) (undo, error) {
			cancel()
			return nil, errors.New("what came of the interrupt")
		}},
		traced(&trace, "b", nil),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the interrupt", err)
	}
	if want := []string{"a", "-a"}; !slices.Equal(trace, want) {
		t.Errorf("did %v, want %v", trace, want)
	}
}

func TestTakingBackReportsItsOwnErrors(t *testing.T) {
	left := errors.New("left behind")
	err := runSteps(t.Context(), []step{{"a", func(context.Context) (undo, error) {
		return func(context.Context) error { return left }, nil
	}}})
	if !errors.Is(err, left) {
		t.Errorf("error is %v, want %v", err, left)
	}
}

func TestBinding(t *testing.T) {
	for _, c := range []struct {
		sidecars int
		seconds  float64
		binds    bool
	}{
		{100, 0.5, false},  // within the burst
		{400, 3.1, true},   // (400-160)/80 = 3 s
		{400, 10, false},   // much longer than the limit explains
		{1600, 18.1, true}, // 18 s
	} {
		if got := binding(c.sidecars, c.seconds); (got != "") != c.binds {
			t.Errorf("binding(%d, %g) is %q", c.sidecars, c.seconds, got)
		}
	}
}
