package cli

import (
	"errors"
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/run"
)

// shortRollouts are the flags of a rollout with shorter phases, for commands that do many of them:
// limits and tune.
func shortRollouts() rolloutOptions {
	spec := run.DefaultSpec()
	spec.Baseline, spec.Settle, spec.Steady = 2*time.Second, 5*time.Second, 5*time.Second
	spec.ConvergeTimeout, spec.ChangeDuration, spec.Probes = 5*time.Minute, 20*time.Second, 0
	return rolloutOptions{ladder: run.Ladder{Spec: spec}}
}

// runSeries does a series of rollouts whose result is in the folder out, shows its progress and
// prints the result. It returns a nil result only with an error.
func runSeries[Result any](s streams, out string, do func(run.Progress) (*Result, error), show func(*Result) error) (*Result, error) {
	collectOften()
	shown := newProgress(s.err)
	defer shown.close()
	result, err := do(run.Progress{Say: shown.say, Status: shown.status})
	shown.close()
	if result == nil {
		return nil, err
	}
	fmt.Fprintln(s.err, "result:", out)
	return result, errors.Join(err, show(result))
}
