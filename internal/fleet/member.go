package fleet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/pkg/proxy"
)

// member is a pod of the run together with its proxy. Each kind is a type:
//
//   - sidecarPod: a pod of the mesh with a simulated sidecar
//   - servedPod: a pod of the mesh that the proxy of its node serves
//   - processPod: a pod of the mesh whose real sidecar is processes of this machine
//   - containerPod: a pod of the mesh on a real node, with the sidecar that was injected
//   - nodeProxy: the pod of a node's proxy, which is none of the mesh
//   - waypoint: the pod of a waypoint, which is none of the mesh
//
// Fleet.add chooses the kind, and nothing asks for it later. The caller holds Pods.mu.
type member interface {
	// start starts the proxy of the pod, which has its address now, and makes convergence wait for it.
	start(ctx context.Context, object *corev1.Pod)
	// seen is called with each change of the pod.
	seen(object *corev1.Pod)
	// certified returns when the pod had the certificate that it needs; zero = not yet.
	certified() time.Time
	// becameReady is called when the pod is seen Ready for the first time.
	becameReady()
	// count adds the states that the pod's proxy has reached.
	count(*Counts)
	// leave is called when the pod is being deleted: convergence does not wait for it any more.
	leave()
}

// simulatedMember is a member whose proxy is simulated: a worker runs it and sends its events.
type simulatedMember interface {
	member
	// complete is called when the tracker finds that the proxy is. The caller does not hold Pods.mu.
	complete(at time.Time)
	// answered is called with each response, after the tracker. The caller does not hold Pods.mu.
	answered(proxy.Update)
	// certificate is called at the end of each certificate request. The caller does not hold Pods.mu.
	certificate(e proxy.Certificate, storm bool)
	// renewable returns the names of the proxy's certificates, see certificateOf.
	renewable() []string
}

// add adds a pod that was not seen before, and chooses its kind. The caller holds Pods.mu.
func (f *Fleet) add(ev observe.PodEvent) *pod {
	p := newPod(f, ev, f.Pods.total)
	f.Pods.total++
	f.Pods.byID[p.id] = p
	if f.nodes.addProxy(p) {
		return p
	}
	f.Pods.join(p, f.bursting.Load())
	if p.rollout {
		f.observe(p.latencies.PodAdmission, measure.PodAdmission, ev.Seen.Sub(p.times.Owner))
	}
	switch {
	case f.nodes.served[p.service]:
		newServedPod(p)
	case !p.fake:
		newContainerPod(p)
	case f.real.takes(p):
		newProcessPod(p)
	default:
		newSidecarPod(p)
	}
	return p
}
