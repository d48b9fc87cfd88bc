package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/existing"
)

// clusterCleanup is the deletion of what runs left in a cluster.
type clusterCleanup struct {
	target existing.Target
	name   string // value of the run label
	all    bool
}

func (c *clusterCleanup) addFlags(f *pflag.FlagSet) {
	addTargetFlags(f, &c.target.Context, &c.target.Kubeconfig, "delete what runs left in that cluster; needs --run or --all")
	f.StringVar(&c.name, "run", "", "with --context: `NAME` of the run, the value of the label scaler.mesh/run")
	f.BoolVar(&c.all, "all", false, "with --context: all runs")
}

// check reports whether a cluster is to be cleaned up.
func (c *clusterCleanup) check(f *pflag.FlagSet) (bool, error) {
	if !f.Changed("context") {
		return false, refuseFlags(f, "it with --context", "kubeconfig", "run", "all")
	}
	switch {
	case c.target.Context == "":
		return false, usagef(`--context: got "", want a context of the kubeconfig`)
	case c.all == (c.name != ""):
		return false, usagef("--run: got %q, want either --run NAME or --all with --context", c.name)
	}
	return true, nil
}

// leftInCluster has the objects of a run that cleanup found in a cluster, as it prints them.
type leftInCluster struct {
	Run     string        `json:"run"`
	Objects place.Deleted `json:"objects"` // by resource
}

func (c *clusterCleanup) run(ctx context.Context, s streams, dryRun bool, format string) error {
	cluster, err := c.target.Open()
	if err != nil {
		return usagef("%w", err)
	}
	runs := map[string]place.Deleted{c.name: {}}
	if c.all || dryRun {
		all, err := cluster.Runs(ctx)
		if err != nil {
			return err
		}
		if c.all {
			runs = all
		} else {
			runs[c.name] = all[c.name]
		}
	}
	var found []leftInCluster
	var errs []error
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		if !dryRun {
			fmt.Fprintf(s.err, "deleting the objects of run %s\n", run)
			deleted, err := cluster.Delete(ctx, run)
			errs = append(errs, err)
			runs[run] = deleted
		}
		if runs[run].Total() > 0 {
			found = append(found, leftInCluster{run, runs[run]})
		}
	}
	return printLeft(s, errors.Join(errs...), format, "LeftInClusterList", found, []string{"RUN", "OBJECTS", "OF THEM"}, func(l leftInCluster) []string {
		return []string{l.Run, fmt.Sprint(l.Objects.Total()), output.Counts(l.Objects)}
	})
}
