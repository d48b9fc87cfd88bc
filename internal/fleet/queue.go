package fleet

import (
	"context"
	"sync"

	"scaler.mesh/scaler/internal/task"
)

// queue holds the pods that a report is due to. It has no bound: a sidecar's
// events must not wait for the API server.
type queue struct {
	more chan struct{} // holds one notice while there are pods

	mu   sync.Mutex
	pods []*pod
}

func newQueue() *queue { return &queue{more: make(chan struct{}, 1)} }

func (q *queue) push(p *pod) {
	q.mu.Lock()
	q.pods = append(q.pods, p)
	q.mu.Unlock()
	task.Notify(q.more)
}

// pop waits for a pod; nil means that ctx has ended.
func (q *queue) pop(ctx context.Context) *pod {
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
			task.Notify(q.more) // another one may go on
		}
		return p
	}
}
