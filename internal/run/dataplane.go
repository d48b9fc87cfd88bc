package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workerjob"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// Bounds of --pods-per-node. Kubernetes supports 110 pods on a node, and some of its
// distributions 250.
const (
	defaultPodsPerNode = 20
	maxPodsPerNode     = 250

	// minNodeLifetime is the least lifetime of certificates of nodes' proxies: those of 2 min
	// would be renewed without end.
	minNodeLifetime = 4 * time.Minute
)

// ParseDataplanes parses the value of --dataplane: names with commas between them.
func ParseDataplanes(s string) []string {
	var names []string
	for name := range strings.SplitSeq(s, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// withSidecars reports whether the pods of the mesh have a proxy each.
func (s Spec) withSidecars() bool { return s.Dataplane == "" || s.Dataplane == controlplane.Sidecars }

// checkDataplane checks what goes with the data plane and what does not. The driver is of it.
func (s Spec) checkDataplane(d controlplane.Driver) error {
	if s.withSidecars() {
		return nil
	}
	if s.PodsPerNode < 1 || s.PodsPerNode > maxPodsPerNode {
		return fmt.Errorf("parsing --pods-per-node %d: want 1 to %d", s.PodsPerNode, maxPodsPerNode)
	}
	if d := s.CertificateLifetime; d != 0 && d < minNodeLifetime {
		return fmt.Errorf("parsing --certificate-lifetime %s: want %s or more with --dataplane %s, whose proxies renew in the middle between a certificate's notBefore, which may be 2m before it is issued, and its end", d, minNodeLifetime, s.Dataplane)
	}
	if s.Topology.Resolved() != (topology.Profile{}) {
		return fmt.Errorf("parsing --dataplane %q: want a plain mesh with it, without a profile and its parts", s.Dataplane)
	}
	if n := s.Topology.Defaults().Namespaces; d.Mixed && n < controlplane.MixedNamespaces {
		return fmt.Errorf("parsing --namespaces %d: want %d or more with --dataplane %s, of which some have sidecars", n, controlplane.MixedNamespaces, s.Dataplane)
	}
	for _, not := range []struct {
		flag, value string
		given       bool
	}{
		{"upgrade", s.Upgrade.String(), s.Upgrade != nil},
		{"change", s.Change.String(), s.Change.PerSecond > 0},
		{"scope", s.Own.Scope, s.Own.Scope != "" && d.Modes[0].Knobs.Scope == ""},
		{"start-delay", s.StartDelay.String(), s.StartDelay.String() != ""},
	} {
		if not.given {
			return fmt.Errorf("parsing --%s %q: want none with --dataplane %s", not.flag, not.value, s.Dataplane)
		}
	}
	return nil
}

// checkDataplanes checks those of a ladder.
func checkDataplanes(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("parsing --dataplane %q: want each data plane once", strings.Join(names, ","))
		}
	}
	return nil
}

// nodes is how many fake nodes a run has.
func (s Spec) nodes(profile topology.Profile) int {
	if s.withSidecars() {
		return max(profile.Zones, kwok.Nodes(s.Topology.Pods+profile.OutsidePods))
	}
	return max(1, (s.Topology.Pods+s.PodsPerNode-1)/s.PodsPerNode)
}

// nodeProxies is how many of them have a proxy that serves their pods.
func nodeProxies(r *run) int {
	if r.adapter.Nodes == nil {
		return 0
	}
	return r.spec.nodes(r.mesh.Profile)
}

// proxiesInterval is how often node proxies are counted that are awaited.
const proxiesInterval = 100 * time.Millisecond

// startNodeProxies makes the proxies of the nodes, which are there before the mesh is, and
// returns once all are ready.
func startNodeProxies(ctx context.Context, r *run) (experiment.Undo, error) {
	if r.adapter.Nodes == nil {
		return nil, nil
	}
	wanted := nodeProxies(r)
	r.progress.say(fmt.Sprintf("starting %d %ss", wanted, r.driver.ProxyName))
	account, proxies := r.adapter.Nodes.Objects()
	kwok.SetRun(account, r.runLabel())
	if _, err := r.api.Client.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating service account %s: %w", account.Name, err)
	}
	kwok.SetRun(proxies, r.runLabel())
	kwok.SetRun(&proxies.Spec.Template, r.runLabel())
	if _, err := r.api.Client.AppsV1().DaemonSets(proxies.Namespace).Create(ctx, proxies, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating daemon set %s: %w", proxies.Name, err)
	}
	err := awaitProxies(ctx, r, func() (done bool, state string) {
		there, ready := r.fleet.Proxies()
		return ready == wanted && there == wanted, fmt.Sprintf("%d of %d %ss are there and %d ready", there, wanted, r.driver.ProxyName, ready)
	})
	if err != nil {
		return nil, err
	}
	document := &record.Proxies{Name: r.driver.ProxyName, Nodes: wanted, Ready: &wanted}
	if r.adapter.Mixed(r.mesh) {
		document.Namespaces = slices.DeleteFunc(slices.Clone(r.mesh.Namespaces), func(n string) bool { return !r.adapter.ServedByNode(r.mesh, n) })
		document.Sidecars = new(r.spec.Topology.Pods - served(r))
	}
	r.journal.Update(func(run *record.Run) { run.Proxies = document })
	return nil, r.fleet.AwaitQuiet(ctx)
}

// waypoints are those of a run.
func waypoints(r *run) []controlplane.Waypoint {
	if r.adapter.Waypoints == nil {
		return nil
	}
	return r.adapter.Waypoints.List(r.mesh)
}

// startWaypoints makes the waypoints, which are there before the mesh is, and returns once all
// are ready.
func startWaypoints(ctx context.Context, r *run) (experiment.Undo, error) {
	wanted := len(waypoints(r))
	if wanted == 0 {
		return nil, nil
	}
	r.progress.say(fmt.Sprintf("starting %d waypoints", wanted))
	if err := r.applier.Prepare(ctx, r.adapter.Waypoints.Objects(r.mesh, r.runLabel())); err != nil {
		return nil, fmt.Errorf("creating waypoints: %w", err)
	}
	err := awaitProxies(ctx, r, func() (done bool, state string) {
		ready, _ := r.fleet.Waypoints()
		return ready == wanted, fmt.Sprintf("%d of %d waypoints are ready", ready, wanted)
	})
	if err != nil {
		return nil, err
	}
	r.journal.Update(func(run *record.Run) { run.Proxies.Waypoints = &record.Waypoints{Ready: &wanted} })
	return nil, r.fleet.AwaitQuiet(ctx)
}

// awaitProxies returns once the proxies are done that are there before the mesh.
func awaitProxies(ctx context.Context, r *run, are func() (done bool, state string)) error {
	limited, cancel := context.WithTimeout(ctx, r.spec.slowed(r.spec.ConvergeTimeout))
	defer cancel()
	for {
		done, state := are()
		if done {
			return nil
		}
		if err := experiment.WaitUntil(limited, time.Now().Add(proxiesInterval)); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("starting proxies: %s after %s", state, r.spec.ConvergeTimeout)
		}
	}
}

// takePods is what a change of a pod is passed to, except of workers and of KWOK. Where the control plane reads pods in
// place of EndpointSlices, they are what the endpoints of a service are.
func takePods(ctx context.Context, r *run) func(observe.PodEvent) {
	take := func(ev observe.PodEvent) {
		if name := ev.Pod.Labels[workerjob.Label]; name != workerjob.Name && name != existing.KwokPodName {
			r.fleet.OnPod(ctx, ev)
		}
	}
	if r.adapter.Nodes == nil {
		return take
	}
	endpoints := fleet.NewPodEndpoints(r.mesh, waypoints(r))
	return func(ev observe.PodEvent) {
		if changed, ok := endpoints.Take(ev); ok {
			r.fleet.OnEndpoints(changed)
		}
		take(ev)
	}
}

// takeEndpoints is what a change of EndpointSlices is passed to; nil where these are not
// what the control plane sends.
func takeEndpoints(r *run) func(observe.EndpointsEvent) {
	switch {
	case r.adapter.Waypoints != nil, r.adapter.Mixed(r.mesh):
		return func(ev observe.EndpointsEvent) { r.fleet.OnListed(ev) }
	case r.adapter.Nodes != nil:
		return nil
	}
	return r.fleet.OnEndpoints
}

// served are how many pods of the mesh have the proxy of their node.
func served(r *run) (n int) {
	for _, s := range r.mesh.Services {
		if r.adapter.ServedByNode(r.mesh, s.Namespace) {
			n += s.Pods
		}
	}
	return n
}
