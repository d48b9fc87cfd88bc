package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/kwok"
)

// defaultCluster is the name of the cluster that cluster up starts.
const defaultCluster = "scaler"

func newClusterCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Start, stop and list embedded clusters",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newClusterUpCommand(s), newClusterDownCommand(), newClusterStatusCommand(s))
	return cmd
}

func newClusterUpCommand(s streams) *cobra.Command {
	var programs component.Options
	cmd := &cobra.Command{
		Use:   "up [NAME]",
		Short: "Start an embedded cluster that keeps running, and print the path of its kubeconfig",
		Example: `  export KUBECONFIG=$(scaler cluster up)
  scaler cluster down`,
		Args: clusterName,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := clustersDir()
			if err != nil {
				return err
			}
			programs.Progress = progress(s)
			if err := run.CheckForCluster(cmd.Context(), programs, root, programs.Progress); err != nil {
				return err
			}
			paths, err := component.Paths(cmd.Context(), programs, embedded.Components()...)
			if err != nil {
				return err
			}
			group, err := process.OpenGroup(filepath.Join(root, nameOr(args, defaultCluster)), process.GroupOptions{Keep: true})
			if err != nil {
				return err
			}
			c, err := cluster.Up(cmd.Context(), cluster.Options{
				Group:      group,
				Programs:   embedded.Programs(paths),
				KwokConfig: kwok.Stages(),
				Progress:   progress(s),
			})
			if err != nil {
				return errors.Join(err, group.Remove(interrupt.Uncancelled(cmd.Context())))
			}
			// A cluster that was reported to nobody is not kept.
			_, err = fmt.Fprintln(s.out, c.Kubeconfig())
			if err == nil {
				err = context.Cause(cmd.Context())
			}
			if err == nil {
				err = cluster.CapLogs(group)
			}
			if err == nil {
				err = group.MarkKept()
			}
			if err != nil {
				return errors.Join(err, group.Remove(interrupt.Uncancelled(cmd.Context())))
			}
			return nil
		},
	}
	addComponentFlags(cmd.Flags(), &programs)
	return cmd
}

func newClusterDownCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "down [NAME]",
		Short:             "Stop an embedded cluster and delete its data",
		Args:              clusterName,
		ValidArgsFunction: completeClusters,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := clustersDir()
			if err != nil {
				return err
			}
			return cluster.Stop(cmd.Context(), root, nameOr(args, defaultCluster))
		},
	}
}

func newClusterStatusCommand(s streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List embedded clusters: kept ones and those of running experiments",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			root, err := clustersDir()
			if err != nil {
				return err
			}
			all, listErr := cluster.List(root)
			err = printList(s.out, output, "ClusterList", all, []string{"NAME", "STATE", "OWNER", "AGE", "KUBECONFIG"}, func(c cluster.Status) []string {
				return []string{c.Name, clusterState(c), clusterOwner(c), time.Since(c.Started).Round(time.Second).String(), c.Kubeconfig}
			})
			if err != nil {
				return err
			}
			return listErr // after what could be read
		},
	}
	addListOutput(cmd, &output)
	return cmd
}

// clusterState names the processes that ended, if only some did.
func clusterState(c cluster.Status) string {
	if c.State != cluster.Degraded {
		return string(c.State)
	}
	var ended []string
	for _, p := range c.Processes {
		if !p.Alive {
			ended = append(ended, p.Name)
		}
	}
	return fmt.Sprintf("%s (ended: %s)", c.State, strings.Join(ended, ", "))
}

func clusterOwner(c cluster.Status) string {
	switch {
	case c.Owner != 0:
		return "process " + strconv.Itoa(c.Owner)
	case c.Kept:
		return "kept"
	default:
		return "killed" // scaler cleanup removes it
	}
}

// clustersDir returns the folder that holds a folder for each embedded cluster.
func clustersDir() (string, error) {
	state, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(state, "clusters"), nil
}

// clusterName is cobra's check of at most one argument, a cluster's name.
func clusterName(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("argument %q: want one NAME at most; see '%s --help'", args[1], cmd.CommandPath())
	}
	if err := cluster.ValidateName(nameOr(args, defaultCluster)); err != nil {
		return usagef("%w", err)
	}
	return nil
}

func nameOr(args []string, name string) string {
	if len(args) > 0 {
		return args[0]
	}
	return name
}

func completeClusters(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	root, err := clustersDir()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := cluster.List(root) // completes what can be read
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
