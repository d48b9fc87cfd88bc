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
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// proxiesInterval is the time between two counts of the proxies that a step waits for.
const proxiesInterval = 100 * time.Millisecond

// proxies starts the proxies that are there before the mesh is: those of nodes, and waypoints.
type proxies struct {
	dataplane dataplane
	name      string // of the proxy of a node, as in ztunnel
	label     string // of the run
	client    kubernetes.Interface
	applier   *workload.Applier
	fleet     *fleet.Fleet
	journal   *journal.Journal
	say       func(string)
	timeout   time.Duration
}

func (r *run) proxies() proxies {
	return proxies{
		dataplane: r.dataplane(), name: r.driver.Proxy.Name, label: r.runLabel(), client: r.api.Client, applier: r.applier,
		fleet: r.fleet, journal: r.journal, say: r.progress.say, timeout: r.spec.slowed(time.Duration(r.spec.Phases.ConvergeTimeout)),
	}
}

// startNodeProxies makes the proxies of the nodes, and returns once all are ready.
func (r *run) startNodeProxies(ctx context.Context) error {
	return r.proxies().startOfNodes(ctx)
}

// startWaypoints makes the waypoints, and returns once all are ready.
func (r *run) startWaypoints(ctx context.Context) error {
	return r.proxies().startWaypoints(ctx)
}

func (p proxies) startOfNodes(ctx context.Context) error {
	adapter, mesh := p.dataplane.adapter, p.dataplane.mesh
	if adapter.Nodes == nil {
		return nil
	}
	wanted := p.dataplane.nodeProxies()
	p.say(fmt.Sprintf("starting %d %ss", wanted, p.name))
	account, daemons := adapter.Nodes.Objects()
	kwok.SetRun(account, p.label)
	if _, err := p.client.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating service account %s: %w", account.Name, err)
	}
	kwok.SetRun(daemons, p.label)
	kwok.SetRun(&daemons.Spec.Template, p.label)
	if _, err := p.client.AppsV1().DaemonSets(daemons.Namespace).Create(ctx, daemons, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating daemon set %s: %w", daemons.Name, err)
	}
	err := p.await(ctx, func() (done bool, state string) {
		there, ready := p.fleet.Proxies()
		return ready == wanted && there == wanted, fmt.Sprintf("%d of %d %ss are there and %d ready", there, wanted, p.name, ready)
	})
	if err != nil {
		return err
	}
	document := &record.Proxies{Name: p.name, Nodes: wanted, Ready: &wanted}
	if p.dataplane.mixed() {
		document.Namespaces = slices.DeleteFunc(slices.Clone(mesh.Namespaces), func(n string) bool {
			return !slices.ContainsFunc(mesh.Services, func(s topology.Service) bool { return s.Namespace == n && adapter.ServedByNode(mesh, s) })
		})
		document.Sidecars = new(mesh.Sidecars() - p.dataplane.served())
	}
	p.journal.Update(func(run *record.Run) { run.Proxies = document })
	return p.fleet.AwaitQuiet(ctx)
}

func (p proxies) startWaypoints(ctx context.Context) error {
	wanted := 0 // pods
	for _, w := range p.dataplane.waypoints() {
		wanted += w.Pods
	}
	if wanted == 0 {
		return nil
	}
	p.say(fmt.Sprintf("starting %d pods of waypoints", wanted))
	if err := p.applier.Prepare(ctx, p.dataplane.adapter.Waypoints().Objects(p.dataplane.mesh, p.label)); err != nil {
		return fmt.Errorf("creating waypoints: %w", err)
	}
	err := p.await(ctx, func() (done bool, state string) {
		ready := p.fleet.Waypoints()
		return ready == wanted, fmt.Sprintf("%d of %d pods of waypoints are ready", ready, wanted)
	})
	if err != nil {
		return err
	}
	p.journal.Update(func(run *record.Run) { run.Proxies.Waypoints = &record.Waypoints{Ready: &wanted} })
	return p.fleet.AwaitQuiet(ctx)
}

// await returns once the proxies are done.
func (p proxies) await(ctx context.Context, are func() (done bool, state string)) error {
	limited, cancel := context.WithTimeout(ctx, p.timeout)
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
			return fmt.Errorf("starting proxies: %s after %s", state, p.timeout)
		}
	}
}

// moveNodes has the DaemonSet of the nodes' proxies replace its pods by ones of a control plane, as its update strategy says.
func (p proxies) moveNodes(ctx context.Context, to *controlplane.ControlPlane, at time.Time) error {
	_, daemons := to.Nodes.Objects()
	patch, err := workload.RestartPatch(nil, daemons.Spec.Template.Annotations, at)
	if err != nil {
		return err
	}
	_, err = p.client.AppsV1().DaemonSets(daemons.Namespace).Patch(ctx, daemons.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("moving the %ss: %w", p.name, err)
	}
	return nil
}

// moveWaypoints labels the Gateways of the waypoints with the revision of a control plane, which then changes their Deployments. Without
// revisions it restarts the Deployments.
func (p proxies) moveWaypoints(ctx context.Context, to *controlplane.ControlPlane, at time.Time) error {
	if to.Revision != nil {
		return p.applier.Relabel(ctx, slices.DeleteFunc(to.Waypoints().Objects(p.dataplane.mesh, p.label), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Gateway" }))
	}
	restart, err := workload.RestartPatch(nil, nil, at)
	if err != nil {
		return err
	}
	for _, w := range p.dataplane.waypoints() {
		of := p.client.AppsV1().Deployments(w.Namespace)
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
