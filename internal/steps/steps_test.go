package steps

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
			err := Run(t.Context(), []Step{traced(&trace, "a", nil), traced(&trace, "b", c.fails), traced(&trace, "c", nil)})
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
	err := Run(ctx, []Step{
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
	err := Run(t.Context(), []Step{{Name: "a", Do: func(context.Context) (Undo, error) {
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
	err := Run(t.Context(), []Step{concluding("a", nil), traced(&trace, "b", nil), concluding("c", broken)})
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
				err := Run(ctx, []Step{{
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

// What is reserved for an undo it has, whatever those before it and the analysis take;
// what it leaves is for the next.
func TestUndosHaveWhatIsReservedForThem(t *testing.T) {
	const reserve = 20 * time.Second
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		had := map[string]time.Duration{}
		stubborn := func(name string) func(context.Context) (Undo, error) {
			return func(context.Context) (Undo, error) {
				return func(ctx context.Context) error {
					deadline, _ := ctx.Deadline()
					had[name] = time.Until(deadline)
					if name == "quick" {
						return nil
					}
					<-ctx.Done()
					return nil
				}, nil
			}
		}
		err := Run(ctx, []Step{
			{Name: "last", Do: stubborn("last")},
			{Name: "quick", Do: stubborn("quick"), Reserve: reserve},
			{Name: "reserved", Do: stubborn("reserved"), Reserve: reserve},
			{Name: "analysed", Do: stubborn("analysed"), Conclude: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}},
			{Name: "first", Do: stubborn("first")},
			{Name: "interrupted", Do: func(context.Context) (Undo, error) { cancel(); return nil, nil }},
		})
		if !errors.Is(err, ErrAnalysisTime) {
			t.Errorf("error is %v", err)
		}
		want := map[string]time.Duration{"first": TeardownTime - 2*reserve, "analysed": 0, "reserved": reserve, "quick": reserve, "last": reserve}
		for name, want := range want {
			if had[name] != want {
				t.Errorf("%s had %v, want %v", name, had[name], want)
			}
		}
	})
}
