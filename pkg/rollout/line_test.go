package rollout

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/recorder"
	"scaler.mesh/scaler/pkg/stats"
)

// bareFleet is a fleet of so many pods, connected, without anything that serves
// them.
func bareFleet(pods int) *fleet {
	f := &fleet{
		tracker:   convergence.New(),
		latencies: newLatencies(),
		apart:     newApart(),
		changed:   make(chan struct{}, 1),
		ready:     newReports(),
		pods:      map[string]*pod{},
		wanted:    pods,
		listed:    map[string]convergence.Endpoints{},
	}
	for i := range pods {
		id := fmt.Sprintf("ns/pod-%02d", i)
		p := &pod{id: id, namespace: "ns", name: id[3:], order: i, ready: true, in: f.latencies}
		p.line.streams, p.line.answered = 1, true
		f.pods[id] = p
		f.total++
	}
	return f
}

func TestSidecarsThatComeBack(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	f := bareFleet(3)
	a, b, c := f.pods["ns/pod-00"], f.pods["ns/pod-01"], f.pods["ns/pod-02"]

	f.lost(a, at(0)) // before anything goes on apart
	f.back(a, at(1))
	if f.away != 1 {
		t.Error("it is back on the stream that it lost")
	}
	a.line.streams++
	f.back(a, at(2))
	f.back(a, at(3)) // each further complete response says so again
	if s := f.latencies.reconnect.Summary(); f.away != 0 || s.Count != 1 || *s.Max < 1.99 || *s.Max > 2.01 {
		t.Errorf("%d away, %+v", f.away, s)
	}

	apart := f.setApart(newLatencies())
	for _, p := range []*pod{a, b, c} {
		f.lost(p, at(10))
		f.lost(p, at(11)) // a later attempt that ends is no second loss
		p.line.streams++
	}
	f.back(a, at(13))
	f.lost(a, at(14)) // again, within the same
	a.line.streams++
	f.back(a, at(15))
	f.end(b, at(16)) // its pod is gone: nobody waits
	if f.away != 1 {
		t.Errorf("%d away, want 1", f.away)
	}
	replaced, returned := f.closeApart(apart)
	if s := apart.latencies.reconnect.Summary(); replaced != 0 || returned != 1 || s.Count != 2 || s.Lost != 1 {
		t.Errorf("%d replaced, %d returned, %+v", replaced, returned, s)
	}
	if s := f.latencies.reconnect.Summary(); s.Count != 1 {
		t.Errorf("the run's own has %d", s.Count)
	}
}

// The start of a real sidecar that took another's place is in no figure, so that
// it is not lost either; its pod's readiness is as any other's.
func TestLostStarts(t *testing.T) {
	f := bareFleet(0)
	apart := f.setApart(newLatencies())
	apart.pods, apart.real = 3, 1
	apart.latencies.podReady.Record(time.Second)
	apart.latencies.completeConfiguration.Record(time.Second)
	f.closeApart(apart)
	for name, c := range map[string]struct {
		h    *stats.Histogram
		lost int64
	}{
		"podReady":              {apart.latencies.podReady, 2},
		"certificate":           {apart.latencies.certificate, 2},
		"completeConfiguration": {apart.latencies.completeConfiguration, 1},
	} {
		if s := c.h.Summary(); s.Lost != c.lost {
			t.Errorf("%s lost %d, want %d", name, s.Lost, c.lost)
		}
	}
	l := newLatencies()
	l.lose(10, 2)
	if s := l.podReady.Summary(); s.Lost != 10 {
		t.Errorf("of a rollout of 10 pods %d were lost", s.Lost)
	}
}

func TestConvergenceWaitsForThoseAway(t *testing.T) {
	f := bareFleet(2)
	for id := range f.pods {
		f.tracker.Add(id, f.tracker.Scope(nil))
		f.tracker.FirstRequest(id, time.Now())
		f.tracker.Certified(id, time.Now())
	}
	want := func(converged bool, why string, lacking ...string) {
		t.Helper()
		if f.converged() != converged {
			t.Errorf("%s: converged is %t", why, !converged)
		}
		if got := f.lacking(); !slices.Equal(got, lacking) {
			t.Errorf("%s: lacks %q, want %q", why, got, lacking)
		}
	}
	want(true, "at first")
	p := f.pods["ns/pod-01"]
	f.lost(p, time.Now())
	want(false, "one away", "1 sidecars lost their stream and are not back")
	p.line.streams++
	f.back(p, time.Now())
	want(true, "all back")
	f.setApart(newLatencies())
	f.renew()
	want(false, "none replaced", "2 pods were not replaced yet")
	for _, p := range f.pods {
		p.number = f.apart.number
	}
	want(true, "all replaced")
	p.ready = false
	want(false, "one not ready", "1 pods are not ready")
	p.ready = true
	f.wanted = 3
	want(false, "one missing", "2 pods are there, want 3")
	f.wanted, f.healthy = 2, 1
	want(false, "an endpoint missing", "the API server lists 0 healthy endpoints, want 1")
}

func TestOldestIsReplacedNext(t *testing.T) {
	f := bareFleet(3)
	f.pods["ns/pod-00"].ready = false
	var order []string
	for p := f.oldest(); p != nil; p = f.oldest() {
		order = append(order, p.name)
	}
	if !slices.Equal(order, []string{"pod-01", "pod-02"}) {
		t.Errorf("replaced %v", order)
	}
	f.pods["ns/pod-00"].ready = true
	if p := f.oldest(); p == nil || p.name != "pod-00" {
		t.Errorf("then %+v", p)
	}
}

func TestPodsAreForgotten(t *testing.T) {
	f := bareFleet(3)
	now := time.Now()
	f.end(f.pods["ns/pod-00"], now)
	f.end(f.pods["ns/pod-01"], now.Add(30*time.Second))
	f.end(f.pods["ns/pod-01"], now.Add(40*time.Second)) // told twice
	f.forget(now.Add(remembered))
	if len(f.pods) != 3 {
		t.Errorf("%d pods are remembered, want all", len(f.pods))
	}
	f.forget(now.Add(remembered + time.Second))
	f.forget(now.Add(remembered + 31*time.Second))
	if len(f.pods) != 1 || len(f.gone) != 0 {
		t.Errorf("%d pods are remembered, %d wait", len(f.pods), len(f.gone))
	}
	if p, _ := f.at("ns/pod-00", func(*pod) {}); p == nil {
		t.Error("an event of one that was forgotten has no pod")
	}
	f.reportWhenDone("ns/pod-00")
}

func TestPatience(t *testing.T) {
	now := time.Now()
	f := bareFleet(6)
	for _, p := range f.pods {
		p.times.Certified = now
		p.line.whole, p.line.heard = true, now
	}
	f.pods["ns/pod-00"].reported = true
	f.pods["ns/pod-01"].times.Certified = time.Time{}
	f.pods["ns/pod-02"].line.heard = now.Add(time.Second) // it is still being sent to
	f.pods["ns/pod-03"].line.whole = false                // it waits for an answer
	f.end(f.pods["ns/pod-04"], now)
	if early := f.heldTooLong(now.Add(patience - 1)); len(early) > 0 {
		t.Errorf("%d were reported early", len(early))
	}
	f.answered = now.Add(patience - time.Second) // somebody else is still being sent to
	if early := f.heldTooLong(now.Add(patience)); len(early) > 0 {
		t.Errorf("%d were reported while the control plane was busy", len(early))
	}
	f.answered = now
	late := f.heldTooLong(now.Add(patience))
	if len(late) != 1 || late[0].name != "pod-05" || f.impatient != 1 {
		t.Errorf("%d were reported, %d counted", len(late), f.impatient)
	}
	f.answered = now.Add(longerPatience + time.Second)
	f.bursting.Store(true)
	f.progressed = now.Add(2 * time.Second)
	if early := f.heldTooLong(now.Add(longerPatience + time.Second)); len(early) > 0 {
		t.Errorf("%d were reported while the control plane was busy with a rollout that got on", len(early))
	}
	f.bursting.Store(false)
	if again := f.heldTooLong(now.Add(longerPatience + time.Second)); len(again) != 1 || again[0].name != "pod-02" {
		t.Errorf("later %d were reported", len(again))
	}
}

// In a rollout that does not get on, though everybody is sent to all the time,
// sidecars are held no longer that have all that they asked for.
func TestPatienceWithARolloutThatDoesNotGetOn(t *testing.T) {
	now := time.Now()
	f := bareFleet(3)
	f.metrics = recorder.NewMetrics(recorder.Build{}, nil)
	f.bursting.Store(true)
	f.progressed = now
	late := now.Add(longerPatience)
	for _, p := range f.pods {
		p.times.Certified = now
		p.line.whole, p.line.heard = true, late
	}
	f.pods["ns/pod-00"].times.Certified = late.Add(time.Second - patience) // not for long yet
	f.pods["ns/pod-01"].line.whole = false
	f.answered = late
	if early := f.heldTooLong(late.Add(-time.Millisecond)); len(early) > 0 {
		t.Errorf("%d were reported early", len(early))
	}
	f.complete("ns/pod-00", now.Add(time.Millisecond))
	if early := f.heldTooLong(late); len(early) > 0 {
		t.Errorf("%d were reported when one had become complete since", len(early))
	}
	f.progressed = now
	if held := f.heldTooLong(late); len(held) != 1 || held[0].name != "pod-02" {
		t.Errorf("%d were reported", len(held))
	}

	for _, p := range f.pods { // nobody waits until the next burst
		p.reported = true
	}
	next := late.Add(time.Hour)
	f.answered = next
	f.heldTooLong(next)
	f.pods["ns/pod-02"].reported = false
	f.answered = next.Add(patience)
	if early := f.heldTooLong(next.Add(patience)); len(early) > 0 {
		t.Errorf("%d of a later burst were reported early", len(early))
	}
}

func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newReports()
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan *pod)
		for range 3 {
			go func() {
				for p := q.pop(ctx); p != nil; p = q.pop(ctx) {
					got <- p
				}
				got <- nil
			}()
		}
		const pods = 1000
		for i := range pods {
			q.push(&pod{order: i}) // nobody takes one yet, and none blocks
		}
		seen := map[int]bool{}
		for range pods {
			seen[(<-got).order] = true
		}
		if len(seen) != pods {
			t.Errorf("%d of %d pods came", len(seen), pods)
		}
		cancel()
		for range 3 {
			if p := <-got; p != nil {
				t.Errorf("pod %d came twice", p.order)
			}
		}
	})
}
