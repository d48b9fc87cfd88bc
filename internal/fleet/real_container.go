package fleet

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
)

// adminAgain is the time until the admin interface of a pod's Envoy is connected to again.
const adminAgain = time.Second

// RealPods describes pods on real nodes, with injected sidecars. Such pods have the
// label kwok.RealLabel. All fields are needed.
type RealPods struct {
	Container   string // of the sidecar, in a pod
	Cluster     string // of Envoy, that ADS comes over
	Certificate string // the secret that the certificate for others comes in, over SDS
	// Admin connects to the admin interface of a pod's Envoy.
	Admin func(ctx context.Context, namespace, pod string) (Admin, error)
	// Seen is called, at least once, for a pod that is on a node.
	Seen func(*corev1.Pod)
}

// Admin is a connection to the admin interface of a pod's Envoy.
type Admin struct {
	Port  int             // of loopback
	Done  <-chan struct{} // is closed when the connection ends
	Close func()
}

// SpreadReal sets the number of pods of each service that are on real nodes, n together, as evenly as realQuota. At
// least one pod of each service is on a fake node. It fails if there are too few pods.
func SpreadReal(services []topology.Service, n int) error {
	others := make([]topology.Service, len(services))
	most := 0
	for i, s := range services {
		others[i] = s
		others[i].Pods = s.Pods - 1
		most += max(0, others[i].Pods)
	}
	if n > most {
		return fmt.Errorf("want at most %d, as one pod of each service stays on a fake node", most)
	}
	quota := realQuota(others, n)
	for i := range services {
		services[i].Real = quota[services[i].Name]
	}
	return nil
}

// containerPod is a pod of the mesh on a real node. Its sidecar is a container that was injected.
type containerPod struct {
	realPod
	current  atomic.Pointer[sidecar.Life] // as the pod was last seen; nil = the sidecar does not run yet
	followed atomic.Int64                 // number of the life that is followed
	image    string                       // of the container. Guarded by Pods.mu.
}

// newContainerPod makes it of a pod of the mesh. The caller holds Pods.mu.
func newContainerPod(of *pod) *containerPod {
	p := &containerPod{}
	p.enter(of, p)
	return p
}

// start follows the sidecar over as many connections as that takes.
func (p *containerPod) start(ctx context.Context, object *corev1.Pod) {
	p.expect()
	ctx, p.stop = context.WithCancel(ctx)
	p.fleet.reals.Go(func() {
		var why error
		for ctx.Err() == nil {
			err := p.followConnection(ctx, object)
			if err != nil && why == nil {
				why = err
				p.real.Say(fmt.Sprintf("the sidecar of pod %s is not reached, and tried again: %v", p.id, err))
			}
			task.Sleep(ctx, adminAgain) // the loop ends with ctx
		}
	})
}

// followConnection follows the sidecar until a connection to its admin interface ends.
func (p *containerPod) followConnection(ctx context.Context, object *corev1.Pod) error {
	admin, err := p.real.InPods.Admin(ctx, object.Namespace, object.Name)
	if err != nil {
		return err
	}
	defer admin.Close()
	s, err := sidecar.New(sidecar.Options{Name: object.Name, AdminPort: admin.Port, Cluster: p.real.InPods.Cluster, Certificate: p.real.InPods.Certificate})
	if err != nil {
		return err
	}
	defer p.startFollowing(ctx, s)()
	select {
	case <-admin.Done:
	case <-ctx.Done():
	}
	return nil
}

// seen takes the state of the sidecar's container.
func (p *containerPod) seen(object *corev1.Pod) {
	if object.Spec.NodeName != "" {
		p.real.InPods.Seen(object)
	}
	p.reportHeld(object)
	for _, statuses := range [][]corev1.ContainerStatus{object.Status.InitContainerStatuses, object.Status.ContainerStatuses} {
		for _, s := range statuses {
			if s.Name == p.real.InPods.Container && s.State.Running != nil {
				p.image = s.Image
				p.current.Store(&sidecar.Life{Number: int(s.RestartCount) + 1, At: s.State.Running.StartedAt.Time})
			}
		}
	}
}

// reportHeld reports a container that the kubelet does not start, or not again yet: the first pod of those with the same
// container and reason, as they usually have one cause. The caller holds Pods.mu.
func (p *containerPod) reportHeld(object *corev1.Pod) {
	container, reason := observe.Held(object)
	key := container + " " + reason
	if container == "" || p.real.held[key] {
		return
	}
	p.real.held[key] = true
	standing := observe.Standing(object)
	p.real.Say(fmt.Sprintf("node %s: %s", object.Spec.NodeName, standing))
	p.real.Warn(record.Warning{About: "sidecars.real", Reason: record.ReasonContainerHeld, Component: container, Detail: standing})
}

func (p *containerPod) life() sidecar.Life {
	if life := p.current.Load(); life != nil {
		return *life
	}
	return sidecar.Life{}
}

// answered takes that the container was started, for the first time or again. What it uses,
// the kubelet is asked.
func (p *containerPod) answered(life sidecar.Life) {
	before := p.followed.Swap(int64(life.Number))
	if before == int64(life.Number) {
		return // over another connection
	}
	p.began(life, record.RealSidecarStarted{})
	if before != 0 {
		const what = "its container was started again"
		p.crashed(life.At, ": "+what, what)
	}
}

func (p *containerPod) describe() RealSidecar {
	return RealSidecar{Pod: p.id, Service: p.service, Node: p.node, Image: p.image, Crashes: max(0, int(p.followed.Load())-1)}
}
