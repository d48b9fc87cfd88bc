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

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/test/realnode/nodeprograms"
)

const (
	upTimeout   = 4 * time.Minute // after all programs are built
	downTimeout = time.Minute
)

// clustersDir has the clusters of scaler, among them the node's.
func (o options) clustersDir() string { return filepath.Join(o.state, "clusters") }

// up starts what is missing of cluster, nodes and istiod, and gives the path of the kubeconfig.
// What it has started is removed when it fails.
func up(ctx context.Context, o options) (kubeconfig string, err error) {
	if err := check(ctx, o); err != nil {
		return "", err
	}
	programs := slices.Concat(embedded.Components(), nodeprograms.Names(), []string{component.Istiod, component.IstioManifests})
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
			err = fmt.Errorf("%w\nlogs of nodes are in %s*-logs", err, sites[0].dir(o))
		}
	}()
	if kubeconfig, err = clusterUp(ctx, o, paths); err != nil {
		return "", err
	}
	running, err := runningNodes(o)
	if err != nil {
		return "", err
	}
	for i, s := range sites[:o.nodes] {
		if i < running {
			progress("node " + s.name + " runs already")
			continue
		}
		if err := s.nodeUp(ctx, o, paths, kubeconfig); err != nil {
			return "", err
		}
		if i > 0 {
			if err := joinFirst(ctx, o, s); err != nil {
				return "", err
			}
		}
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
	c, err := cluster.Up(ctx, cluster.Options{Group: group, Programs: embedded.Programs(paths), KwokConfig: kwok.Stages(), Progress: progress})
	if err == nil {
		kubeconfig, err = c.Kubeconfig(), group.MarkKept()
	}
	if err != nil {
		err = errors.Join(err, group.Remove(context.WithoutCancel(ctx)))
	}
	return kubeconfig, err
}

// joinFirst connects a node with the first.
func joinFirst(ctx context.Context, o options, s site) error {
	pids := make([]int, 2)
	for i, one := range []site{sites[0], s} {
		state, err := process.Inspect(one.dir(o))
		if err != nil {
			return err
		}
		for _, c := range state.Children {
			if c.Name == holder {
				pids[i] = c.PID
			}
		}
	}
	return joinNodes(ctx, sites[0], s, pids[0], pids[1])
}

// runningNodes returns the number of nodes that run. Where some processes of a node have ended, all nodes
// are removed: they are connected with each other.
func runningNodes(o options) (int, error) {
	for i, s := range sites {
		state, err := process.Inspect(s.dir(o))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return i, nil
		case err != nil:
			return 0, err
		case state.Kept && len(state.Children) > 0 && !slices.ContainsFunc(state.Children, func(c process.Child) bool { return !c.Alive }):
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
		defer cancel()
		return 0, nodesDown(ctx, o)
	}
	return len(sites), nil
}

// down stops and removes cluster and nodes. It may be called again, and where there is none.
func down(ctx context.Context, o options) error {
	if os.Geteuid() != 0 {
		return &lackingError{"root"}
	}
	err := nodesDown(ctx, o)
	if stopErr := cluster.Stop(ctx, o.clustersDir(), name); !errors.Is(stopErr, cluster.ErrNotFound) {
		err = errors.Join(err, stopErr)
	}
	return err
}

// nodesDown stops and removes all nodes, the first last: its settings are those of the machine before.
func nodesDown(ctx context.Context, o options) error {
	var errs []error
	for _, s := range slices.Backward(sites) {
		errs = append(errs, s.down(ctx, o))
	}
	return errors.Join(errs...)
}

// down ends all processes of the node, and removes all that it has on the machine.
func (s site) down(ctx context.Context, o options) error {
	if err := s.killGroups(ctx); err != nil { // containers, and what started them
		return err
	}
	errs := []error{s.restoreSettings(o)}
	state, err := process.Inspect(s.dir(o))
	if err == nil {
		errs = append(errs, state.Remove(ctx))
	} else if !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	errs = append(errs, os.RemoveAll(s.dir(o)), s.removeLink(ctx), s.removeGroups(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing node %s: %w", s.name, err)
	}
	return nil
}
