package fleet

import (
	"context"
	"net/netip"
	"time"

	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// pod is one pod of the run and its proxy.
type pod struct {
	id, namespace, name, service string
	ofNode                       bool // it is that of a node's proxy, and none of the mesh
	ofWaypoint                   bool // it is that of a waypoint, whose name service is, and none of the mesh
	served                       bool // it has no proxy of its own, but that of its node

	latencies  *Latencies // of the activity that it belongs to: the rollout's, or another's
	order      int        // among all pods seen
	rollout    bool       // it is of the rollout
	background int        // number of the background activity when it was first seen

	// guarded by Pods.mu
	stop       context.CancelFunc // of its proxy; nil until it was started
	missed     bool               // its worker was lost, and it has no certificate since
	worker     worker.Worker      // that runs it; nil where it is a real one, or was not started
	real       *realPod           // nil where it is a simulated one
	revision   *revision          // of the control plane that serves a simulated one; nil until it was started
	bare       bool               // its sidecar asks for no certificate, or it is a node's proxy
	node       string             // that it runs on; "" = not known yet
	times      startup
	addr       netip.Addr
	ready      bool      // as last seen
	reported   bool      // handed to the reporters
	incomplete bool      // and that although it lacked something
	chosen     bool      // to be replaced
	gone       bool      // or being deleted: it is none of the mesh any more
	ended      time.Time // when it was seen gone; zero while it is there, terminating or not
	connection connection
}

// startup are the moments of one pod's start, zero until they come.
type startup struct {
	record.Startup

	served time.Time // the connection was up of the attempt that was answered first
}

func newPod(ev observe.PodEvent) *pod {
	p := &pod{
		id:        ev.Pod.Namespace + "/" + ev.Pod.Name,
		namespace: ev.Pod.Namespace, name: ev.Pod.Name, service: ev.Pod.Labels[kwok.ServiceLabel],
	}
	p.times.Seen = ev.Seen
	return p
}

// extra reports whether the pod is none of the mesh: it is there for its proxy.
func (p *pod) extra() bool { return p.ofNode || p.ofWaypoint }

// located takes that a pod has its IP address. The caller holds Pods.mu.
func (p *pod) located(ev observe.PodEvent) {
	p.times.IP = ev.Seen
	p.addr, _ = netip.ParseAddr(ev.Pod.Status.PodIP) // what is no address equals none
}

// passed takes the moments between which KWOK's Stages work on a pod, as far as a
// change shows them. The caller holds Pods.mu.
func (p *pod) passed(ev observe.PodEvent) {
	if ev.Pod.Spec.NodeName != "" {
		p.node = ev.Pod.Spec.NodeName
		first(&p.times.Scheduled, ev.Seen)
	}
	if ev.Pod.Annotations[kwok.SidecarAnnotation] == kwok.SidecarReady {
		first(&p.times.Notified, ev.Seen)
	}
}

// starts are where the start of a pod's sidecar is recorded.
func (p *pod) starts() *Latencies {
	if p.real != nil {
		return p.real.starts
	}
	return p.latencies
}

// first sets a moment that counts only once, and reports whether this was it.
func first(t *time.Time, at time.Time) bool {
	if !t.IsZero() {
		return false
	}
	*t = at
	return true
}

// certified is when the pod's sidecar had its certificate or, where it asks for none,
// its first stream. Zero = not yet. The caller holds Pods.mu.
func (p *pod) certified() time.Time {
	if p.bare {
		return p.times.Connected
	}
	return p.times.Certified
}
