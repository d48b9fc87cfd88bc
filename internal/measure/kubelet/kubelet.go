// Package kubelet reads what containers use from the cAdvisor of their nodes' kubelets, and computes what they used
// over a window of time. How a kubelet is reached is left to others.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// interval is the time between two requests to a kubelet. cAdvisor itself reads a container every 10 to 20 s, unless
// its kubelet is set otherwise (nextHousekeepingInterval in its manager/container.go); its metrics have the time of that.
const interval = 2 * time.Second

// Container names one of a pod.
type Container struct{ Node, Namespace, Pod, Name string }

// String returns NAMESPACE/POD/NAME.
func (c Container) String() string { return c.Namespace + "/" + c.Pod + "/" + c.Name }

// Reading holds cAdvisor's counters of a container at one moment.
type Reading struct {
	At         time.Time // by the clock of the node
	CPUSeconds float64   // processor time since its start: container_cpu_usage_seconds_total
	// Resident is container_memory_rss and container_memory_mapped_file, in bytes: memory of its own, and the pages of
	// files that it has mapped and that are charged to it. Those that another control group touched first are not.
	Resident int64
	// WorkingSet is container_memory_working_set_bytes: all that is charged to it, without file pages that were not
	// used lately.
	WorkingSet int64
}

// Watcher reads containers while Run runs. Its methods may be called by several goroutines.
type Watcher struct {
	get func(ctx context.Context, node string) ([]byte, error)

	reading    sync.Mutex // held during one look at all kubelets
	mu         sync.Mutex
	containers map[Container][]*life
	failed     map[string]error // by node, why the last request failed; nil = it did not
}

// life holds the readings of a container from a start to its end.
type life struct {
	id       string
	started  time.Time
	readings []Reading // in order of time, each of another moment
	ended    bool      // a later answer of the kubelet did not have it
}

// NewWatcher returns a Watcher of no container yet. get returns a kubelet's metrics of cAdvisor, in the text format of
// Prometheus.
func NewWatcher(get func(ctx context.Context, node string) ([]byte, error)) *Watcher {
	return &Watcher{get: get, containers: map[Container][]*life{}, failed: map[string]error{}}
}

// Watch adds a container, of which readings are kept from now on.
func (w *Watcher) Watch(c Container) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.containers[c]; !there {
		w.containers[c] = nil
	}
}

// Run reads all containers at an interval, the first time at once, until ctx ends. What cannot be read is missing
// from the figures, whose error says why.
func (w *Watcher) Run(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Await returns when each container that has not ended has a reading at or after a moment. It makes requests more
// often than Run until then, and fails when ctx ends.
func (w *Watcher) Await(ctx context.Context, moment time.Time) error {
	const often = time.Second
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	for {
		w.look(ctx)
		missing, err := w.missing(moment)
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for a reading of container %s: %w", missing, context.Cause(ctx)), err)
		case <-ticker.C:
		}
	}
}

// missing names a container without a reading at or after a moment, and why its kubelet was not read; "" = there is none.
func (w *Watcher) missing(moment time.Time) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, lives := range w.containers {
		if len(lives) == 0 {
			return c.String(), w.failed[c.Node]
		}
		if last := lives[len(lives)-1]; !last.ended && last.last().At.Before(moment) {
			return c.String(), w.failed[c.Node]
		}
	}
	return "", nil
}

// look reads all kubelets that have containers, once.
func (w *Watcher) look(ctx context.Context) {
	w.reading.Lock()
	defer w.reading.Unlock()
	w.mu.Lock()
	nodes := map[string]bool{}
	for c := range w.containers {
		nodes[c.Node] = true
	}
	w.mu.Unlock()
	var all sync.WaitGroup
	for node := range nodes {
		all.Go(func() {
			text, err := w.get(ctx, node)
			if err == nil {
				var samples []sample
				if samples, err = parse(text); err == nil {
					w.take(node, samples)
				}
			}
			if ctx.Err() != nil {
				return // the request was given up; that says nothing about the kubelet
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed[node] = err
		})
	}
	all.Wait()
}

// take adds what a kubelet's answer has.
func (w *Watcher) take(node string, samples []sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[*life]bool{}
	for _, s := range samples {
		c := s.Container
		c.Node = node
		lives, watched := w.containers[c]
		if !watched || s.At.IsZero() {
			continue
		}
		i := slices.IndexFunc(lives, func(l *life) bool { return l.id == s.id })
		if i < 0 {
			w.containers[c] = append(lives, &life{id: s.id, started: s.started, readings: []Reading{s.Reading}})
			seen[w.containers[c][len(lives)]] = true
			continue
		}
		l := lives[i]
		seen[l] = true
		if s.At.After(l.last().At) {
			l.readings = append(l.readings, s.Reading)
		}
	}
	for c, lives := range w.containers {
		for _, l := range lives {
			if c.Node == node {
				l.ended = !seen[l] // it may be missing from one answer only
			}
		}
	}
}

func (l *life) last() Reading { return l.readings[len(l.readings)-1] }
