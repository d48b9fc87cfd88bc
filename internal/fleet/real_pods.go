package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// adminAgain is the time until the admin interface of a pod's Envoy is connected to again.
const adminAgain = time.Second

// RealPods are pods on real nodes with injected sidecars, in place of processes of this machine. Such pods have the
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

// SpreadReal states how many pods of each service are on real nodes, n together, as evenly as realQuota. One pod of
// each service at least is on a fake node. It fails where there are not so many.
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

// saw takes the state of a pod on a real node. The caller holds Pods.mu.
func (f *realSidecars) saw(p *pod, object *corev1.Pod) {
	if p.real == nil || f.InPods == nil {
		return
	}
	if object.Spec.NodeName != "" {
		f.InPods.Seen(object)
	}
	for _, statuses := range [][]corev1.ContainerStatus{object.Status.InitContainerStatuses, object.Status.ContainerStatuses} {
		for _, s := range statuses {
			if s.Name == f.InPods.Container && s.State.Running != nil {
				p.real.image = s.Image
				p.real.life.Store(&sidecar.Life{Number: int(s.RestartCount) + 1, At: s.State.Running.StartedAt.Time})
			}
		}
	}
}

// onRealNode reports whether a pod is to be on a real node.
func onRealNode(object *corev1.Pod) bool { return object.Labels[kwok.RealLabel] != "" }

// followPod follows what the sidecar of a pod on a real node holds until ctx ends, over as many connections as it takes.
func (f *realSidecars) followPod(ctx context.Context, p *pod, real *realPod, object *corev1.Pod) {
	var why error
	for ctx.Err() == nil {
		err := f.followConnection(ctx, p, real, object)
		if err != nil && why == nil {
			why = err
			f.Say(fmt.Sprintf("the sidecar of pod %s is not reached, and tried again: %v", p.id, err))
		}
		_ = task.WaitUntil(ctx, time.Now().Add(adminAgain)) // the loop ends with ctx
	}
}

// followConnection is followPod over one connection.
func (f *realSidecars) followConnection(ctx context.Context, p *pod, real *realPod, object *corev1.Pod) error {
	admin, err := f.InPods.Admin(ctx, object.Namespace, object.Name)
	if err != nil {
		return err
	}
	defer admin.Close()
	s, err := sidecar.New(sidecar.Options{Name: object.Name, AdminPort: admin.Port, Cluster: f.InPods.Cluster, Certificate: f.InPods.Certificate})
	if err != nil {
		return err
	}
	f.fleet.Pods.update(p.id, func(*pod) { real.sidecar = s })
	life, end := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { f.follow(life, p, real) })
	select {
	case <-admin.Done:
	case <-ctx.Done():
	}
	end()
	following.Wait()
	return nil
}

// began takes that the container of a pod's sidecar was started, for the first time or again.
func (f *realSidecars) began(p *pod, real *realPod, life sidecar.Life) {
	f.fleet.Pods.update(p.id, func(p *pod) {
		first(&p.times.Dialed, life.At)
		first(&p.times.Requested, life.At)
	})
	f.tracker.FirstRequest(p.id, life.At)
	f.fleet.Event(record.RealSidecarStarted{Pod: p.id, Life: life.Number})
	if real.lives.Swap(int64(life.Number)) == 0 {
		return
	}
	const what = "its container was started again"
	f.crashed(real, life.At)
	f.Say(fmt.Sprintf("the real sidecar of pod %s ended: %s", p.id, what))
	f.Warn(record.Warning{
		About: "sidecars.real", Reason: record.ReasonSidecarCrashed, Component: "the sidecar of pod " + p.id, Detail: what, Values: map[string]float64{"times": 1},
	})
	f.fleet.Event(record.RealSidecarEnded{Pod: p.id, Error: what})
}
