// Package embedded is an environment made of an embedded cluster: processes of
// this machine that a run starts for itself.
package embedded

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
)

// Environment is an embedded cluster.
type Environment struct {
	cluster *cluster.Cluster
	api     place.API
}

var _ place.Environment = (*Environment)(nil)

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
	config.QPS = -1                           // no rate limit of the client's own: arrival is measured, not made
	config.WarningHandler = rest.NoWarnings{} // about fields of captured objects, which are replayed as they are
	return &Environment{cluster: c, api: place.API{Config: config, Kubeconfig: c.Kubeconfig()}}, nil
}

// API is part of place.Environment.
func (e *Environment) API() place.API { return e.api }

// Components is part of place.Environment.
func (e *Environment) Components() []place.Component {
	var all []place.Component
	for _, c := range e.cluster.Components() {
		settings := map[string]string{}
		for _, s := range e.cluster.Settings(c.Name) {
			settings[s.Name] = s.Value
		}
		all = append(all, place.Component{
			Name: c.Name,
			Target: &measure.Target{
				Job: c.Name, URL: c.MetricsURL, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile, Interval: measure.ClusterInterval,
			},
			Usage: measure.OfProcess(c.Process),

			Settings: settings,
			Note:     cluster.Note(c.Name),
		})
	}
	return all
}

// Died is part of place.Environment.
func (e *Environment) Died() <-chan error { return e.cluster.Died() }

// Absent has a component ended and, when it has been gone for length, started again, and
// returns when it is ready. It does not count as having died.
func (e *Environment) Absent(ctx context.Context, component string, length time.Duration) error {
	return e.cluster.Absent(ctx, component, length)
}

// Delete is part of place.Environment. All pods are on fake nodes and are
// deleted without their grace period.
func (e *Environment) Delete(ctx context.Context, run string) (place.Deleted, error) {
	if !e.cluster.Running(cluster.APIServer) || !e.cluster.Running(cluster.Etcd) {
		return nil, place.ErrNoAPIServer
	}
	const stays = false // the cluster goes with the run
	return place.DeleteRun(ctx, e.api.Config, run, stays)
}
