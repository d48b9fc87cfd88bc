package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/process"
)

// leftover is what cleanup found, as it is printed.
type leftover struct {
	Folder    string   `json:"folder"`
	Owner     int      `json:"owner"`     // process id of the scaler that was killed
	Processes []string `json:"processes"` // still running when found
}

func newCleanupCommand(s streams) *cobra.Command {
	var (
		dryRun bool
		output string
	)
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Stop processes and delete folders that a killed scaler left",
		Long: `cleanup stops what a scaler left that was killed before it could clean up, and
deletes its folders. Runs in progress, kept clusters and records are left alone.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := parseOutput(output, "table", "json", "yaml"); err != nil {
				return err
			}
			root, err := stateDir()
			if err != nil {
				return err
			}
			orphans, err := process.Orphans(root)
			errs := []error{err}
			var found []leftover
			for _, o := range orphans {
				if !dryRun {
					if err := o.Remove(cmd.Context()); err != nil {
						errs = append(errs, err)
						continue
					}
				}
				found = append(found, newLeftover(o))
			}
			if len(found) == 0 && output == "table" {
				fmt.Fprintln(s.err, "nothing to clean up")
				return errors.Join(errs...)
			}
			errs = append(errs, printList(s.out, output, "LeftoverList", found, []string{"FOLDER", "RUNNING"}, func(l leftover) []string {
				return []string{l.Folder, strings.Join(l.Processes, ", ")}
			}))
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only list what would be removed")
	addListOutputFlag(cmd.Flags(), &output)
	return cmd
}

func newLeftover(o process.State) leftover {
	l := leftover{Folder: o.Dir, Owner: o.Owner, Processes: []string{}}
	for _, c := range o.Children {
		if c.Alive {
			l.Processes = append(l.Processes, c.Name)
		}
	}
	return l
}
