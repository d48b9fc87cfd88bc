package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workerjob"
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

// dataplane is which proxies the pods of a mesh have: sidecars of their own, those of their
// nodes, and waypoints.
type dataplane struct {
	mesh    topology.Mesh
	knobs   controlplane.Knobs
	adapter *controlplane.ControlPlane
	nodes   int // of the run
}

// dataplane is that of the run's mesh, once the control plane is there.
func (r *run) dataplane() dataplane {
	return dataplane{mesh: r.mesh, knobs: r.spec.Knobs(), adapter: r.adapter, nodes: r.spec.nodes(r.mesh.Profile)}
}

// nodeProxies is how many nodes have a proxy that serves their pods.
func (d dataplane) nodeProxies() int {
	if d.adapter.Nodes == nil {
		return 0
	}
	return d.nodes
}

// waypoints are those of the mesh.
func (d dataplane) waypoints() []controlplane.Waypoint {
	if d.adapter.Waypoints == nil {
		return nil
	}
	return d.adapter.Waypoints.List(d.mesh)
}

// served is how many pods of the mesh have the proxy of their node.
func (d dataplane) served() (n int) {
	for _, s := range d.mesh.Services {
		if d.adapter.ServedByNode(d.mesh, s.Namespace) {
			n += s.Pods
		}
	}
	return n
}

// mixed reports whether some pods have sidecars and others the proxy of their node.
func (d dataplane) mixed() bool { return d.adapter.Mixed(d.mesh) }

// onPod returns what passes the change of a pod to a fleet, except of workers and of KWOK. Where the
// control plane reads pods in place of EndpointSlices, they are what the endpoints of a service are.
func (d dataplane) onPod(ctx context.Context, f *fleet.Fleet) func(observe.PodEvent) {
	take := func(ev observe.PodEvent) {
		if name := ev.Pod.Labels[workerjob.Label]; name != workerjob.Name && name != existing.KwokPodName {
			f.OnPod(ctx, ev)
		}
	}
	if d.adapter.Nodes == nil {
		return take
	}
	endpoints := fleet.NewPodEndpoints(d.mesh, d.waypoints())
	return func(ev observe.PodEvent) {
		if changed, ok := endpoints.Take(ev); ok {
			f.OnEndpoints(changed)
		}
		take(ev)
	}
}

// onEndpoints returns what passes a change of EndpointSlices to a fleet; nil where these are not
// what the control plane sends.
func (d dataplane) onEndpoints(f *fleet.Fleet) func(observe.EndpointsEvent) {
	switch {
	case d.adapter.Waypoints != nil, d.mixed():
		return f.OnListed
	case d.adapter.Nodes != nil:
		return nil
	}
	return f.OnEndpoints
}
