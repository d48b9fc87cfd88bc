// Package embedded is an environment made of an embedded cluster: processes of
// this machine that a run starts for itself.
package embedded

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/pkg/cluster"
	"scaler.mesh/scaler/pkg/environment"
	"scaler.mesh/scaler/pkg/recorder"
)

// Environment is an embedded cluster.
type Environment struct {
	cluster *cluster.Cluster
	api     environment.API
}

var (
	_ environment.Environment = (*Environment)(nil)
	_ environment.Outages     = (*Environment)(nil)
)

// Start starts a cluster, as [cluster.Up] does, in the process group of its
// options. Stopping the group ends it.
func Start(ctx context.Context, opts cluster.Options) (*Environment, error) {
	c, err := cluster.Up(ctx, opts)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	config.QPS = -1 // no rate limit of the client's own: arrival is measured, not made
	return &Environment{cluster: c, api: environment.API{Config: config, Kubeconfig: c.Kubeconfig()}}, nil
}

// API is part of environment.Environment.
func (e *Environment) API() environment.API { return e.api }

// Components is part of environment.Environment.
func (e *Environment) Components() []environment.Component {
	var all []environment.Component
	for _, c := range e.cluster.Components() {
		settings := map[string]string{}
		for _, s := range e.cluster.Settings(c.Name) {
			settings[s.Name] = s.Value
		}
		all = append(all, environment.Component{
			Name:   c.Name,
			Target: &recorder.Target{Job: c.Name, URL: c.MetricsURL, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile},
			Usage:  recorder.OfProcess(c.Process),

			Settings: settings,
			Note:     cluster.Note(c.Name),
		})
	}
	return all
}

// Died is part of environment.Environment.
func (e *Environment) Died() <-chan error { return e.cluster.Died() }

// Absent is part of environment.Outages.
func (e *Environment) Absent(ctx context.Context, component string, length time.Duration) error {
	return e.cluster.Absent(ctx, component, length)
}

// Delete is part of environment.Environment. All pods are on fake nodes and are
// deleted without their grace period.
func (e *Environment) Delete(ctx context.Context, run string) (environment.Deleted, error) {
	if !e.cluster.Running(cluster.APIServer) {
		return nil, environment.ErrNoAPIServer
	}
	return environment.DeleteRun(ctx, e.api.Config, run, environment.DeleteOptions{Force: true})
}
