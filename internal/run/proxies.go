package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// proxiesInterval is the time between two counts of the proxies that a step waits for.
const proxiesInterval = 100 * time.Millisecond

// startNodeProxies makes the proxies of the nodes, and returns once all are ready.
func (r *run) startNodeProxies(ctx context.Context) error {
	if r.adapter.Nodes == nil {
		return nil
	}
	wanted, name := r.dataplane().nodeProxies(), r.driver.Proxy.Name
	r.progress.say(fmt.Sprintf("starting %d %ss", wanted, name))
	account, daemons := r.adapter.Nodes.Objects()
	kwok.SetRun(account, r.runLabel())
	if _, err := r.api.Client.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating service account %s: %w", account.Name, err)
	}
	kwok.SetRun(daemons, r.runLabel())
	kwok.SetRun(&daemons.Spec.Template, r.runLabel())
	if _, err := r.api.Client.AppsV1().DaemonSets(daemons.Namespace).Create(ctx, daemons, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating daemon set %s: %w", daemons.Name, err)
	}
	err := r.awaitProxies(ctx, func() (done bool, state string) {
		there, ready := r.fleet.Proxies()
		return ready == wanted && there == wanted, fmt.Sprintf("%d of %d %ss are there and %d ready", there, wanted, name, ready)
	})
	if err != nil {
		return err
	}
	document := &record.Proxies{Name: name, Nodes: wanted, Ready: &wanted}
	if r.dataplane().mixed() {
		document.Namespaces = slices.DeleteFunc(slices.Clone(r.mesh.Namespaces), func(n string) bool {
			return !slices.ContainsFunc(r.mesh.Services, func(s topology.Service) bool { return s.Namespace == n && r.adapter.ServedByNode(r.mesh, s) })
		})
		document.Sidecars = new(r.mesh.Sidecars() - r.dataplane().served())
	}
	r.journal.Update(func(run *record.Run) { run.Proxies = document })
	return r.fleet.AwaitQuiet(ctx)
}

// startWaypoints makes the waypoints, and returns once all are ready.
func (r *run) startWaypoints(ctx context.Context) error {
	wanted := 0 // pods
	for _, w := range r.dataplane().waypoints() {
		wanted += w.Pods
	}
	if wanted == 0 {
		return nil
	}
	r.progress.say(fmt.Sprintf("starting %d pods of waypoints", wanted))
	if err := r.applier.Prepare(ctx, r.adapter.Waypoints().Objects(r.mesh, r.runLabel())); err != nil {
		return fmt.Errorf("creating waypoints: %w", err)
	}
	err := r.awaitProxies(ctx, func() (done bool, state string) {
		ready := r.fleet.Waypoints()
		return ready == wanted, fmt.Sprintf("%d of %d pods of waypoints are ready", ready, wanted)
	})
	if err != nil {
		return err
	}
	r.journal.Update(func(run *record.Run) { run.Proxies.Waypoints = &record.Waypoints{Ready: &wanted} })
	return r.fleet.AwaitQuiet(ctx)
}

// awaitProxies calls are until it reports done, or until the time limit for convergence. state describes the progress, for
// the error.
func (r *run) awaitProxies(ctx context.Context, are func() (done bool, state string)) error {
	timeout := time.Duration(r.spec.Phases.ConvergeTimeout)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		done, state := are()
		if done {
			return nil
		}
		if err := task.WaitUntil(limited, time.Now().Add(proxiesInterval)); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("starting proxies: %s after %s", state, timeout)
		}
	}
}

// moveNodes has the DaemonSet of the nodes' proxies replace its pods by ones of a control plane, as its update strategy says.
func (r *run) moveNodes(ctx context.Context, to *controlplane.ControlPlane, at time.Time) error {
	_, daemons := to.Nodes.Objects()
	patch, err := workload.RestartPatch(nil, daemons.Spec.Template.Annotations, at)
	if err != nil {
		return err
	}
	_, err = r.api.Client.AppsV1().DaemonSets(daemons.Namespace).Patch(ctx, daemons.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("moving the %ss: %w", r.driver.Proxy.Name, err)
	}
	return nil
}

// moveWaypoints labels the Gateways of the waypoints with the revision of a control plane, which then changes their Deployments. Without
// revisions it restarts the Deployments.
func (r *run) moveWaypoints(ctx context.Context, to *controlplane.ControlPlane, at time.Time) error {
	if to.Revision != nil {
		return r.applier.Relabel(ctx, slices.DeleteFunc(to.Waypoints().Objects(r.mesh, r.runLabel()), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Gateway" }))
	}
	restart, err := workload.RestartPatch(nil, nil, at)
	if err != nil {
		return err
	}
	for _, w := range r.dataplane().waypoints() {
		of := r.api.Client.AppsV1().Deployments(w.Namespace)
		list, err := of.List(ctx, metav1.ListOptions{LabelSelector: kwok.ServiceLabel + "=" + w.Label})
		if err != nil {
			return fmt.Errorf("restarting waypoint %s: %w", w.Name, err)
		}
		for _, d := range list.Items {
			if _, err := of.Patch(ctx, d.Name, types.StrategicMergePatchType, restart, metav1.PatchOptions{}); err != nil {
				return fmt.Errorf("restarting waypoint %s: %w", w.Name, err)
			}
		}
	}
	return nil
}
