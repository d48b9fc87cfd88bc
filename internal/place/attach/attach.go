// Package attach finds the control plane that a cluster has already, checks that a run may
// start there, and connects to it, without changing either. What a run makes there is left to
// others.
package attach

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/pkg/scenario"
)

// Target names a cluster and its control plane.
type Target struct {
	existing.Target
	Namespace string // of the control plane; "" = its default
	Revision  string // likewise; "" = the only one
	// Address is HOST:PORT where proxies reach the control plane from here; "" = its pods'
	// ports are forwarded through the API server.
	Address string
	// Inside has proxies run in the cluster: they connect to Address or, where it is "", to the
	// Service that the cluster's own proxies connect to.
	Inside bool
	// InsideKwok has KWOK run in the cluster.
	InsideKwok bool
	// Replays states that a captured mesh is rolled out.
	Replays bool
	// Injected states that only pods with the cluster's own sidecars are created: there are no fake nodes, and no proxy of
	// this program connects to the control plane.
	Injected bool
	// Metrics is HOST:PORT of the control plane's own metrics, for one with an Address; "" = those
	// of its pods are read through the API server, if the cluster has its pods.
	Metrics string
}

// check is one look at a cluster.
type check struct {
	name string
	fix  string // what to do when it fails
	// do looks, and puts what it finds into f; detail says that for people.
	do func(ctx context.Context, f *Found) (detail string, err error)
}

// checks returns the checks in their order: each needs what those before it have found. run is the
// value of the run's label.
func checks(d controlplane.Driver, t Target, knobs []scenario.Settings, run string) []check {
	return []check{
		{"kubeconfig", "name a context of the kubeconfig", func(_ context.Context, f *Found) (detail string, err error) {
			if f.Cluster, err = t.Open(); err != nil {
				return "", err
			}
			return "context " + f.Cluster.Context + ", " + f.Cluster.Server, nil
		}},
		{"API server", "wait until it is ready, or correct the kubeconfig", func(ctx context.Context, f *Found) (_ string, err error) {
			f.Kubernetes, err = f.Cluster.Ready(ctx)
			return f.Kubernetes, err
		}},
		{"rights", "bind the ClusterRole in docs/guides/permissions.md to the user of the context", func(ctx context.Context, f *Found) (string, error) {
			return f.checkRights(ctx, t, d.Installed)
		}},
		{"nodes and pods", "see docs/guides/own-cluster.md", func(ctx context.Context, f *Found) (_ string, err error) {
			if t.Injected {
				return "", nil
			}
			if f.Neighbours, err = f.Cluster.Look(ctx, run); err != nil {
				return "", err
			}
			if f.Neighbours.Kwok != "" {
				return "", fmt.Errorf("the KWOK of Deployment %s manages all nodes: want one without --manage-all-nodes=true, or none: it would manage the run's nodes, too", f.Neighbours.Kwok)
			}
			detail := "addresses of " + f.Neighbours.Addresses.String() + " are free"
			if sets := f.Neighbours.DaemonSets; len(sets) > 0 {
				detail += "; DaemonSets whose pods come onto fake nodes: " + strings.Join(sets, ", ")
			}
			return detail, nil
		}},
		{"control plane", "see docs/guides/own-cluster.md", func(ctx context.Context, f *Found) (_ string, err error) {
			if f.Installation, err = d.Installed.Find(ctx, controlplane.FindOptions{REST: f.Cluster.Config, Namespace: t.Namespace, Revision: t.Revision}); err != nil {
				return "", err
			}
			for _, k := range knobs {
				if why := d.Installed.Check(f.Installation, k); why != "" {
					return "", errors.New(why)
				}
			}
			if t.Address == "" && len(f.Installation.Pods) == 0 && !t.Injected {
				return "", errors.New("the control plane has no ready pods in the cluster: want place.address, where it is reached from here")
			}
			if pods := len(f.Installation.Pods); t.Metrics != "" && pods > 1 {
				return "", scenario.Refuse("place.metrics", t.Metrics, "none with %d pods of the control plane, of which it is one: without, the metrics of each are read through the API server", pods)
			}
			return f.Installation.Describe(), nil
		}},
	}
}

func (f *Found) checkRights(ctx context.Context, t Target, i *controlplane.Installed) (string, error) {
	rights, roles := existing.Rights(i.Rights), existing.RoleName
	if t.Replays {
		rights = append(rights, i.MeshRights...)
		roles += " and " + existing.MeshesRoleName
	}
	if t.Inside {
		rights = append(rights, existing.WorkerRights()...)
		roles += " and " + existing.WorkersRoleName
	}
	if t.InsideKwok {
		rights = append(rights, existing.KwokRights()...)
		roles += " and " + existing.KwokRoleName
	}
	missing, err := f.Cluster.MissingRights(ctx, rights)
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("context %s lacks rights: %s; docs/guides/permissions.md has a ClusterRole with all", f.Cluster.Context, strings.Join(missing, ", "))
	}
	return "all of ClusterRole " + roles, nil
}
