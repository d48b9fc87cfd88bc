package run

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// collectTimeout limits a garbage collection of the control plane.
const collectTimeout = 30 * time.Second

// collections are requested one after another: what is unused in pools survives
// one (the victims of Go's sync.Pool), and after a rollout the pools contain buffers
// of messages that hold a third of what else is live.
const collections = 2

// collectGarbage has the control plane collect its garbage and reads how much of
// its heap is live then. What its last collection of its own found may be of the
// middle of the rollout: in steady state a Go program collects every two minutes.
// This comes after steady, of which it is no part, because it changes what the
// program does next. Where it fails there is a warning and no figure.
func (r *run) collectGarbage(ctx context.Context) (err error) {
	var urls []string
	for _, e := range r.endpoints() {
		if e.Collect != "" {
			urls = append(urls, e.Collect)
		}
	}
	if urls == nil {
		return nil
	}
	if r.observed.live, err = liveHeap(ctx, r.recorder, r.controlPlaneName(), urls...); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.journal.Warn(record.Warning{About: "controlPlane.steady.heapBytes.collected", Reason: record.ReasonNotMeasured, Detail: output.FirstLine(err)})
	}
	return nil
}

// setCollected puts what is live after collections into a usage. Mean and end may be unknown, as those of a heap
// that is near its limit.
func setCollected(u *record.Usage, live *float64) {
	switch {
	case live == nil:
	case u.HeapBytes == nil:
		u.HeapBytes = &record.Level{Collected: live}
	default:
		u.HeapBytes.Collected = live
	}
}

// liveHeap returns the heap of the programs of a job together in bytes that is live after
// collections, which each does when its URL is requested; nil if they do not report it.
func liveHeap(ctx context.Context, from *measure.Recorder, name string, urls ...string) (*float64, error) {
	limited, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	for _, url := range urls {
		if err := collect(limited, http.DefaultClient, url); err != nil {
			return nil, fmt.Errorf("requesting a garbage collection: %w", err)
		}
	}
	done := time.Now()
	if err := from.Scraped(limited, done, name); err != nil {
		return nil, err
	}
	heap, ok, err := from.HeapAt(limited, name, time.Now())
	if !ok {
		return nil, err
	}
	return &heap, err
}

// collect requests collections, one after another, and waits for the end of each.
func collect(ctx context.Context, client *http.Client, url string) error {
	for range collections {
		if _, err := httpget.Get(ctx, client, url); err != nil {
			return err
		}
	}
	return nil
}
