package experiment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// traced makes steps that write down what is done and taken back.
func traced(trace *[]string, name string, err error) Step {
	return Step{Name: name, Do: func(context.Context) (Undo, error) {
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
		{Name: "interrupted", Do: func(context.Context) (Undo, error) {
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
	err := RunSteps(t.Context(), []Step{{Name: "a", Do: func(context.Context) (Undo, error) {
		return func(context.Context) error { return left }, nil
	}}})
	if !errors.Is(err, left) {
		t.Errorf("error is %v, want %v", err, left)
	}
}

// What a step concludes is computed while it stands, with a time limit that is not that
// of taking down; not if the step failed.
func TestStepsConclude(t *testing.T) {
	broken := errors.New("broken")
	var trace []string
	concluding := func(name string, fails error) Step {
		s := traced(&trace, name, fails)
		s.Conclude = func(ctx context.Context) error {
			trace = append(trace, "="+name)
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) < TeardownTime {
				t.Errorf("%s has until %v", name, deadline)
			}
			return errors.New(name + " is not known")
		}
		return s
	}
	err := RunSteps(t.Context(), []Step{concluding("a", nil), traced(&trace, "b", nil), concluding("c", broken)})
	if want := []string{"a", "b", "c", "-c", "-b", "=a", "-a"}; !slices.Equal(trace, want) {
		t.Errorf("did %v, want %v", trace, want)
	}
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "a is not known") {
		t.Errorf("error is %v", err)
	}
}

// The time of the analysis is its own, and its passing leaves all of that for taking
// down; an interrupt cuts it short.
func TestTheAnalysisHasATimeLimit(t *testing.T) {
	for name, c := range map[string]struct {
		interrupt  bool
		want, left time.Duration
	}{
		"undisturbed": {false, AnalysisTime, TeardownTime},
		"interrupted": {true, interruptedAnalysis, TeardownTime - interruptedAnalysis},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var took, left time.Duration
				err := RunSteps(ctx, []Step{{
					Name: "a",
					Do: func(context.Context) (Undo, error) {
						return func(ctx context.Context) error {
							deadline, _ := ctx.Deadline()
							left = time.Until(deadline)
							return nil
						}, nil
					},
					Conclude: func(ctx context.Context) error {
						begin := time.Now()
						if c.interrupt {
							cancel()
						}
						<-ctx.Done()
						took = time.Since(begin)
						return ctx.Err()
					},
				}})
				if took != c.want || left != c.left {
					t.Errorf("the analysis had %v and taking down %v, want %v and %v", took, left, c.want, c.left)
				}
				if !errors.Is(err, ErrAnalysisTime) {
					t.Errorf("error is %v", err)
				}
			})
		})
	}
}
