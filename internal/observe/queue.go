package observe

import (
	"context"
	"sync"

	"scaler.mesh/scaler/internal/task"
)

// queue takes events from the watches, which must not wait for callbacks, and calls the
// callbacks one after the other. Its length is not limited.
type queue struct {
	ready chan struct{} // holds one notice while events wait

	mu     sync.Mutex
	events []func()
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) push(event func()) {
	q.mu.Lock()
	q.events = append(q.events, event)
	q.mu.Unlock()
	task.Notify(q.ready)
}

// run calls the callbacks until ctx ends; events left then are dropped.
func (q *queue) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.ready:
		}
		q.mu.Lock()
		events := q.events
		q.events = nil
		q.mu.Unlock()
		for _, event := range events {
			if ctx.Err() != nil {
				return
			}
			event()
		}
	}
}
