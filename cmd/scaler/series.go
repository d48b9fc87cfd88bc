package main

import (
	"errors"
	"fmt"
	"time"

	"scaler.mesh/scaler/pkg/rollout"
)

// shortRollouts are the flags of a rollout with shorter phases, for commands that do many of them:
// limits and tune.
func shortRollouts() rolloutOptions {
	spec := rollout.DefaultSpec()
	spec.Baseline, spec.Settle, spec.Steady = 2*time.Second, 5*time.Second, 5*time.Second
	spec.ConvergeTimeout, spec.ChangeDuration, spec.Probes = 5*time.Minute, 20*time.Second, 0
	return rolloutOptions{ladder: rollout.Ladder{Spec: spec}}
}

// runSeries does a series of rollouts whose result is in the folder out, shows its progress and
// prints the result. It returns a nil result only with an error.
func runSeries[Result any](s streams, out string, run func(rollout.Progress) (*Result, error), show func(*Result) error) (*Result, error) {
	collectOften()
	shown := newProgress(s.err)
	defer shown.close()
	result, err := run(rollout.Progress{Say: shown.say, Status: shown.status})
	shown.close()
	if result == nil {
		return nil, err
	}
	fmt.Fprintln(s.err, "result:", out)
	return result, errors.Join(err, show(result))
}
