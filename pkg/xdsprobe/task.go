package xdsprobe

import (
	"sync"
	"time"
)

// task is work to come: it has a goroutine only while it works, and a timer
// before. Its zero value has nothing to do.
type task struct {
	work sync.WaitGroup

	mu      sync.Mutex
	timer   *time.Timer // nil until something was scheduled
	stopped bool
}

// after schedules f, instead of what was scheduled and has not begun. f may call
// after itself.
func (t *task) after(wait time.Duration, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unschedule()
	if t.stopped {
		return
	}
	t.work.Add(1)
	t.timer = time.AfterFunc(wait, func() {
		defer t.work.Done()
		f()
	})
}

// cancel unschedules what has not begun.
func (t *task) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unschedule()
}

// stop returns when nothing is under way and nothing will be.
func (t *task) stop() {
	t.mu.Lock()
	t.stopped = true
	t.unschedule()
	t.mu.Unlock()
	t.work.Wait()
}

// unschedule is cancel for those who hold mu.
func (t *task) unschedule() {
	if t.timer != nil && t.timer.Stop() {
		t.work.Done()
	}
}
