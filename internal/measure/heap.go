package measure

import (
	"context"
	"fmt"
	"time"
)

// Heap is the live heap of a Go program over a window, in bytes: what its last
// garbage collection found in use. Resident memory after a rollout is the
// collector's high-water mark; the live heap is the memory that is needed.
type Heap struct {
	Mean float64 // over the scrapes in the window
	End  float64 // at the last of them
}

// liveHeap is the PromQL of the live heap in bytes, of the series that %[1]s matches. Its parts, tried in this order:
//
// 1. The runtime's own metric (runtime/metrics /gc/heap/live:bytes). The programs
// of Kubernetes expose it, and scaler.
//
// 2. The value that follows from the collector's goal, which every program with
// client_golang's default collector exposes, istiod and etcd among them:
//
//	goal = live + (live + stacks + globals) * GOGC / 100
//
// (runtime/mgcpacer.go, gcPercentHeapGoal; go.dev/doc/gc-guide), hence
//
//	live = goal / (1 + GOGC/100), less the roots' part.
//
// The roots (scanned part of stacks, and globals) are not exposed there and are
// left in, so this is above the truth by less than half of
// go_memstats_stack_inuse_bytes at GOGC 100; on a kube-apiserver, which has
// both, it was 1 % above. It is absent where the goal is
// not made by this formula: collection switched off, the smallest goal there
// is (4 MiB x GOGC / 100), and a goal that a memory limit has, or nearly has,
// pulled down.
const liveHeap = `sum(
  go_gc_heap_live_bytes{%[1]s}
or
  (
    go_memstats_next_gc_bytes{%[1]s} / (1 + go_gc_gogc_percent / 100)
    and go_gc_gogc_percent > 0
    and go_memstats_next_gc_bytes > 4 * 1024 * 1024 * go_gc_gogc_percent / 100
    and go_memstats_next_gc_bytes + go_memstats_sys_bytes - go_memstats_heap_sys_bytes < 0.9 * go_gc_gomemlimit_bytes
  )
)`

// Heap returns the live heap of the job's programs together in (from, to]; nil if
// they do not expose the metrics that it is computed from. It changes only when they
// collect garbage, at least every two minutes.
func (r *Recorder) Heap(ctx context.Context, job string, from, to time.Time) (*Heap, error) {
	return r.heap(ctx, fmt.Sprintf("job=%q", job), from, to)
}

func (r *Recorder) heap(ctx context.Context, matchers string, from, to time.Time) (*Heap, error) {
	window := fmt.Sprintf("((%s)[%s:%s])", fmt.Sprintf(liveHeap, matchers), promDuration(to.Sub(from)), promDuration(defaultInterval))
	mean, ok, err := r.Value(ctx, "avg_over_time"+window, to)
	if err != nil || !ok {
		return nil, err
	}
	// Not the value at the window's end, which a scrape missed there would hide.
	end, ok, err := r.Value(ctx, "last_over_time"+window, to)
	if err != nil || !ok {
		return nil, err
	}
	return &Heap{Mean: mean, End: end}, nil
}

// HeapAt returns the live heap of the job's programs together as of the last scrape
// until at, in bytes; false if they do not expose the metrics that it is computed from.
func (r *Recorder) HeapAt(ctx context.Context, job string, at time.Time) (float64, bool, error) {
	return r.Value(ctx, fmt.Sprintf(liveHeap, fmt.Sprintf("job=%q", job)), at)
}

// Figures returns the usage of a component in [from, to): the sampler's figures, and
// the live heap if the component is one of the jobs scraped. Call Scraped for
// the window's end first.
func (r *Recorder) Figures(ctx context.Context, s *Sampler, name string, from, to time.Time) (Usage, error) {
	u, err := s.Figures(name, from, to)
	if err != nil {
		return Usage{}, err
	}
	if _, scraped := r.expected()[name]; !scraped {
		return u, nil
	}
	if u.Heap, err = r.Heap(ctx, name, from, to); err != nil {
		return Usage{}, fmt.Errorf("computing the live heap of %s: %w", name, err)
	}
	return u, nil
}

// InstanceFigures returns Figures for a component that is scraped as one target of a job, and
// named after it.
func (r *Recorder) InstanceFigures(ctx context.Context, s *Sampler, job, instance string, from, to time.Time) (Usage, error) {
	u, err := s.Figures(instance, from, to)
	if err != nil {
		return Usage{}, err
	}
	if u.Heap, err = r.heap(ctx, instanceOf(job, instance), from, to); err != nil {
		return Usage{}, fmt.Errorf("computing the live heap of %s: %w", instance, err)
	}
	return u, nil
}
