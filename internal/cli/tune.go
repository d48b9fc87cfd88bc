package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series/sweep"
	"scaler.mesh/scaler/pkg/scenario"
)

// tuneRepeats is the number of runs of each value without --repeats.
const tuneRepeats = 5

type tuneOptions struct {
	rolloutOptions
	settings []string
	slo      string
	goal     string
	all      bool
}

func newTuneCommand(s streams) *cobra.Command {
	var o tuneOptions
	cmd := &cobra.Command{
		Use:   "tune --setting NAME=VALUE,VALUE",
		Short: "Try values of the control plane's settings, interleaved, and recommend one if it helps",
		Long: `Tune runs the same rollouts with several values of settings of the control plane, in
turn with the preset, in which no setting is varied. It compares each value with
the preset: CPU time, memory, the latency of pushes and of the complete
configuration, each with a 95% interval and a test, corrected for the number of
all figures and values. The number of runs and their duration are printed first.

A setting is a variable of the control plane's environment. One setting at a time
is varied, starting from the preset: this needs one run for each value and repeat, and
shows the effect of each setting alone. --all-combinations tries every combination,
which also shows effects that settings have only together, and needs many more runs.

A value is recommended if some figure is established to be better, and every other
is shown not to become worse by more than its margin: 10 % for processor time,
memory and the length of the rollout, 25 % for latencies. If harm is neither
established nor excluded there is no recommendation, and the exit code is 4. With
--goal one figure must become better, and the answer states which figures become, or may
become, worse. With
--slo only values that meet the objective in every run are considered; if the
preset misses it, the objective's figure is the goal. Otherwise there is no
significant gain.

A setting whose name is not in the control plane's program is refused; so is a
value that the control plane rejects, with that line of its log.

Changes of endpoints are made at 5/s unless --change says otherwise. The scenario is
that of 'scaler rollout'. Each run has a record below --out, in a folder for each value, which 'scaler compare' reads again. tune.json there is the
result, written after each run. The same command with the same --out resumes a
tuning that was interrupted; with more --repeats it adds to it. The exit code is
0 if a value is recommended or none gains, 3 if no value meets the objective, and
4 if there were too few runs to tell, or harm is not excluded.`,
		Example: `  # two settings, one at a time: (1 + 3 + 3) x 5 runs
  scaler tune --setting PILOT_PUSH_THROTTLE=20,50,100 \
    --setting PILOT_DEBOUNCE_AFTER=50ms,100ms,500ms --pods 200 --slo 'push.p99<2s'

  # the value with the least CPU time of the rollout
  scaler tune --setting PILOT_DEBOUNCE_MAX=1s,10s --goal rollout.cpuSeconds --pods 400`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	defaults := shortRollouts()
	defaults.Repeats = tuneRepeats
	o.addFlags(cmd, s, scenario.Tune, defaults)
	f := cmd.Flags()
	f.StringArrayVar(&o.settings, "setting", nil, "variable of the control plane's environment and the values to try, `NAME=VALUE,VALUE`, repeatable")
	f.StringVar(&o.slo, "slo", "", "the `OBJECTIVE` that a recommended value must meet in every run, as in 'push.p99<2s'")
	f.StringVar(&o.goal, "goal", "", "the `FIGURE` that is to become better, as in rollout.cpuSeconds, even if others become worse")
	f.BoolVar(&o.all, "all-combinations", false, "try every combination of the values, not one setting at a time")
	return cmd
}

func (o *tuneOptions) run(cmd *cobra.Command, s streams) error {
	options, settings, done, err := o.options(cmd, s)
	if err != nil || done {
		return err
	}
	if err := checkKnown(cmd.Context(), s, options, settings); err != nil {
		return err
	}
	return runSweep(cmd, s, options, o.output)
}

// options checks every flag before anything is started. done is true if the scenario was to be
// printed, and was.
func (o *tuneOptions) options(cmd *cobra.Command, s streams) (options sweep.Options, settings []sweep.Setting, done bool, err error) {
	fail := func(err error) (sweep.Options, []sweep.Setting, bool, error) {
		return sweep.Options{}, nil, false, usageError{err}
	}
	spec, done, err := o.oneSpec(cmd, s, func(d *scenario.Document) error {
		// Of an address none can be made.
		if !d.Given("load.changes") && !strings.Contains(d.Scenario.ControlPlane.Name, "://") {
			d.Scenario.Load.Changes = scenario.Changes{PerSecond: 5, Kind: scenario.EndpointChange}
		}
		return nil
	})
	if err != nil || done {
		return options, nil, done, err
	}
	if len(o.settings) == 0 {
		return fail(errors.New("--setting: want NAME=VALUE,VALUE, as in PILOT_PUSH_THROTTLE=20,50,100"))
	}
	for _, text := range o.settings {
		one, err := sweep.ParseSetting(text)
		if err != nil {
			return fail(err)
		}
		settings = append(settings, one)
	}
	var objective *compare.Objective
	if cmd.Flags().Changed("slo") {
		parsed, err := compare.ParseObjective(o.slo)
		if err != nil {
			return fail(err)
		}
		objective = &parsed
	}
	if driver, err := spec.Driver(); err == nil && driver.External != nil {
		return fail(scenario.Refuse("controlPlane.name", spec.ControlPlane.Name, "one that scaler starts: the settings of others cannot be varied"))
	}
	if objective != nil {
		if err := spec.CheckObjective(*objective); err != nil {
			return fail(err)
		}
	}
	if options, err = sweep.Tuning(spec, settings, o.all); err != nil {
		return fail(err)
	}
	if options, err = options.WithObjective(objective, o.goal); err != nil {
		return fail(err)
	}
	options.Repeats = spec.Repeats
	if err := options.Validate(); err != nil {
		return fail(err)
	}
	return options, settings, false, nil
}

// checkKnown refuses settings that the control plane's program does not have.
func checkKnown(ctx context.Context, s streams, options sweep.Options, settings []sweep.Setting) error {
	driver, err := options.Spec.Driver()
	if err != nil || len(driver.Programs.Own) == 0 {
		return err
	}
	programs := options.Spec.Programs
	programs.Progress = progress(s)
	paths, err := component.Paths(ctx, programs, driver.Programs.Own[0])
	if err != nil {
		return err
	}
	if err := sweep.CheckKnown(settings, paths[driver.Programs.Own[0]]); err != nil {
		return usageError{err}
	}
	return nil
}

// errSweepUndecided marks a sweep that has no answer: exit code 4.
var errSweepUndecided = errors.New("undecided")

// runSweep does the runs and prints what they say.
func runSweep(cmd *cobra.Command, s streams, options sweep.Options, format string) error {
	result, err := runSeries(s, options.Spec.Out, func(progress run.Progress) (*sweep.Result, error) {
		options.Progress = progress
		return sweep.Run(cmd.Context(), options)
	}, func(r *sweep.Result) error { return sweep.Print(s.out, format, r) })
	switch {
	case err != nil:
		return err
	case result.Answer == sweep.NotMet:
		return fmt.Errorf("%w: %s", errBound, result.Sentences[0])
	case result.Answer == sweep.Unknown:
		return fmt.Errorf("%w: %s", errSweepUndecided, result.Sentences[0])
	}
	return nil
}
