package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/grafana"
	"scaler.mesh/scaler/internal/process"
)

// leftover is one thing that a killed scaler left on this machine, as cleanup prints it.
type leftover struct {
	Folder    string   `json:"folder"`
	Owner     int      `json:"owner"`     // process id of the scaler that was killed
	Processes []string `json:"processes"` // still running when found
	// Container is a Docker container that may have been running; absent where there
	// was none.
	Container string `json:"container,omitempty"`
}

func newCleanupCommand(s streams) *cobra.Command {
	var (
		dryRun bool
		output string
		inside clusterCleanup
	)
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what a killed scaler left on this machine, or in a cluster",
		Long: `Cleanup stops the processes that a killed scaler left, including a Grafana in
Docker, and deletes its folders. Runs in progress, kept clusters and records are
not touched.

With --context it deletes instead what runs left in that cluster: all objects with
the label scaler.mesh/run of one run, or of all runs, those in progress included.`,
		Example: `  # list what would be removed
  scaler cleanup --dry-run

  scaler cleanup

  # which runs left objects in a cluster, and delete those of one
  scaler cleanup --context staging --all --dry-run
  scaler cleanup --context staging --run istiod-permissive-200-3f9a1c`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked, err := inside.check(cmd.Flags()); err != nil {
				return err
			} else if asked {
				return inside.run(cmd.Context(), s, dryRun, output)
			}
			root, err := stateDir()
			if err != nil {
				return err
			}
			orphans, err := process.Orphans(root)
			errs := []error{err}
			var found []leftover
			for _, o := range orphans {
				l, err := newLeftover(o)
				if err == nil && !dryRun {
					err = remove(cmd.Context(), o)
				}
				if err != nil {
					errs = append(errs, err)
					continue
				}
				found = append(found, l)
			}
			return printLeft(s, errors.Join(errs...), output, "LeftoverList", found, []string{"FOLDER", "RUNNING"}, func(l leftover) []string {
				running := l.Processes
				if l.Container != "" {
					running = append(running, "container "+l.Container)
				}
				return []string{l.Folder, strings.Join(running, ", ")}
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only list what would be removed")
	inside.addFlags(cmd.Flags())
	addListOutput(cmd, &output)
	return cmd
}

// printLeft prints what was found. err is the error of what could not be inspected or removed; printLeft returns it.
func printLeft[T any](s streams, err error, format, kind string, found []T, header []string, row func(T) []string) error {
	if len(found) == 0 && format == "table" {
		if err == nil {
			fmt.Fprintln(s.err, "nothing to clean up")
		}
		return err
	}
	return errors.Join(err, printList(s.out, format, kind, found, header, row))
}

// remove ends a container before the processes: the file that states what it is
// called goes with their folder.
func remove(ctx context.Context, o process.State) error {
	if err := grafana.RemoveContainer(ctx, o.Dir); err != nil {
		return err
	}
	return o.Remove(ctx)
}

func newLeftover(o process.State) (leftover, error) {
	container, err := grafana.Container(o.Dir)
	l := leftover{Folder: o.Dir, Owner: o.Owner, Processes: []string{}, Container: container}
	for _, c := range o.Children {
		if c.Alive {
			l.Processes = append(l.Processes, c.Name)
		}
	}
	return l, err
}
