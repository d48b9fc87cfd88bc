package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/cluster"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/experiment"
)

const (
	// name is that of the cluster, of its context, and of the node.
	name = "realnode"

	upTimeout   = 4 * time.Minute // after all programs are built
	downTimeout = time.Minute
)

// clustersDir has the clusters of scaler, among them the node's.
func (o options) clustersDir() string { return filepath.Join(o.state, "clusters") }

// nodeDir has the node's files. It is not below scaler's own folder, where `scaler cleanup` would
// remove what is left after a kill, but not the node's control groups.
func (o options) nodeDir() string { return o.state + "-realnode" }

// logDir has the logs of a node, also after a start that failed.
func (o options) logDir() string { return o.state + "-realnode-logs" }

// up starts what is missing of cluster, node and istiod, and gives the path of the kubeconfig.
// What it has started is removed when it fails.
func up(ctx context.Context, o options) (kubeconfig string, err error) {
	if err := check(ctx, o); err != nil {
		return "", err
	}
	programs := slices.Concat(experiment.ClusterComponents(), nodePrograms, []string{component.Istiod, component.IstioManifests})
	if o.sidecars {
		programs = append(programs, component.PilotAgent, component.Envoy)
	}
	paths, err := component.Paths(ctx, o.programs, programs...)
	if err != nil {
		return "", err
	}
	if o.manifests != "" {
		paths[component.IstioManifests] = o.manifests
	}
	ctx, cancel := context.WithTimeoutCause(ctx, upTimeout, fmt.Errorf("not ready after %v", upTimeout))
	defer cancel()
	defer func() {
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
			defer cancel()
			err = errors.Join(err, down(undo, o))
			err = fmt.Errorf("%w\nits logs are in %s", err, o.logDir())
		}
	}()
	if kubeconfig, err = clusterUp(ctx, o, paths); err != nil {
		return "", err
	}
	running, err := nodeRuns(o)
	if err != nil {
		return "", err
	}
	if running {
		progress("the node runs already")
	} else if err := nodeUp(ctx, o, paths, kubeconfig); err != nil {
		return "", err
	}
	if err := importImages(ctx, o, paths); err != nil {
		return "", err
	}
	proxy, err := install(ctx, o, paths, kubeconfig)
	if err == nil && o.sidecars {
		err = importProxy(ctx, o, paths, proxy)
	}
	return kubeconfig, err
}

// clusterUp joins the cluster that runs, or starts it.
func clusterUp(ctx context.Context, o options, paths map[string]string) (kubeconfig string, err error) {
	all, err := cluster.List(o.clustersDir())
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(all, func(s cluster.Status) bool { return s.Name == name }); i >= 0 {
		if all[i].State == cluster.Running && all[i].Kept {
			progress("the cluster runs already")
			return all[i].Kubeconfig, nil
		}
		if err := down(ctx, o); err != nil {
			return "", err
		}
	}
	group, err := process.OpenGroup(filepath.Join(o.clustersDir(), name), process.GroupOptions{Keep: true})
	if err != nil {
		return "", err
	}
	c, err := cluster.Up(ctx, cluster.Options{Group: group, Programs: experiment.ClusterPrograms(paths), KwokConfig: kwok.Stages(), Progress: progress})
	if err == nil {
		kubeconfig, err = c.Kubeconfig(), group.MarkKept()
	}
	if err != nil {
		err = errors.Join(err, group.Remove(context.WithoutCancel(ctx)))
	}
	return kubeconfig, err
}

// nodeRuns reports whether all processes of the node run. A node of which some have ended is
// removed.
func nodeRuns(o options) (bool, error) {
	state, err := process.Inspect(o.nodeDir())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case state.Kept && len(state.Children) > 0 && !slices.ContainsFunc(state.Children, func(c process.Child) bool { return !c.Alive }):
		return true, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
	defer cancel()
	return false, nodeDown(ctx, o)
}

// down stops and removes cluster and node. It may be called again, and where there is none.
func down(ctx context.Context, o options) error {
	if os.Geteuid() != 0 {
		return &lackingError{"root"}
	}
	err := nodeDown(ctx, o)
	if stopErr := cluster.Stop(ctx, o.clustersDir(), name); !errors.Is(stopErr, cluster.ErrNotFound) {
		err = errors.Join(err, stopErr)
	}
	return err
}

// nodeDown ends all processes of the node, and removes all that it has on the machine.
func nodeDown(ctx context.Context, o options) error {
	if err := killGroups(ctx); err != nil { // containers, and what started them
		return err
	}
	errs := []error{restoreSettings(o)}
	state, err := process.Inspect(o.nodeDir())
	if err == nil {
		errs = append(errs, state.Remove(ctx))
	} else if !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	errs = append(errs, os.RemoveAll(o.nodeDir()), removeLink(ctx), removeGroups(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the node: %w", err)
	}
	return nil
}
