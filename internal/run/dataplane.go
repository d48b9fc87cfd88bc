package run

import (
	"context"
	"time"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workerjob"
	"scaler.mesh/scaler/pkg/record"
)

// minNodeLifetime is the least lifetime of certificates of nodes' proxies: those of 2 min
// would be renewed without end.
const minNodeLifetime = 4 * time.Minute

// WithSidecars reports whether the pods of the mesh have a proxy each.
func (s Spec) WithSidecars() bool {
	return s.Dataplane() == "" || s.Dataplane() == controlplane.Sidecars
}

// startDelay returns the time from a pod's address to the start of its sidecar; none where pods do not all have one.
func (s Spec) startDelay() scenario.Delay {
	if d := s.Mesh.Sidecars.StartDelay; d != nil && s.WithSidecars() {
		return *d
	}
	return scenario.Delay{}
}

// delayAnew returns the time from the address of a pod to the start of its proxy where both take the place of others in an upgrade of a mesh with
// proxies of nodes. There the rollout has no such delay. It is that which sidecars have by default: ztunnels are replaced one after
// another, so that it decides how many start in a second.
func (s Spec) delayAnew() scenario.Delay {
	if s.ControlPlane.Upgrade.To == "" || s.WithSidecars() {
		return scenario.Delay{}
	}
	return *scenario.Default().Mesh.Sidecars.StartDelay
}

// nodesTake returns the approximate time in which an upgrade replaces the proxies of all nodes.
func (s Spec) nodesTake() time.Duration {
	for _, p := range s.upgrade().Proxies {
		if p.Kind == record.UpgradeNodes {
			return time.Duration(p.Pods) * s.delayAnew().Average()
		}
	}
	return 0
}

// checkDataplane checks what goes with the data plane and what does not. The driver is of it.
func (s Spec) checkDataplane(d controlplane.Driver) error {
	if s.WithSidecars() {
		return nil
	}
	if d := time.Duration(s.Mesh.Sidecars.CertificateLifetime); d != 0 && d < minNodeLifetime {
		return scenario.Refuse("mesh.sidecars.certificateLifetime", d, "%s or more with mesh.dataplane %s, whose proxies renew in the middle between a certificate's notBefore, which may be 2m before it is issued, and its end", minNodeLifetime, s.Dataplane())
	}
	if s.Profile() != (scenario.Parts{}) {
		return scenario.Refuse("mesh.dataplane", s.Dataplane(), "a plain mesh with it, without a profile and its parts")
	}
	if n := s.topology().Defaults().Namespaces; d.Mixed && s.Captured == nil && n < controlplane.MixedNamespaces {
		return scenario.Refuse("mesh.namespaces", n, "%d or more with mesh.dataplane %s, of which some have sidecars", controlplane.MixedNamespaces, s.Dataplane())
	}
	return s.refuse([]refusal{
		{s.Mesh.Settings.Scope != "" && d.Modes[0].Knobs.Scope == "", "mesh.settings.scope"},
	}, "none with mesh.dataplane "+s.Dataplane())
}

// movedProxies returns what an upgrade moves of a mesh whose nodes have proxies, in the order in which Istio's documentation of an upgrade
// in ambient mode has it: https://istio.io/latest/docs/ambient/upgrade/helm/.
func (s Spec) movedProxies() []record.UpgradeUnit {
	driver, err := s.Driver()
	if err != nil {
		return nil // Validate reports it
	}
	moved := []record.UpgradeUnit{{Kind: record.UpgradeNodes, Name: driver.Proxy.Name, Pods: s.nodes(s.mesh().Profile)}}
	if n := s.waypointPods(); n > 0 {
		moved = append(moved, record.UpgradeUnit{Kind: record.UpgradeWaypoints, Name: "waypoint", Pods: n})
	}
	return moved
}

// waypointPods returns the number of pods of waypoints.
func (s Spec) waypointPods() (n int) {
	switch {
	case s.Captured != nil:
		for _, w := range s.Captured.Mesh.Waypoints {
			n += w.Replicas
		}
	case s.Mesh.Waypoints == controlplane.NamespaceWaypoints:
		n = len(s.mesh().Namespaces)
	case s.Mesh.Waypoints == controlplane.ServiceWaypoints:
		n = len(s.mesh().Services)
	}
	return n
}

// dataplane states which proxies the pods of a mesh have: sidecars of their own, those of their
// nodes, and waypoints.
type dataplane struct {
	mesh    topology.Mesh
	knobs   scenario.Settings
	adapter *controlplane.ControlPlane
	nodes   int // of the run
}

// dataplane returns the data plane of the run's mesh, once the control plane is there.
func (r *run) dataplane() dataplane {
	return dataplane{mesh: r.mesh, knobs: r.spec.Knobs(), adapter: r.adapter, nodes: r.spec.nodes(r.mesh.Profile)}
}

// nodeProxies returns the number of nodes whose proxy serves their pods.
func (d dataplane) nodeProxies() int {
	if d.adapter.Nodes == nil {
		return 0
	}
	return d.nodes
}

// waypoints returns the waypoints of the mesh.
func (d dataplane) waypoints() []controlplane.Waypoint {
	if all := d.adapter.Waypoints(); all != nil {
		return all.List(d.mesh)
	}
	return nil
}

// served returns the number of pods of the mesh that are served by the proxy of their node.
func (d dataplane) served() (n int) {
	for _, s := range d.mesh.Services {
		if d.adapter.ServedByNode(d.mesh, s) {
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
		for _, changed := range endpoints.Take(ev) {
			f.OnEndpoints(changed)
		}
		take(ev)
	}
}

// onEndpoints returns what passes a change of EndpointSlices to a fleet; nil where these are not
// what the control plane sends.
func (d dataplane) onEndpoints(f *fleet.Fleet) func(observe.EndpointsEvent) {
	switch {
	case d.adapter.Waypoints() != nil, d.mixed(), d.nodeProxies() > 0 && d.mesh.Endpoints > 0: // of a captured mesh, whose pods outside are endpoints, too
		return f.OnListed
	case d.adapter.Nodes != nil:
		return nil
	}
	return f.OnEndpoints
}
