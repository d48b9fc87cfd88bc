package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/series/sweep"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

type rolloutOptions struct {
	scenarioFlags
	spec   run.Spec // folders and programs; the scenario is that of the flags
	output string

	// of the command rollout alone
	sweep    bool // --knob-sweep
	existing confirmation
}

// sweepRepeats is the number of runs of each part in a knob sweep without --repeats.
const sweepRepeats = 4

func newRolloutCommand(s streams) *cobra.Command {
	var o rolloutOptions
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Roll out a mesh against a real control plane and measure what it needs",
		Long: `Rollout starts a cluster with fake nodes and a control plane, and rolls out a mesh.
Every pod gets a simulated sidecar that behaves toward the control plane like a
real proxy. It measures the control plane's cores and memory during the rollout
and in steady state, and the time until every sidecar has its configuration and
its certificate. An answer of at most 20 lines goes to stdout, with -o wide all
tables, and the record to --out. Everything that was started is stopped at the end.
The same command with the same --out resumes several runs that were interrupted.

By default pods arrive at 20 per second and their sidecars start 1 to 5 seconds later,
as in a cluster with stock settings.

The control plane runs as on a machine with 8 processors. If programs would wait for
the processors of this machine, time is slowed down by a factor that follows from the
expected demand of the run and is printed first. --dilate 1 prevents that.

The first run takes the programs that it needs from released images or builds
them, which takes less than 20 minutes on two cores; see 'scaler components'.`,
		Example: `  # 200 pods, as fast as a stock cluster creates them, permissive, against istiod
  scaler rollout --pods 200

  # in bursts: 100 pods every 10 seconds
  scaler rollout --pods 400 --burst 100/10s

  # a larger mesh, a short steady phase, figures as JSON
  scaler rollout --pods 400 --steady 20s -o json

  # in real time
  scaler rollout --pods 200 --dilate 1

  # your own mesh, with one, two and four copies of it
  scaler rollout --mesh mesh.yaml --scale 1,2,4 --repeats 2

  # several sizes and modes: eight runs
  scaler rollout --pods 200,400,800,1600 --mode both --probes 0

  # recovery after the control plane was killed
  scaler rollout --pods 200 --fault kill-control-plane@steady

  # one setting alone: sidecars know only the services that they call
  scaler rollout --pods 200 --scope declared

  # sidecars of 200 pods against an ADS server that runs already
  scaler rollout --pods 200 --control-plane xds://127.0.0.1:18000 --set controlPlane.connection.plaintext=true

  # what each part of a typical mesh costs the control plane: interleaved runs
  scaler rollout --pods 400 --profile typical --knob-sweep

  # in your cluster, against its control plane: first what would be created, then the run
  scaler rollout --pods 200 --context staging --dry-run
  scaler rollout --pods 200 --context staging

  # keep the cluster running afterwards
  scaler rollout --pods 50 --keep`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	o.addFlags(cmd, s, scenario.Rollout, scenario.Default())
	o.existing.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.sweep, "knob-sweep", false, "measure the cost of each part of the profile: interleaved runs of the plain mesh and of the mesh with only that part, --repeats of each (default 4); knobs.json in --out has the result, and the same command resumes it")
	group(cmd.Flags(), scenario.MeshGroup, false, "knob-sweep")
	return cmd
}

// addFlags adds all flags of a command that does rollouts. defaults is its scenario without flags.
func (o *rolloutOptions) addFlags(cmd *cobra.Command, s streams, command string, defaults scenario.Scenario) {
	o.addTo(cmd, s, command, defaults)
	formats := output.Formats
	if command == scenario.Diff || command == scenario.Assess {
		formats = output.PageFormats
	}
	addRunFlags(cmd, &o.spec.Out, &o.output, &o.spec.Programs, formats)
	if f := cmd.Flags(); command == scenario.Rollout || command == scenario.Bench {
		f.BoolVar(&o.spec.Keep, "keep", false, "keep the cluster and the control plane running")
		group(f, scenario.OutputGroup, false, "keep")
	}
}

// addRunFlags adds the flags of a command that makes runs from a scenario: where records go, how
// figures are printed, and where programs are.
func addRunFlags(cmd *cobra.Command, out, format *string, programs *component.Options, formats []string) {
	f := cmd.Flags()
	f.StringVar(out, "out", "", "folder for the record (default ./scaler-runs/DATE-TIME)")
	f.StringVarP(format, "output", "o", "table", "`format` of the figures: "+oneOf(formats))
	group(f, scenario.OutputGroup, true, "out", "output")
	complete(cmd, "output", formats)
	addComponentFlags(f, programs)
	addEnvoyFlag(f, programs)
	group(f, scenario.ClusterGroup, false, "bin-dir", "cache-dir", "image-registry", "envoy")
	addHelpAll(cmd)
}

func (o *rolloutOptions) run(cmd *cobra.Command, s streams) error {
	if o.sweep {
		return o.sweepKnobs(cmd, s)
	}
	ladder, done, err := o.ladder(cmd, s)
	if err != nil || done {
		return err
	}
	if ladder.Spec.Existing != nil {
		if goOn, err := o.inspect(cmd.Context(), s, ladder.Runs()); err != nil || !goOn {
			return err
		}
	} else if err := o.existing.refuse(cmd.Flags()); err != nil {
		return err
	}
	var runs []record.Run
	err = withProgress(s, func(p run.Progress) (err error) {
		runs, err = ladder.Run(cmd.Context(), p)
		return err
	})
	for _, run := range runs {
		fmt.Fprintln(s.err, "record:", run.Dir)
	}
	// What was measured is printed however it ended: the records say so.
	if measured := slices.DeleteFunc(runs, func(r record.Run) bool { return len(r.Phases) == 0 }); len(measured) > 0 {
		if printErr := report.Print(s.out, o.output, measured); printErr != nil {
			return errors.Join(err, printErr)
		}
	}
	switch {
	case err != nil && len(runs) == 0:
		return misused(err)
	case err != nil:
		return notConverged(err)
	}
	return judgeThresholds(runs)
}

// inspect looks at the existing cluster in which runs are to be made, shows what the largest of them would make there, and asks. goOn is
// false where nothing is to be done.
func (o *rolloutOptions) inspect(ctx context.Context, s streams, runs []run.Spec) (goOn bool, err error) {
	var largest *run.Found
	for _, one := range runs {
		found, err := run.Inspect(ctx, one)
		if err != nil {
			return false, misused(err)
		}
		if largest == nil || len(found.Objects) > len(largest.Objects) {
			largest = found
		}
	}
	details := meshDetails(largest)
	if n := len(runs); n > 1 {
		details += fmt.Sprintf("\n  runs:         %d, one after the other, each with objects of its own; these are those of the largest", n)
	}
	return o.existing.prepare(ctx, s, largest.Found, details)
}

// judgeThresholds returns errBound if a run misses a threshold of its scenario, and otherwise errUndecided if
// one does not decide it, with all that are not known to be met.
func judgeThresholds(runs []record.Run) error {
	var open []string
	mark := errUndecided
	for _, r := range runs {
		for _, t := range compare.Thresholds(&r) {
			switch t.Outcome {
			case compare.Inside:
				continue
			case compare.Beyond:
				mark = errBound
			}
			open = append(open, fmt.Sprintf("%s, %s: %s, %s", t.Text, r.Name, t.Outcome, t.Why))
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%w: %s", mark, strings.Join(open, "; "))
	}
	return nil
}

// sweepKnobs prices each part of the profile. Its phases are shorter by default, since there
// are many runs.
func (o *rolloutOptions) sweepKnobs(cmd *cobra.Command, s streams) error {
	short := &o.defaults
	short.Phases.Baseline, short.Phases.Settle, short.Phases.Steady = seconds(2), seconds(5), seconds(20)
	short.Load.Probes, short.Repeats = 0, sweepRepeats
	short.Instrument.Dilation = scenario.Dilation{Factor: 1}
	spec, done, err := o.oneSpec(cmd, s)
	if err != nil || done {
		return err
	}
	if spec.Existing != nil {
		return usagef("--knob-sweep: want none with place.context, where profiles are not supported yet")
	}
	options, err := sweep.Knobs(spec)
	if err != nil {
		return usageError{err}
	}
	options.Repeats = spec.Repeats
	if err := options.Validate(); err != nil {
		return usageError{err}
	}
	return runSweep(cmd, s, options, o.output)
}

// seconds returns a length of time of a scenario.
func seconds(n int) scenario.Duration { return scenario.Duration(time.Duration(n) * time.Second) }

// ladder checks every flag before anything is started, and makes the runs of them. done is true if
// the scenario was to be printed, and was.
func (o *rolloutOptions) ladder(cmd *cobra.Command, s streams, changes ...func(*scenario.Document) error) (l run.Ladder, done bool, err error) {
	if err := parseOutput(o.output, output.Formats...); err != nil {
		return l, false, err
	}
	document, err := o.read(cmd.Flags(), changes...)
	if err != nil {
		return l, false, err
	}
	if l, err = o.runs(cmd, document); err != nil {
		return l, false, err
	}
	if done, err = o.printed(s, cmd.Flags(), document); done || err != nil {
		return l, done, err
	}
	if err := l.Validate(); err != nil {
		return l, false, usageError{err}
	}
	return l, false, nil
}

// runs makes the runs of a document. Whether they can be done is not checked.
func (o *rolloutOptions) runs(cmd *cobra.Command, document *scenario.Document) (l run.Ladder, err error) {
	spec := o.spec
	if spec.Out, err = outFolder(cmd, spec.Out); err != nil {
		return l, err
	}
	if spec.State, err = stateDir(); err != nil {
		return l, err
	}
	if l, err = run.NewLadder(spec, document); err != nil {
		return l, usageError{err}
	}
	return l, nil
}

// oneSpec returns the specification of the flags of a command that does all runs with one size, mode
// and data plane.
func (o *rolloutOptions) oneSpec(cmd *cobra.Command, s streams, changes ...func(*scenario.Document) error) (spec run.Spec, done bool, err error) {
	l, done, err := o.ladder(cmd, s, changes...)
	if err != nil || done {
		return spec, done, err
	}
	return l.Spec, false, checkOne(l.Spec)
}

// checkOne refuses a specification of several sizes, modes or data planes.
func checkOne(spec run.Spec) error {
	if err := spec.CheckOne(); err != nil {
		return usageError{err}
	}
	return nil
}

// outFolder returns the folder that --out names or, without it, one named by the time.
func outFolder(cmd *cobra.Command, out string) (string, error) {
	if out == "" && cmd.Flags().Changed("out") {
		return "", usagef(`--out: got "", want a folder`)
	}
	if out == "" {
		out = filepath.Join("scaler-runs", strings.ReplaceAll(time.Now().Format("20060102-150405.000"), ".", "-"))
	}
	return out, nil
}
