package fleet

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// connected returns a fleet of so many pods, ready and connected, without anything that
// serves them.
func connected(pods int) *Fleet {
	f, _ := New(Options{ // without workers, nothing can fail
		Driver:    controlplane.Driver{Dataplane: controlplane.Dataplane{Proxy: controlplane.Proxy{Certificates: &controlplane.Certificates{Requested: true}, Tokens: true}}},
		Latencies: NewLatencies(),
		Metrics:   measure.NewMetrics(measure.Build{}, nil),
		Event:     func(record.Event) {},
	})
	f.wanted.Store(int64(pods))
	for i := range pods {
		p := withSidecar(f, fmt.Sprintf("pod-%02d", i))
		p.order, p.ready = i, true
		p.connection.streams, p.connection.answered = 1, true
		f.Pods.total++
	}
	return f
}

// withSidecar adds a pod with a simulated sidecar, whose latencies are the rollout's, to a fleet.
func withSidecar(f *Fleet, name string) *simulated {
	p := &pod{fleet: f, id: "ns/" + name, namespace: "ns", name: name, fake: true, latencies: f.Latencies}
	f.Pods.byID[p.id], f.Pods.mesh[p.id] = p, p
	newSidecarPod(p)
	s := f.Pods.simulated[p.id]
	s.revision = f.Revisions.list()[0]
	return s
}

func TestSidecarsThatComeBack(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	f := connected(3)
	a, b, c := f.Pods.simulated["ns/pod-00"], f.Pods.simulated["ns/pod-01"], f.Pods.simulated["ns/pod-02"]

	f.Pods.loseStream(a, at(0)) // before any background activity
	f.Pods.regainStream(a, at(1))
	if f.Pods.away != 1 {
		t.Error("it is back on the stream that it lost")
	}
	a.connection.streams++
	f.Pods.regainStream(a, at(2))
	f.Pods.regainStream(a, at(3)) // each further complete response says so again
	if s := f.Latencies.Reconnect.Summary(); f.Pods.away != 0 || s.Count != 1 || *s.Max < 1.99 || *s.Max > 2.01 {
		t.Errorf("%d away, %+v", f.Pods.away, s)
	}

	background := f.Pods.Begin()
	for _, p := range []*simulated{a, b, c} {
		f.Pods.loseStream(p, at(10))
		f.Pods.loseStream(p, at(11)) // a later attempt that ends is no second loss
		p.connection.streams++
	}
	f.Pods.regainStream(a, at(13))
	f.Pods.loseStream(a, at(14)) // again, within the same
	a.connection.streams++
	f.Pods.regainStream(a, at(15))
	f.end(b.pod, at(16)) // its pod is gone: nobody waits
	if f.Pods.away != 1 {
		t.Errorf("%d away, want 1", f.Pods.away)
	}
	replaced, returned := f.Pods.End(background)
	if s := background.Latencies.Reconnect.Summary(); replaced != 0 || returned != 1 || s.Count != 2 || s.Lost != 1 {
		t.Errorf("%d replaced, %d returned, %+v", replaced, returned, s)
	}
	if s := f.Latencies.Reconnect.Summary(); s.Count != 1 {
		t.Errorf("the run's own has %d", s.Count)
	}
}

// Readiness without KWOK is of the moments in which changes of the pod are seen.
func TestReadinessWithoutKwok(t *testing.T) {
	f := connected(0)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", Labels: map[string]string{kwok.ServiceLabel: "service"}}}
	f.Pods.Scaled(topology.Service{Name: "service"}, 1, time.Unix(999, 0))
	end := f.Rollout()
	seen := func(second int, change func(*corev1.Pod)) {
		pod = pod.DeepCopy()
		change(pod)
		f.OnPod(t.Context(), observe.PodEvent{Seen: time.Unix(int64(1000+second), 0), Kind: observe.Modified, Pod: pod})
	}
	seen(0, func(*corev1.Pod) {})
	seen(1, func(p *corev1.Pod) { p.Spec.NodeName = "node" })
	f.Pods.byID["ns/pod"].times.IP = time.Unix(1003, 0) // without workers, no sidecar starts
	seen(6, func(p *corev1.Pod) { p.Annotations = map[string]string{kwok.SidecarAnnotation: kwok.SidecarReady} })
	seen(10, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	end()
	l := f.Latencies
	if all, without := l.PodReady.Summary(), l.PodReadyWithoutKwok.Summary(); all.Count != 1 || without.Count != 1 || without.Max == nil || *without.Max != 4 {
		t.Errorf("ready after %+v, without KWOK %+v, want 4 s", all, without)
	}
	l.Lose(3, 0, 0)
	if s := l.PodReadyWithoutKwok.Summary(); s.Lost != 2 {
		t.Errorf("%d lost, want 2", s.Lost)
	}
}

// The start of a real sidecar that took another's place is in no figure, so that
// it is not lost either; its pod's readiness is as any other's.
func TestLostStarts(t *testing.T) {
	f := connected(0)
	background := f.Pods.Begin()
	background.pods, background.starts = 3, 2
	background.Latencies.PodReady.Record(time.Second)
	background.Latencies.CompleteConfiguration.Record(time.Second)
	f.Pods.End(background)
	for name, c := range map[string]struct {
		h    *stats.Histogram
		lost int64
	}{
		"podReady":              {background.Latencies.PodReady, 2},
		"certificate":           {background.Latencies.Certificate, 2},
		"completeConfiguration": {background.Latencies.CompleteConfiguration, 1},
	} {
		if s := c.h.Summary(); s.Lost != c.lost {
			t.Errorf("%s lost %d, want %d", name, s.Lost, c.lost)
		}
	}
	l := NewLatencies()
	l.Lose(10, 2, 0)
	if s := l.PodReady.Summary(); s.Lost != 10 {
		t.Errorf("of a rollout of 10 pods %d were lost", s.Lost)
	}
}

// A certificate that came unasked has no latency: neither as a renewal nor in a storm.
func TestCertificatesThatComeUnasked(t *testing.T) {
	f := connected(1)
	const id = "ns/pod-00"
	f.tracker.Add(id, f.tracker.Scope(nil))
	sent := time.Now()
	observer{f}.Certified(id, proxy.Certificate{Sent: sent, Verified: sent.Add(time.Second)})
	storm := &Storm{latency: stats.NewHistogram(), pending: map[string]bool{id: true}, done: make(chan struct{})}
	f.storm.Store(storm)
	observer{f}.Certified(id, proxy.Certificate{Verified: sent.Add(time.Minute)})
	if s := f.EndStorm(storm); s.Requests != 0 {
		t.Errorf("it was counted as %d requests of a storm", s.Requests)
	}
	observer{f}.Certified(id, proxy.Certificate{Verified: sent.Add(time.Minute)})
	if n := f.Renewals.Summary().Count; n != 0 {
		t.Errorf("it was counted as %d renewals", n)
	}
	if s := f.Latencies.Certificate.Summary(); s.Count != 1 || *s.Max > 1.01 {
		t.Errorf("the first certificate has %+v", s)
	}
}

// What the sidecars of a control plane do not request cannot be lost: neither by the
// rollout's pods nor by those that replace others.
func TestWhatIsNotRequestedIsNotLost(t *testing.T) {
	requested := &controlplane.Certificates{Requested: true}
	for name, c := range map[string]struct {
		proxy               controlplane.Proxy
		certificates, token int64
	}{
		"both requested":  {controlplane.Proxy{Certificates: requested, Tokens: true}, 3, 3},
		"no tokens":       {controlplane.Proxy{Certificates: requested}, 3, 0},
		"no certificates": {controlplane.Proxy{Tokens: true}, 0, 3},
		"neither":         {controlplane.Proxy{}, 0, 0},
	} {
		driver := controlplane.Driver{Dataplane: controlplane.Dataplane{Proxy: c.proxy}}
		f, _ := New(Options{Driver: driver, Latencies: NewLatencies(), Metrics: measure.NewMetrics(measure.Build{}, nil)})
		background := f.Pods.Begin()
		background.pods, background.starts = 3, 3
		f.Pods.End(background)
		f.Latencies.Lose(3, 0, 0)
		for whose, l := range map[string]*Latencies{"the rollout's": f.Latencies, "the others'": background.Latencies} {
			if certificates, token := l.Certificate.Summary().Lost, l.Token.Summary().Lost; certificates != c.certificates || token != c.token {
				t.Errorf("%s: %s lost %d certificates and %d tokens, want %d and %d", name, whose, certificates, token, c.certificates, c.token)
			}
		}
	}
}

func TestConvergenceWaitsForThoseAway(t *testing.T) {
	f := connected(2)
	for id := range f.Pods.byID {
		f.tracker.Add(id, f.tracker.Scope(nil))
		f.tracker.FirstRequest(id, time.Now())
		f.tracker.Certified(id, time.Now())
	}
	want := func(converged bool, why string, lacking ...string) {
		t.Helper()
		if f.converged() != converged {
			t.Errorf("%s: converged is %t", why, !converged)
		}
		if got := f.Lacking(); !slices.Equal(got, lacking) {
			t.Errorf("%s: lacks %q, want %q", why, got, lacking)
		}
	}
	want(true, "at first")
	p := f.Pods.simulated["ns/pod-01"]
	f.Pods.loseStream(p, time.Now())
	want(false, "one away", "1 sidecars lost their stream and are not back")
	p.connection.streams++
	f.Pods.regainStream(p, time.Now())
	want(true, "all back")
	f.Pods.Begin()
	f.Pods.Renew()
	want(false, "none replaced", "2 pods were not replaced yet")
	for _, p := range f.Pods.byID {
		p.background = f.Pods.background.number
	}
	want(true, "all replaced")
	p.ready = false
	want(false, "one not ready", "1 pods are not ready")
	p.ready = true
	f.wanted.Store(3)
	want(false, "one missing", "2 pods are there, want 3")
	f.wanted.Store(2)
	f.healthy.Store(1)
	want(false, "an endpoint missing", "the API server lists 0 healthy endpoints, want 1")
}

func TestOldestIsReplacedNext(t *testing.T) {
	f := connected(3)
	f.Pods.byID["ns/pod-00"].ready = false
	var order []string
	for p, ok := f.Pods.TakeOldest(); ok; p, ok = f.Pods.TakeOldest() {
		order = append(order, p.Name)
	}
	if !slices.Equal(order, []string{"pod-01", "pod-02"}) {
		t.Errorf("replaced %v", order)
	}
	f.Pods.byID["ns/pod-00"].ready = true
	if p, ok := f.Pods.TakeOldest(); !ok || p.Name != "pod-00" {
		t.Errorf("then %+v", p)
	}
}

// A pod with a grace period is none of the mesh from its deletion on, and its proxy stays until it is gone.
func TestGracePeriod(t *testing.T) {
	for _, c := range []struct {
		grace time.Duration
		stays bool
	}{{0, false}, {5 * time.Second, true}} {
		f := connected(2)
		stopped := 0
		f.Pods.byID["ns/pod-00"].stop = func() { stopped++ }
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-00"}}
		kwok.SetGracePeriod(&template, c.grace)
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta}
		pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1005, 0)}
		event := func(second int64, kind observe.Kind) {
			f.OnPod(t.Context(), observe.PodEvent{Seen: time.Unix(second, 0), Kind: kind, Pod: pod})
		}
		event(1000, observe.Modified)
		event(1001, observe.Modified)
		if there := f.Count().Created; there != 1 || (stopped == 0) != c.stays || (f.Pods.Streams() == 2) != c.stays {
			t.Errorf("grace period %s: %d pods are there with %d streams, the proxy was stopped %d times", c.grace, there, f.Pods.Streams(), stopped)
		}
		f.Pods.forget(time.Unix(1002, 0).Add(remembered))
		event(1200, observe.Deleted)
		if stopped != 1 {
			t.Errorf("grace period %s: gone, and the proxy was stopped %d times", c.grace, stopped)
		}
	}
}

func TestPodsAreForgotten(t *testing.T) {
	f := connected(3)
	now := time.Now()
	f.end(f.Pods.byID["ns/pod-00"], now)
	f.end(f.Pods.byID["ns/pod-01"], now.Add(30*time.Second))
	f.end(f.Pods.byID["ns/pod-01"], now.Add(40*time.Second)) // seen twice
	f.Pods.forget(now.Add(remembered))
	if len(f.Pods.byID) != 3 {
		t.Errorf("%d pods are remembered, want all", len(f.Pods.byID))
	}
	f.Pods.forget(now.Add(remembered + time.Second))
	f.Pods.forget(now.Add(remembered + 31*time.Second))
	if len(f.Pods.byID) != 1 || len(f.Pods.gone) != 0 {
		t.Errorf("%d pods are remembered, %d wait", len(f.Pods.byID), len(f.Pods.gone))
	}
	o, now := observer{f}, time.Now() // what comes of one that was forgotten changes nothing
	o.TokenFetched("ns/pod-00", proxy.TokenFetched{Received: now})
	o.StreamOpened("ns/pod-00", proxy.StreamOpened{Requested: now})
	o.Updated("ns/pod-00", proxy.Update{Complete: true, Update: convergence.Update{ReceivedAt: now}})
	o.Certified("ns/pod-00", proxy.Certificate{Verified: now})
	o.StreamEnded("ns/pod-00", proxy.StreamEnded{Ended: now})
	o.complete("ns/pod-00", now)
	if n := f.Latencies.FirstConfiguration.Summary().Count; n != 0 || len(f.Pods.byID) != 1 {
		t.Errorf("%d latencies and %d pods of one that was forgotten", n, len(f.Pods.byID))
	}
}

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
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

// A service is short of pods when the last one that it was given, or that came, is some time ago.
func TestShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := connected(0)
		f.Rollout()
		pods := func(n int) {
			f.Pods.mu.Lock()
			defer f.Pods.mu.Unlock()
			for i := range n {
				f.add(observe.PodEvent{Seen: time.Now(), Kind: observe.Added, Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: fmt.Sprint("a-", len(f.Pods.byID)+i), Labels: map[string]string{kwok.ServiceLabel: "a"},
				}}})
			}
		}
		short := func(want ...string) {
			t.Helper()
			if got := f.Pods.Short(time.Second); !slices.Equal(got, want) {
				t.Errorf("short are %v, want %v", got, want)
			}
		}
		f.Pods.Scaled(topology.Service{Name: "a"}, 3, time.Now())
		short()
		time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		short("a")
		pods(1)
		short()
		time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		short("a")
		pods(1)
		pods(1)
		time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		short()
		f.Pods.Scaled(topology.Service{Name: "a"}, 4, time.Now())
		time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		short("a")
	})
}

// Sidecars of probes do not wait before they start.
func TestPromptly(t *testing.T) {
	f := connected(1)
	f.Delay, f.Anew = scenario.Delay{Mean: 2 * time.Second}, scenario.Delay{Mean: 3 * time.Second}
	end := f.Promptly()
	if got := f.delay(0, false); got != 0 {
		t.Errorf("promptly it waits %s", got)
	}
	if end(); f.delay(0, false) != 2*time.Second || f.delay(0, true) != 3*time.Second {
		t.Errorf("later it waits %s, and in place of another %s", f.delay(0, false), f.delay(0, true))
	}
}
