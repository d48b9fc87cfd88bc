package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/analyse/report"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/output"
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
runs at any depth. One run is printed in full, several as one line each.

The record of a run that is under way, was interrupted or was killed can be
printed too; its status says so. Records of 'scaler latency' are printed after the
others, in every format but csv, which leaves them out and says so.

The page that -o html prints holds everything it shows, needs no network, and is
made from the records' time lines, distributions and events as well. With -o csv
each run is a row, and each figure a column named by its path in the record.`,
		Example: `  # all runs below results
  scaler report results

  # one run, for a pull request
  scaler report results/istiod-strict-200 -o markdown

  # a page with charts
  scaler report results -o html >report.html`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(s, args) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "`format`: table, json, yaml, markdown, html or csv")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(report.RunFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o reportOptions) run(s streams, dirs []string) error {
	if err := parseOutput(o.output, report.RunFormats...); err != nil {
		return err
	}
	if len(dirs) == 0 {
		return usagef("want at least one DIR that holds runs, as in 'scaler report results'")
	}
	runs, latencies, err := record.ReadAll(dirs...)
	if err != nil {
		return badFolder(err)
	}
	if err := recoverAll(runs); err != nil {
		return err
	}
	if len(latencies) > 0 && !slices.Contains(report.LatencyFormats, o.output) {
		forms := strings.Join(report.LatencyFormats, ", ")
		if len(runs) == 0 {
			return usagef("parsing --output %q: want one of %s, for %s is of scaler latency", o.output, forms, latencies[0].Dir)
		}
		for _, l := range latencies {
			fmt.Fprintf(s.err, "left out: %s is of scaler latency, which prints as one of %s\n", output.Plain(l.Dir), forms)
		}
		latencies = nil
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
		if err := experiment.Recover(&runs[i]); err != nil {
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
