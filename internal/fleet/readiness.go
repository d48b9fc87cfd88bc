package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
)

// reporters is the most pods that are annotated at the same time.
const reporters = 16

// QuietTime is the time without a response after which a control plane counts as quiet, of the modelled time.
const QuietTime = 2 * time.Second

// Readiness reports to each pod that its sidecar is initialized and certified: the
// Stages under kwok/ then make the pod Ready.
//
// A sidecar is initialized once the control plane has answered everything that it requested at
// its start. The answers may be out of date, which a proxy cannot know. Envoy's state is then LIVE,
// and its /ready and the readiness probe of an Istio sidecar succeed (Server initialization in
// Envoy's documentation; cmd/pilot-agent/status/ready/probe.go in Istio).
type Readiness struct {
	fleet *Fleet
	queue *queue

	// guarded by Pods.mu
	held bool // sidecars that are done are not reported for now
}

func newReadiness(f *Fleet) *Readiness { return &Readiness{fleet: f, queue: newQueue()} }

// quietTime returns QuietTime as it is on this machine.
func (f *Fleet) quietTime() time.Duration { return f.Slowdown.Of(QuietTime) }

// Quiet reports that the control plane has sent nothing for QuietTime, and how long ago its last response came.
func (f *Fleet) Quiet() (bool, time.Duration) {
	ago := time.Since(f.Pods.LastResponse())
	return ago >= f.quietTime(), ago
}

// Run reports to pods until ctx ends. An error of a report ends the run.
func (r *Readiness) Run(ctx context.Context) error {
	patch, err := place.SidecarPatch(kwok.SidecarReady)
	if err != nil {
		return err
	}
	var workers sync.WaitGroup
	for range reporters {
		workers.Go(func() {
			for p := r.queue.pop(ctx); p != nil; p = r.queue.pop(ctx) {
				if err := r.report(ctx, p, patch); err != nil && ctx.Err() == nil {
					r.fleet.Fail(fmt.Errorf("reporting the sidecar of pod %s: %w", p.id, err))
					return
				}
			}
		})
	}
	workers.Wait()
	return nil
}

// report reports to one pod. One that is gone needs no report.
func (r *Readiness) report(ctx context.Context, p *pod, patch []byte) error {
	err := workload.Persist(ctx, func(ctx context.Context, _ int) error {
		_, err := r.fleet.Client.CoreV1().Pods(p.namespace).Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	now := time.Now()
	p.update(func() { p.times.Reported = now })
	return nil
}

// reportIfDue queues a pod once its proxy is initialized and certified. The caller holds Pods.mu.
func (r *Readiness) reportIfDue(p *pod) {
	if !r.held && !p.reported && !p.gone && !p.times.Initialized.IsZero() && !p.member.certified().IsZero() {
		p.reported = true
		r.queue.push(p)
	}
}

// Hold keeps sidecars from being reported to their pods, until Release.
func (r *Readiness) Hold() {
	r.fleet.Pods.mu.Lock()
	defer r.fleet.Pods.mu.Unlock()
	r.held = true
}

// Release ends what Hold began.
func (r *Readiness) Release() {
	r.fleet.Pods.mu.Lock()
	defer r.fleet.Pods.mu.Unlock()
	r.held = false
	for p := range r.fleet.Pods.there {
		r.reportIfDue(p)
	}
}
