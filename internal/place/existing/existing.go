// Package existing is an environment made of an existing cluster. In it a run
// makes namespaces, what is in them, and fake nodes, all with the run's label. KWOK runs as
// a process of this machine or as a pod of the cluster, and manages the run's fake nodes alone.
//
// What a mesh is, and how its control plane is found, is left to others.
package existing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
)

// Kwok is the name of the component that simulates the run's nodes and pods.
const Kwok = "kwok"

// readyTimeout is the time limit for KWOK to answer.
const readyTimeout = time.Minute

// Options state what a run brings to a cluster.
type Options struct {
	Cluster   *Cluster     // as Open returns it; it must be set
	Run       string       // value of the run's label
	Addresses netip.Prefix // of the simulated pods, one of kwok.Addresses
	Kwok      string       // its program; "" = it runs in the cluster, see StartKwok
	// Group runs KWOK, whose files are in its folder. The caller owns it.
	Group  *process.Group
	LogDir string // takes KWOK's log
	// Wrap is around all requests of API's configuration, and not around KWOK's; nil = nothing is.
	Wrap transport.WrapperFunc
}

// Environment is an existing cluster.
type Environment struct {
	cluster    *Cluster
	kubeconfig string
	usage      func() measure.Source // of KWOK; nil: it does not run yet
	note       string                // what KWOK is
	metrics    string                // of KWOK
	died       chan error
}

var _ place.Environment = (*Environment)(nil)

// Start starts KWOK for a run, if it is a process, and returns when it answers. Stopping the group ends it.
func Start(ctx context.Context, opts Options) (*Environment, error) {
	cluster := *opts.Cluster
	cluster.Config = rest.CopyConfig(cluster.Config)
	cluster.Config.Wrap(opts.Wrap)
	e := &Environment{cluster: &cluster, kubeconfig: filepath.Join(opts.Group.Dir(), "kubeconfig"), died: make(chan error, 1)}
	if err := clientcmd.WriteToFile(opts.Cluster.kubeconfig, e.kubeconfig); err != nil {
		return nil, fmt.Errorf("writing a kubeconfig for KWOK: %w", err)
	}
	if opts.Kwok == "" {
		e.note = "a pod of the cluster, which manages the nodes of this run alone"
		return e, nil
	}
	e.note = "a process of scaler's machine, which manages the nodes of this run alone"
	return e, e.startProcess(ctx, opts)
}

// startProcess starts KWOK on this machine.
func (e *Environment) startProcess(ctx context.Context, opts Options) error {
	config := filepath.Join(opts.Group.Dir(), "kwok.yaml")
	if err := os.WriteFile(config, kwok.StagesOf(kwok.PoolOf(opts.Run), opts.Addresses), 0o600); err != nil {
		return fmt.Errorf("writing KWOK's configuration: %w", err)
	}
	address, err := process.FreeAddress()
	if err != nil {
		return fmt.Errorf("finding a port for KWOK: %w", err)
	}
	started, err := opts.Group.Start(process.Spec{
		Name: Kwok, Path: opts.Kwok, Dir: opts.Group.Dir(), Log: filepath.Join(opts.LogDir, Kwok+".log"),
		Args: []string{
			"--kubeconfig=" + e.kubeconfig, "--config=" + config, "--server-address=" + address,
			"--manage-nodes-with-label-selector=" + kwok.RunLabel + "=" + opts.Run,
		},
		Env:      os.Environ(), // a kubeconfig may name a program that gets credentials
		Priority: process.PriorityLast,
	})
	if err != nil {
		return fmt.Errorf("starting KWOK: %w", err)
	}
	ready, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %v", readyTimeout))
	defer cancel()
	err = started.WaitReady(ready, func(ctx context.Context) error {
		_, err := httpget.Get(ctx, http.DefaultClient, "http://"+address+"/healthz")
		return err
	})
	if err != nil {
		return fmt.Errorf("waiting for KWOK: %w", err)
	}
	e.metrics = "http://" + address + "/metrics"
	e.usage = func() measure.Source { return measure.OfProcess(started.Handle()) }
	go func() { // ends with KWOK, which ends with its group
		<-started.Done()
		if err := started.Err(); err != nil {
			e.died <- err
		}
	}()
	return nil
}

// API is part of place.Environment.
func (e *Environment) API() place.API {
	return place.API{Config: e.cluster.Config, Kubeconfig: e.kubeconfig}
}

// Components is part of place.Environment: of an existing cluster, what the
// run has brought.
func (e *Environment) Components() []place.Component {
	c := place.Component{Name: Kwok, Target: &measure.Target{Job: Kwok, URL: e.metrics}, Note: e.note}
	if e.usage != nil {
		c.Usage = e.usage()
	}
	return []place.Component{c}
}

// Died is part of place.Environment.
func (e *Environment) Died() <-chan error { return e.died }

// Delete is part of place.Environment.
func (e *Environment) Delete(ctx context.Context, run string) (place.Deleted, error) {
	return e.cluster.Delete(ctx, run)
}

// Delete deletes all objects of the cluster that carry a run's label, and returns when they
// are gone, namespaces included. Pods on real nodes go first, and end as their grace period
// allows; those on fake nodes are deleted without it. So are pods on a real node that do not end,
// which is an error: their containers may still run. It may be called again, and for a run that made nothing.
func (c *Cluster) Delete(ctx context.Context, run string) (place.Deleted, error) {
	err := c.deleteReal(ctx, run)
	if err != nil {
		err = fmt.Errorf("deleting the pods of run %s on real nodes: %w", run, err)
	}
	const stays = true
	deleted, rest := place.DeleteRun(ctx, c.Config, run, stays)
	return deleted, errors.Join(err, rest)
}

// Runs counts the objects of each run that the cluster has.
func (c *Cluster) Runs(ctx context.Context) (map[string]place.Deleted, error) {
	return place.FindRuns(ctx, c.Config)
}

// errNotReady marks a cluster that a run does not start in.
var errNotReady = errors.New("the cluster is not ready for a run")
