package rollout

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/workload"
)

// reporters is how many pods are told at once that their sidecar is ready.
const reporters = 16

// reports are the pods that are to be told that their sidecar is ready. There
// is no bound: who has a sidecar to report must not wait.
type reports struct {
	more chan struct{} // holds one notice while there are pods

	mu   sync.Mutex
	pods []*pod
}

func newReports() *reports { return &reports{more: make(chan struct{}, 1)} }

func (q *reports) push(p *pod) {
	q.mu.Lock()
	q.pods = append(q.pods, p)
	q.mu.Unlock()
	q.notify()
}

func (q *reports) notify() {
	select {
	case q.more <- struct{}{}:
	default: // there is a notice already
	}
}

// pop waits for a pod; nil means that ctx is done.
func (q *reports) pop(ctx context.Context) *pod {
	for {
		select {
		case <-q.more:
		case <-ctx.Done():
			return nil
		}
		q.mu.Lock()
		if len(q.pods) == 0 {
			q.mu.Unlock()
			continue
		}
		p := q.pods[0]
		q.pods = q.pods[1:]
		left := len(q.pods)
		q.mu.Unlock()
		if left > 0 {
			q.notify() // another one may go on
		}
		return p
	}
}

// report tells pods that their sidecars are ready until ctx is done.
func (f *fleet) report(ctx context.Context) error {
	patch, err := experiment.SidecarPatch(kwok.SidecarReady)
	if err != nil {
		return err
	}
	var workers sync.WaitGroup
	for range reporters {
		workers.Go(func() {
			for p := f.ready.pop(ctx); p != nil; p = f.ready.pop(ctx) {
				if err := f.reportPod(ctx, p, patch); err != nil && ctx.Err() == nil {
					f.fail(fmt.Errorf("reporting the sidecar of pod %s: %w", p.id, err))
					return
				}
			}
		})
	}
	workers.Wait()
	return nil
}

// reportPod tells one pod. One that is gone need not be told.
func (f *fleet) reportPod(ctx context.Context, p *pod, patch []byte) error {
	err := workload.Persist(ctx, func(ctx context.Context, _ int) error {
		_, err := f.client.CoreV1().Pods(p.namespace).Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	f.mu.Lock()
	p.times.Reported = time.Now()
	f.mu.Unlock()
	return nil
}

// reportWhenDone hands a pod to the reporters once its sidecar is complete and
// certified.
func (f *fleet) reportWhenDone(id string) {
	f.mu.Lock()
	p := f.pods[id]
	due := p != nil && !f.held && !p.reported && !p.gone && !p.times.Complete.IsZero() && !p.times.Certified.IsZero()
	if due {
		p.reported = true
	}
	f.mu.Unlock()
	if due {
		f.ready.push(p)
	}
}
