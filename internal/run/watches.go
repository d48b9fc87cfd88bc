package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// watchesTimeout limits the wait for the API server's clients to be back: those
// of client-go wait up to 30 s between two tries, and with jitter twice that.
const watchesTimeout = 3 * time.Minute

// watched is the expression for how many clients watch each kind of object, by the
// API server's own count: its job, how old a count may be, and where to look.
const watched = `sum by (group, resource) (last_over_time(apiserver_longrunning_requests{job=%q, verb="WATCH"}[%s]%s))`

// recentCount is the maximum age of such a count, in the modelled time. It is several scrape intervals.
const recentCount = 10 * time.Second

// closedWatches is the expression for how many watches the API server has closed because
// their clients did not read fast enough (forgetWatcher in its storage/cacher): those
// that wait for more events than it keeps for a watch, which are 10 for most.
const closedWatches = `sum(apiserver_terminated_watchers_total{job=%q})`

// checkWatches warns of watches that the API server closed in a phase. Without the
// metric it has closed none.
func (m measurement) checkWatches(ctx context.Context, w phases.Window) error {
	expr := fmt.Sprintf(closedWatches, place.APIServer)
	before, _, err := m.recorder.Value(ctx, expr, w.Begin)
	if err != nil {
		return err
	}
	after, _, err := m.recorder.Value(ctx, expr, w.End)
	if err != nil {
		return err
	}
	if after > before { // an API server that was started again counts from 0
		m.journal.Warn(record.Warning{
			About: "cluster." + place.APIServer + "." + string(w.Name), Reason: record.ReasonWatchesClosed,
			Component: place.APIServer, Phase: w.Name, Values: map[string]float64{"watches": after - before},
		})
	}
	return nil
}

// awaitWatches returns when every kind of object has as many watches again as
// before the API server went, at a moment before. Until then controllers, KWOK and
// the control plane do not see what changes: one that has its pods but not its
// EndpointSlices back even gives up on a service (the EndpointSlice controller's
// retry budget). The next fault would be made to a cluster that is not whole; where
// they do not come back in time there is a warning about that.
func (r *run) awaitWatches(ctx context.Context, about string, before time.Time) error {
	r.progress.say("waiting until all clients of the API server watch again")
	limited, cancel := context.WithTimeout(ctx, watchesTimeout)
	defer cancel()
	begin := time.Now()
	var first, missing *int // nil = not known
	var err error
	for (missing == nil || *missing > 0) && limited.Err() == nil {
		var n int
		if n, err = r.missingWatches(limited, before); err != nil {
			continue // a scrape may be late; the last count stands
		}
		if missing = &n; first == nil {
			first = &n
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case missing == nil:
		r.journal.Warn(record.Warning{About: about, Reason: record.ReasonWatchesUnknown, Detail: output.FirstLine(err)})
	case *missing > 0:
		r.journal.Warn(record.Warning{About: about, Reason: record.ReasonWatchesMissing, Values: map[string]float64{
			"kinds": float64(*missing), "afterSeconds": watchesTimeout.Seconds(),
		}})
	}
	r.journal.Event(record.WatchesBack{MissingFirst: first, Missing: missing, Seconds: time.Since(begin).Seconds()})
	return nil
}

// missingWatches counts the kinds of object that fewer clients watch than at a
// moment before, as of the next scrape.
func (r *run) missingWatches(ctx context.Context, before time.Time) (int, error) {
	if err := r.recorder.Scraped(ctx, time.Now(), place.APIServer); err != nil {
		return 0, err
	}
	recent := fmt.Sprintf("%ds", int(r.spec.slowed(recentCount).Seconds()))
	was := fmt.Sprintf(watched, place.APIServer, recent, fmt.Sprintf(" @ %.3f", float64(before.UnixMilli())/1000))
	if _, known, err := r.recorder.Value(ctx, "count("+was+")", time.Now()); err != nil || !known {
		return 0, errors.Join(err, errors.New("the API server's count from before is missing"))
	}
	is := fmt.Sprintf(watched, place.APIServer, recent, "")
	missing, _, err := r.recorder.Value(ctx, fmt.Sprintf("count((%[1]s > 0) unless (%[2]s >= %[1]s))", was, is), time.Now())
	return int(missing), err // without a value there is none
}
