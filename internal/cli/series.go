package cli

import (
	"errors"
	"fmt"

	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/scenario"
)

// shortRollouts returns the scenario of commands that do many rollouts, with shorter phases.
func shortRollouts() scenario.Scenario {
	short := scenario.Default()
	short.Phases.Baseline, short.Phases.Settle, short.Phases.Steady = seconds(2), seconds(5), seconds(5)
	short.Phases.ConvergeTimeout, short.Phases.Changes, short.Load.Probes = seconds(300), seconds(20), 0
	short.Instrument.Calibrate = false
	return short
}

// withProgress does runs and shows how they get on.
func withProgress(s streams, do func(run.Progress) error) error {
	collectOften()
	shown := newProgress(s.err)
	defer shown.close()
	return do(run.Progress{Say: shown.say, Status: shown.status, Begun: shown.begun, Ended: shown.row})
}

// runSeries does a series of rollouts whose result is in the folder out, and prints the result. It returns a nil
// result only with an error.
func runSeries[Result any](s streams, out string, do func(run.Progress) (*Result, error), show func(*Result) error) (result *Result, err error) {
	err = withProgress(s, func(p run.Progress) (err error) {
		result, err = do(p)
		return err
	})
	if result == nil {
		return nil, misused(err)
	}
	fmt.Fprintln(s.err, "result:", out)
	return result, errors.Join(err, show(result))
}
