package cli

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/series/rehearsal"
	"scaler.mesh/scaler/pkg/record"
)

type reportOptions struct {
	output string
}

func newReportCommand(s streams) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Print the records of runs",
		Long: `Print the records of runs. Each DIR is a run's folder, or a folder that holds
runs at any depth. By default the answer is printed: at most 20 lines about one size and
mode, or a row for each of several. -o wide prints all tables: one run in full, several
as one line each.

The record of a run that is under way, was interrupted or was killed can be
printed too; its status says so. Records of 'scaler latency' are printed after the
others.

The page that -o html prints is one file, needs no network, and also shows the records'
time lines, distributions and events. The folder of
a 'scaler assess' is printed as its answer; its page is that of its runs.`,
		Example: `  # all runs below results
  scaler report results

  # all tables
  scaler report results -o wide

  # one run, for a pull request
  scaler report results/istiod-strict-200 -o markdown

  # a page with charts
  scaler report results -o html >report.html`,
		ValidArgsFunction: completeFolders,
		RunE:              func(_ *cobra.Command, args []string) error { return o.run(s, args) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "`format`: table (the answer), wide (all tables), json, yaml, markdown or html")
	complete(cmd, "output", output.PageFormats)
	return cmd
}

func (o reportOptions) run(s streams, dirs []string) error {
	if err := parseOutput(o.output, output.PageFormats...); err != nil {
		return err
	}
	if len(dirs) == 0 {
		return usagef("want at least one DIR that holds runs, as in 'scaler report results'")
	}
	if len(dirs) == 1 && rehearsal.Is(dirs[0]) && o.output != "html" {
		return printAssessment(s, o.output, dirs[0])
	}
	runs, latencies, err := record.ReadAll(dirs...)
	if err != nil {
		return badFolder(err)
	}
	if err := recoverAll(runs); err != nil {
		return err
	}
	return report.PrintAll(s.out, o.output, runs, latencies)
}

// readRecords reads the runs that folders hold. A folder that is not there, or
// holds none, is wrong usage.
func readRecords(dirs ...string) ([]record.Run, error) {
	runs, err := record.Read(dirs...)
	if err != nil {
		return nil, badFolder(err)
	}
	return runs, recoverAll(runs)
}

// recoverAll computes the figures that runs could not compute that were killed.
func recoverAll(runs []record.Run) error {
	for i := range runs {
		if err := measure.Recover(&runs[i]); err != nil {
			return err
		}
	}
	return nil
}

// badFolder makes wrong usage of the errors that are.
func badFolder(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, record.ErrNoRuns) {
		return usagef("%w", err)
	}
	return err
}
