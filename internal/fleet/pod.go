package fleet

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// pod holds the facts of a pod of the run that do not depend on its kind. Members embed it, and replace
// methods that differ.
type pod struct {
	fleet                        *Fleet
	id, namespace, name, service string
	member                       member // that it is
	fake                         bool   // it is on a fake node: KWOK makes it Ready, and its status may be changed

	latencies  *Latencies // of the activity that it belongs to: the rollout's, or another's
	order      int        // among all pods seen
	rollout    bool       // it is of the rollout
	background int        // number of the background activity when it was first seen

	// guarded by Pods.mu
	stop     context.CancelFunc // ends what serves it; nil until that was started
	node     string             // that it runs on; "" = not known yet
	times    startup
	addr     netip.Addr
	ready    bool      // as last seen
	reported bool      // handed to the reporters
	chosen   bool      // to be replaced
	gone     bool      // or being deleted: it is none of the mesh any more
	ended    time.Time // when it was seen gone; zero while it is there, terminating or not
	whole    bool      // as of the last response, its own proxy had all that it requested
}

// startup are the moments of one pod's start, zero until they come.
type startup struct {
	record.Startup

	answeredOn time.Time // the connection was up of the attempt that was answered first
}

func newPod(f *Fleet, ev observe.PodEvent, order int) *pod {
	p := &pod{
		fleet: f, order: order,
		id:        ev.Pod.Namespace + "/" + ev.Pod.Name,
		namespace: ev.Pod.Namespace, name: ev.Pod.Name, service: ev.Pod.Labels[kwok.ServiceLabel],
		fake: ev.Pod.Labels[kwok.RealLabel] == "",
	}
	p.times.Seen = ev.Seen
	return p
}

// setAddress records that a pod has its IP address. The caller holds Pods.mu.
func (p *pod) setAddress(ev observe.PodEvent) {
	p.times.IP = ev.Seen
	p.addr, _ = netip.ParseAddr(ev.Pod.Status.PodIP) // an invalid one equals no other
}

// setMoments records the moments between which KWOK's Stages work on a pod, as far as a
// change shows them. The caller holds Pods.mu.
func (p *pod) setMoments(ev observe.PodEvent) {
	if ev.Pod.Spec.NodeName != "" {
		p.node = ev.Pod.Spec.NodeName
		setOnce(&p.times.Scheduled, ev.Seen)
	}
	if ev.Pod.Annotations[kwok.SidecarAnnotation] == kwok.SidecarReady {
		setOnce(&p.times.Notified, ev.Seen)
	}
}

// update changes the pod under the lock.
func (p *pod) update(change func()) {
	p.fleet.Pods.mu.Lock()
	defer p.fleet.Pods.mu.Unlock()
	change()
}

// setOnce sets a moment that is not set yet, and reports whether it did.
func setOnce(t *time.Time, at time.Time) bool {
	if !t.IsZero() {
		return false
	}
	*t = at
	return true
}

func (p *pod) seen(*corev1.Pod) {}

// becameReady records the time until the pod was Ready.
func (p *pod) becameReady() {
	p.fleet.observe(p.latencies.PodReady, measure.PodReady, p.times.Ready.Sub(p.times.Seen))
	if d, ok := p.times.WithoutKwok(); ok && p.fake {
		p.latencies.PodReadyWithoutKwok.Record(d)
	}
}

func (p *pod) certified() time.Time { return p.times.Certified }

// initialize records that everything that the pod's proxy requested at its start was answered. The caller holds
// Pods.mu.
func (p *pod) initialize(at time.Time) {
	setOnce(&p.times.Initialized, at)
	p.fleet.Readiness.reportIfDue(p)
}
