package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// reporter is a control plane that reports what the test states.
type reporter struct {
	mu      sync.Mutex
	proxies map[string]bool
	work    int
	err     error
}

func (r *reporter) read(context.Context) (controlplane.SyncState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return controlplane.SyncState{Proxies: maps.Clone(r.proxies), Work: fmt.Sprint(r.work)}, r.err
}

func (r *reporter) set(change func(*reporter)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

const restWindow = 10 * time.Second

var (
	heldKey  = convergence.Key{Type: convergence.CDS, Name: "held"}
	otherKey = convergence.Key{Type: convergence.CDS, Name: "other"}
)

// atRest returns a fleet of three pods that are ready and certified and have acknowledged all that they were sent. Of two clusters
// that they should hold they hold one.
func atRest() (*Fleet, *reporter) {
	f := connected(3)
	r := &reporter{proxies: map[string]bool{}}
	f.Rest = &Rest{Window: func() time.Duration { return restWindow }, Read: r.read}
	scope := f.tracker.Scope([]convergence.Want{{Key: heldKey}, {Key: otherKey}})
	now := time.Now()
	f.Pods.answered = now
	for id, p := range f.Pods.simulated {
		p.stop = func() {}
		p.whole, p.times.Certified = true, now
		f.tracker.Add(id, scope)
		f.tracker.FirstRequest(id, now)
		f.tracker.Certified(id, now)
		f.tracker.Update(id, convergence.Update{ReceivedAt: now, AckedAt: now, Set: []convergence.Resource{{Key: heldKey}}})
		r.proxies[id] = true
	}
	return f, r
}

// within waits for the mesh to be at rest, so long at most.
func within(t *testing.T, f *Fleet, limit time.Duration) (record.EndedBy, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	begin := time.Now()
	how, err := f.AwaitSettled(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	return how, time.Since(begin)
}

func TestQuiescent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := atRest()
		how, took := within(t, f, time.Minute)
		if how != record.EndedByQuiescent || took <= restWindow+QuietTime || took > restWindow+QuietTime+3*lookInterval {
			t.Errorf("%q after %s", how, took)
		}
		if f.Settled() != record.EndedByQuiescent || f.Unconverged() != 3 {
			t.Errorf("%s, %d sidecars", f.Settled(), f.Unconverged())
		}
		for id := range f.Pods.byID {
			f.tracker.Update(id, convergence.Update{ReceivedAt: time.Now(), AckedAt: time.Now(), Set: []convergence.Resource{{Key: otherKey}}})
		}
		if how, took := within(t, f, time.Minute); how != record.EndedByConverged || took != 0 {
			t.Errorf("%q after %s", how, took)
		}
		// It was as expected: what it lacks from now on, it lacks because something is still to come.
		f.tracker.Update("ns/pod-00", convergence.Update{ReceivedAt: time.Now(), AckedAt: time.Now(), Removed: []convergence.Key{otherKey}})
		if how, _ := within(t, f, time.Minute); how != "" {
			t.Errorf("%q of a mesh that was better before", how)
		}
		f.ExpectAnew()
		if how, _ := within(t, f, time.Minute); how != record.EndedByQuiescent {
			t.Errorf("%q with another control plane", how)
		}
	})
}

// A mesh that converges while the control plane is being asked has converged at that moment, not when the answer comes.
func TestConvergesWhileLooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, r := atRest()
		f.Rest.Read = func(ctx context.Context) (controlplane.SyncState, error) {
			select {
			case <-time.After(5 * time.Second):
				return r.read(ctx)
			case <-ctx.Done():
				return controlplane.SyncState{}, ctx.Err()
			}
		}
		time.AfterFunc(4*time.Second, func() {
			for id := range f.Pods.byID {
				f.tracker.Update(id, convergence.Update{ReceivedAt: time.Now(), AckedAt: time.Now(), Set: []convergence.Resource{{Key: otherKey}}})
			}
		})
		if how, took := within(t, f, time.Minute); how != record.EndedByConverged || took != 4*time.Second {
			t.Errorf("%q after %s", how, took)
		}
	})
}

// What looks like rest and is none.
func TestNotQuiescent(t *testing.T) {
	update := func(f *Fleet, change func(*simulated)) {
		p := f.Pods.simulated["ns/pod-01"]
		p.update(func() { change(p) })
	}
	for name, c := range map[string]struct {
		lasting func(*Fleet, *reporter) // once
		each    func(*Fleet, *reporter) // every 5 s
	}{
		"sidecars are in the push queue":     {each: func(_ *Fleet, r *reporter) { r.set(func(r *reporter) { r.work++ }) }},
		"a proxy is behind":                  {lasting: func(_ *Fleet, r *reporter) { r.set(func(r *reporter) { r.proxies["ns/pod-02"] = false }) }},
		"a proxy is not connected":           {lasting: func(_ *Fleet, r *reporter) { r.set(func(r *reporter) { delete(r.proxies, "ns/pod-02") }) }},
		"a replica does not answer":          {lasting: func(_ *Fleet, r *reporter) { r.set(func(r *reporter) { r.err = errors.New("connection refused") }) }},
		"a replica restarts now and then":    {each: func(_ *Fleet, r *reporter) { r.set(func(r *reporter) { r.work = 0; r.err = other(r.err) }) }},
		"a response comes now and then":      {each: func(f *Fleet, _ *reporter) { update(f, func(*simulated) { f.Pods.answered = time.Now() }) }},
		"a pod or an endpoint changes":       {each: func(f *Fleet, _ *reporter) { f.notify() }},
		"a stream is opened now and then":    {each: func(f *Fleet, _ *reporter) { update(f, func(p *simulated) { p.connection.streams++ }) }},
		"a sidecar waits for a certificate":  {lasting: func(f *Fleet, _ *reporter) { update(f, func(p *simulated) { p.times.Certified = time.Time{} }) }},
		"a sidecar waits for an answer":      {lasting: func(f *Fleet, _ *reporter) { update(f, func(p *simulated) { p.whole = false }) }},
		"a sidecar lost its stream":          {lasting: func(f *Fleet, _ *reporter) { update(f, func(p *simulated) { f.Pods.loseStream(p, time.Now()) }) }},
		"a pod is not ready":                 {lasting: func(f *Fleet, _ *reporter) { update(f, func(p *simulated) { p.ready = false }) }},
		"a pod is missing":                   {lasting: func(f *Fleet, _ *reporter) { f.wanted.Add(1) }},
		"a pod has yet to be replaced":       {lasting: func(f *Fleet, _ *reporter) { f.Pods.Begin(); f.Pods.Renew() }},
		"the API server lists too few":       {lasting: func(f *Fleet, _ *reporter) { f.healthy.Add(1) }},
		"a sidecar of a pod is not known":    {lasting: func(f *Fleet, _ *reporter) { f.tracker.Remove("ns/pod-01") }},
		"the control plane reports nothing":  {lasting: func(f *Fleet, _ *reporter) { f.Rest = nil }},
		"the debounce is longer than so far": {lasting: func(f *Fleet, _ *reporter) { f.Rest.Window = func() time.Duration { return time.Hour } }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, r := atRest()
				if c.lasting != nil {
					c.lasting(f, r)
				}
				if c.each != nil {
					tick := time.NewTicker(5 * time.Second)
					defer tick.Stop()
					over := make(chan struct{})
					defer close(over)
					go func() {
						for {
							select {
							case <-tick.C:
								c.each(f, r)
							case <-over:
								return
							}
						}
					}()
				}
				if how, took := within(t, f, 5*time.Minute); how != "" {
					t.Errorf("%q after %s", how, took)
				}
			})
		})
	}
}

// other returns an error after none, and none after an error.
func other(err error) error {
	if err != nil {
		return nil
	}
	return errors.New("connection refused")
}

// What cannot come of a mesh that is at rest is neither lost nor a number.
func TestForgo(t *testing.T) {
	l := NewLatencies()
	l.CompleteConfiguration.Record(time.Second)
	l.Forgo(3)
	l.Lose(3, 0, 0)
	if s := record.Latency(l.CompleteConfiguration.Summary()).Known(); s.Count != 1 || s.Lost != 0 || s.Unmet != 2 || s.P50 != nil || s.Max != nil {
		t.Errorf("complete: %+v", s)
	}
	for name, h := range map[string]*stats.Histogram{"certificates": l.Certificate, "ready": l.PodReady} {
		if s := h.Summary(); s.Lost != 3 || s.Unmet != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
