// Package task schedules work for thousands of long-lived objects: a Task has a goroutine
// only while it works.
package task

import (
	"sync"
	"time"
)

// Task is scheduled work: it has a goroutine only while it works, and a timer before. Its
// zero value has nothing scheduled.
type Task struct {
	work sync.WaitGroup

	mu      sync.Mutex
	timer   *time.Timer // nil until something was scheduled
	stopped bool
}

// After schedules f, replacing what was scheduled and has not begun. f may call After
// itself.
func (t *Task) After(wait time.Duration, f func()) {
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

// Cancel unschedules what has not begun.
func (t *Task) Cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unschedule()
}

// Stop cancels what is scheduled and returns when nothing is running. Nothing will run
// afterwards.
func (t *Task) Stop() {
	t.mu.Lock()
	t.stopped = true
	t.unschedule()
	t.mu.Unlock()
	t.work.Wait()
}

// unschedule does the work of Cancel. The caller holds mu.
func (t *Task) unschedule() {
	if t.timer != nil && t.timer.Stop() {
		t.work.Done()
	}
}
