package experiment

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// traced makes steps that write down what is done and taken back.
func traced(trace *[]string, name string, err error) Step {
	return Step{name, func(context.Context) (Undo, error) {
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
			err := RunSteps(t.Context(), []Step{traced(&trace, "a", nil), traced(&trace, "b", c.fails), traced(&trace, "c", nil)})
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
	err := RunSteps(ctx, []Step{
		traced(&trace, "a", nil),
		{"interrupted", func(context.Context) (Undo, error) {
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
	err := RunSteps(t.Context(), []Step{{"a", func(context.Context) (Undo, error) {
		return func(context.Context) error { return left }, nil
	}}})
	if !errors.Is(err, left) {
		t.Errorf("error is %v, want %v", err, left)
	}
}
