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
	"scaler.mesh/scaler/pkg/record"
)

// reporters is the most pods that are annotated at the same time.
const reporters = 16

// incompleteTimeout limits the wait of a sidecar that has all it requested but not all that is
// expected, while the control plane sends it nothing. A real proxy does not know what it was not
// sent, and becomes ready. The length is Envoy's initial_fetch_timeout.
//
// While the control plane still sends to others it may only be slow: a rollout waits as long as
// sidecars become usable. If none has for busyTimeout, all lack the same, and further bursts
// would only make more of them wait. A phase of a fixed length, as churn is, waits for busyTimeout.
const (
	incompleteTimeout = 15 * time.Second
	busyTimeout       = 4 * incompleteTimeout
)

// quietTime is the time without a response after which a control plane counts as quiet.
const quietTime = 2 * time.Second

// Readiness reports to each pod that its sidecar is usable and certified: the
// Stages under kwok/ then make the pod Ready.
//
// It does not wait for endpoints that are not ready. istiod leaves out one that it saw
// before the pod, until that pod becomes Ready (PodCache.onEvent in its
// pilot/pkg/serviceregistry/kube/controller/pod.go): sidecars would wait for each other.
type Readiness struct {
	fleet *Fleet
	queue *queue

	// guarded by Pods.mu
	held       bool // sidecars that are done are not reported for now
	incomplete int  // sidecars that were reported without all that was expected of them
}

func newReadiness(f *Fleet) *Readiness { return &Readiness{fleet: f, queue: newQueue()} }

// QuietTime returns the time without a response after which the control plane counts as quiet.
func (f *Fleet) QuietTime() time.Duration { return f.Slowdown.Of(quietTime) }

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

// reportIfDue queues a pod once its proxy is usable and certified. The caller holds Pods.mu.
func (r *Readiness) reportIfDue(p *pod) {
	if !r.held && !p.reported && !p.gone && !p.times.Usable.IsZero() && !p.member.certified().IsZero() {
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

// Incomplete counts the sidecars that were reported although they were not usable,
// and returns the least time for which each of them had received nothing.
func (r *Readiness) Incomplete() (n int, quiet time.Duration) {
	r.fleet.Pods.mu.Lock()
	defer r.fleet.Pods.mu.Unlock()
	return r.incomplete, r.fleet.Slowdown.Of(incompleteTimeout)
}

// RunTimeouts reports sidecars to their pods that were held back for too long, until
// ctx ends.
func (r *Readiness) RunTimeouts(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			for _, p := range r.overdue(now) {
				r.fleet.Event(record.ReportedIncomplete{Pod: p.id})
				r.queue.push(p)
			}
		}
	}
}

// overdue returns the pods to be reported although their sidecars lack something, each
// once.
func (r *Readiness) overdue(now time.Time) []*pod {
	s, bursting := r.fleet.Pods, r.fleet.bursting.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.waiting() {
		s.progressed = now
	}
	limit := r.fleet.Slowdown.Of(incompleteTimeout)
	busy := now.Sub(s.answered) < r.fleet.QuietTime()
	switch {
	case busy && bursting && now.Sub(s.progressed) < r.fleet.Slowdown.Of(busyTimeout):
		return nil
	case busy && !bursting:
		limit = r.fleet.Slowdown.Of(busyTimeout)
	}
	var pods []*pod
	for p := range s.there {
		if r.held || p.reported || p.member.certified().IsZero() || !p.whole {
			continue
		}
		since := p.heard
		if busy && bursting { // it receives responses all the time, and never what it lacks
			since = p.member.certified()
		}
		if now.Sub(since) < limit {
			continue
		}
		p.reported, p.incomplete = true, true
		r.incomplete++
		pods = append(pods, p)
	}
	return pods
}

// waiting reports whether a sidecar has its certificate and was not reported yet. The
// caller holds Pods.mu.
func (r *Readiness) waiting() bool {
	for p := range r.fleet.Pods.there {
		if !p.reported && !p.member.certified().IsZero() {
			return true
		}
	}
	return false
}
