package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/run"
)

// benchRepeats is how many runs of each version there are unless --repeats says otherwise.
const benchRepeats = 5

type benchOptions struct {
	rolloutOptions
	compared compareOptions
}

func newBenchCommand(s streams) *cobra.Command {
	o := benchOptions{rolloutOptions: rolloutOptions{ladder: run.Ladder{Spec: run.DefaultSpec()}}}
	cmd := &cobra.Command{
		Use:   "bench --versions A,B",
		Short: "Measure two versions of a control plane in turns, and compare them",
		Long: `Bench runs the same rollouts against two versions of Istio in turns, as in A B B A,
so that drift of the machine affects both, and compares B with A as 'scaler compare'
does. The programs of both versions are built first. The records of each version go
to a folder of its own below --out, which 'scaler compare' reads again.

All flags of 'scaler rollout' apply to the runs of both versions. With --fail-on the
comparison is a gate: the exit codes are those of 'scaler compare'. A run that does not
complete ends bench with the exit code of 'scaler rollout', after the comparison of
those that did.`,
		Example: `  # two versions, five runs each
  scaler bench --versions 1.29.1,1.31.0 --pods 200 --repeats 5

  # the cost of changes that concern no sidecar, as a gate
  scaler bench --versions 1.29.1,1.31.0 --change 2/s:route-metadata --fail-on 'change.cores>+50%'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&o.ladder.Versions, "versions", nil, "the two versions `A,B`, each a value of --istio-version")
	o.compared.addGateFlags(f)
	o.ladder.Repeats, f.Lookup("repeats").DefValue = benchRepeats, strconv.Itoa(benchRepeats)
	return cmd
}

func (o *benchOptions) run(cmd *cobra.Command, s streams) error {
	if len(o.ladder.Versions) != 2 {
		return usagef("parsing --versions %q: want two, as in --versions 1.29.1,1.31.0", o.ladder.Versions)
	}
	options, err := o.compared.options(cmd.Flags())
	if err != nil {
		return err
	}
	if err := o.complete(cmd); err != nil {
		return err
	}
	collectOften()
	shown := newProgress(s.err)
	defer shown.close()
	_, runErr := o.ladder.Run(cmd.Context(), run.Progress{Say: shown.say, Status: shown.status})
	shown.close()
	out := o.ladder.Spec.Out
	fmt.Fprintln(s.err, "records:", out)
	if errors.Is(runErr, experiment.ErrUnconverged) {
		runErr = fmt.Errorf("%w: %w", errMissed, runErr)
	}
	if cmd.Context().Err() != nil {
		return runErr
	}
	options.A, options.B = filepath.Join(out, o.ladder.Versions[0]), filepath.Join(out, o.ladder.Versions[1])
	return errors.Join(runErr, o.compared.compare(s, options, o.output))
}
