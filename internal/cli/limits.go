package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series/limits"
	"scaler.mesh/scaler/pkg/scenario"
)

type limitsOptions struct {
	rolloutOptions
	find       string
	slo        string
	min, max   string
	resolution string
	maxRuns    int
}

func newLimitsCommand(s streams) *cobra.Command {
	var o limitsOptions
	cmd := &cobra.Command{
		Use:   "limits --slo OBJECTIVE",
		Short: "Search for the largest mesh or change rate, or the least memory or processors, that meets an objective",
		Long: `Limits searches for the highest change rate, the largest mesh, the smallest memory
limit or the fewest processors of the control plane with which an objective is met.
It tries values by real runs: first in factors of two, then between a value that
met the objective and one that missed it, until the two differ by --resolution.
The largest number of runs and their approximate duration are printed first.

--slo is a figure and a bound: FIGURE<VALUE or FIGURE>VALUE. Figures are named as
in 'scaler compare --fail-on'; push.p99 is that of the changes at a rate. The
search starts at the value of the rollout's flag: --change, --pods,
--control-plane-memory (default 512Mi) or --control-plane-cpus (default 8).

A control plane that is killed for exceeding its memory limit, or a mesh that does
not converge, misses the objective. A figure that a run does not have, such as a
p99 of fewer than 100 changes, is an error and not a pass. A search of change rates
makes its phase long enough for the quantile.

Each run has a record below --out, next to limits.json, the result, which is
written after each run. The same command with the same --out resumes a search that
was interrupted. The exit code is 0 if the limit was found or lies beyond --max
(beyond --min for memory and processors), 3 if the objective is not met even at the
easiest value, and 4 if the search ended without an answer.`,
		Example: `  # how many endpoint changes a second 200 pods can have
  scaler limits --slo 'push.p99<2s' --pods 200 --mode strict

  # the largest mesh that takes 5 route changes a second
  scaler limits --find pods --slo 'push.p99<1s' --change 5/s:route

  # the smallest memory limit with which 200 pods roll out, and changes arrive
  scaler limits --find memory --slo 'push.p99<2s' --pods 200 --change 5/s

  # the fewest processors for a rollout within a minute
  scaler limits --find cpus --slo 'rollout.seconds<60s' --pods 400`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	o.addFlags(cmd, s, scenario.Limits, shortRollouts())
	f := cmd.Flags()
	f.StringVar(&o.find, "find", string(limits.ChangeRate), "value to search for: change-rate, pods, memory or cpus")
	f.StringVar(&o.slo, "slo", "", "the `OBJECTIVE`, as in 'push.p99<2s' or 'rollout.cores<1.5'")
	f.StringVar(&o.min, "min", "", "smallest value that is tried (default 0.5/s, 10 pods, 64Mi or 1)")
	f.StringVar(&o.max, "max", "", "greatest value that is tried (default 1000/s, 5000 pods, 8Gi or 16)")
	f.StringVar(&o.resolution, "resolution", "10%", "largest difference between the value that meets the objective and the one that misses it")
	f.IntVar(&o.maxRuns, "max-runs", 20, "number of runs after which the search ends")
	complete(cmd, "find", findNames())
	return cmd
}

func findNames() []string {
	var names []string
	for _, f := range limits.Finds {
		names = append(names, string(f))
	}
	return names
}

func (o *limitsOptions) run(cmd *cobra.Command, s streams) error {
	options, done, err := o.options(cmd, s)
	if err != nil || done {
		return err
	}
	result, err := runSeries(s, options.Spec.Out, func(progress run.Progress) (*limits.Result, error) {
		options.Progress = progress
		return limits.Search(cmd.Context(), options)
	}, func(r *limits.Result) error { return limits.Print(s.out, o.output, r) })
	switch {
	case err != nil:
		return err
	case result.Status == limits.NotMet:
		return fmt.Errorf("%w: %s", errBound, result.Sentence)
	case result.Status == limits.MaxRunsDone:
		return fmt.Errorf("%w: %s", limits.ErrUndecided, result.Sentence)
	}
	return nil
}

// options checks every flag before anything is started. done is true if the scenario was to be
// printed, and was.
func (o *limitsOptions) options(cmd *cobra.Command, s streams) (options limits.Options, done bool, err error) {
	fail := func(err error) (limits.Options, bool, error) {
		return limits.Options{}, false, usageError{err}
	}
	if err := parseOneOf("find", o.find, findNames()); err != nil {
		return options, false, err
	}
	find := limits.Find(o.find)
	spec, done, err := o.oneSpec(cmd, s, func(d *scenario.Document) error {
		switch {
		case find == limits.ChangeRate && !d.Given("load.changes"):
			d.Scenario.Load.Changes = scenario.Changes{PerSecond: 1, Kind: scenario.EndpointChange}
		case find == limits.Memory && !d.Given("controlPlane.memory"):
			d.Scenario.ControlPlane.Memory = 512 << 20
		}
		return nil
	})
	if err != nil || done {
		return options, done, err
	}
	if o.slo == "" {
		return fail(errors.New("--slo: want an objective, as in 'push.p99<2s'"))
	}
	objective, err := compare.ParseObjective(o.slo)
	if err != nil {
		return fail(err)
	}
	options = limits.Options{Find: find, Objective: objective, MaxRuns: o.maxRuns, Spec: spec}
	if options.Scale, err = o.scale(find, spec); err != nil {
		return fail(err)
	}
	if err := options.Validate(); err != nil {
		return fail(err)
	}
	return options, false, nil
}

// scale returns the range of the search.
func (o *limitsOptions) scale(find limits.Find, spec run.Spec) (scale limits.Scale, err error) {
	defaults := map[limits.Find][2]string{
		limits.ChangeRate: {"0.5/s", "1000/s"},
		limits.Pods:       {"10", "5000"},
		limits.Memory:     {"64Mi", "8Gi"},
		limits.CPUs:       {"1", strconv.Itoa(2 * scenario.DefaultProcessors)},
	}[find]
	if scale.Min, err = find.Parse(cmp.Or(o.min, defaults[0])); err != nil {
		return scale, fmt.Errorf("--min: %w", err)
	}
	if scale.Max, err = find.Parse(cmp.Or(o.max, defaults[1])); err != nil {
		return scale, fmt.Errorf("--max: %w", err)
	}
	number, percent := strings.CutSuffix(o.resolution, "%")
	share, err := strconv.ParseFloat(number, 64)
	if !percent || err != nil {
		return scale, scenario.Refuse("resolution", o.resolution, "a share, as in 10%%")
	}
	scale.Resolution = share / 100
	switch find {
	case limits.ChangeRate:
		scale.Start = float64(spec.Load.Changes.PerSecond)
	case limits.Pods:
		scale.Start = float64(spec.Pods())
	case limits.Memory:
		scale.Start = float64(spec.ControlPlane.Memory)
	case limits.CPUs:
		scale.Start = float64(cmp.Or(spec.ControlPlane.Processors, scenario.DefaultProcessors))
	}
	return scale, nil
}
