package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// benchRepeats is the number of runs of each version without --repeats.
const benchRepeats = 5

type benchOptions struct {
	rolloutOptions
	versions []string
	compared compareOptions
}

func newBenchCommand(s streams) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench --versions A,B",
		Short: "Measure two versions of a control plane, interleaved, and compare them",
		Long: `Bench runs the same rollouts against two versions of Istio, interleaved as in A B B A,
so that machine drift affects both equally, and compares B with A as 'scaler compare'
does. The programs of both versions are built first. The records of each version go
to a folder of its own below --out, which 'scaler compare' reads again.

The scenario of 'scaler rollout' applies to the runs of both versions. With --fail-on the
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
	defaults := scenario.Default()
	defaults.Repeats = benchRepeats
	o.addFlags(cmd, s, scenario.Bench, defaults)
	f := cmd.Flags()
	f.StringSliceVar(&o.versions, "versions", nil, "the two versions `A,B` of Istio, as in 1.29.1,1.31.0")
	group(f, scenario.ControlPlaneGroup, true, "versions")
	o.compared.addGateFlags(f)
	return cmd
}

func (o *benchOptions) run(cmd *cobra.Command, s streams) error {
	if len(o.versions) != 2 {
		return usagef("--versions: got %q, want two, as in --versions 1.29.1,1.31.0", strings.Join(o.versions, ","))
	}
	options, err := o.compared.options(cmd.Flags())
	if err != nil {
		return err
	}
	ladder, done, err := o.ladder(cmd, s)
	if err != nil || done {
		return err
	}
	ladder.Versions = o.versions
	if err := ladder.Validate(); err != nil {
		return usageError{err}
	}
	var runs []record.Run
	runErr := withProgress(s, func(p run.Progress) (err error) {
		runs, err = ladder.Run(cmd.Context(), p)
		return err
	})
	if len(runs) == 0 {
		return misused(runErr)
	}
	runErr = notConverged(runErr)
	out := ladder.Spec.Out
	fmt.Fprintln(s.err, "records:", out)
	if cmd.Context().Err() != nil {
		return runErr
	}
	options.A, options.B = filepath.Join(out, o.versions[0]), filepath.Join(out, o.versions[1])
	return errors.Join(runErr, o.compared.compare(s, options, o.output))
}
