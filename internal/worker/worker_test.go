package worker_test

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	os.Exit(m.Run())
}

// log keeps the specifications that proxies were made of, and their events in their
// order, by proxy.
type log struct {
	mu     sync.Mutex
	specs  []proxy.Spec
	events map[string][]any
}

func (l *log) made(spec proxy.Spec) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.specs = append(l.specs, spec)
}

func (l *log) add(id string, e any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events == nil {
		l.events = map[string][]any{}
	}
	l.events[id] = append(l.events[id], e)
}

func (l *log) of(id string) []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events[id])
}

func (l *log) TokenFetched(id string, e proxy.TokenFetched) { l.add(id, e) }
func (l *log) StreamOpened(id string, e proxy.StreamOpened) { l.add(id, e) }
func (l *log) Updated(id string, e proxy.Update)            { l.add(id, e) }
func (l *log) StreamEnded(id string, e proxy.StreamEnded)   { l.add(id, e) }
func (l *log) Certified(id string, e proxy.Certificate)     { l.add(id, e) }

// scripted is a proxy that reports some events when it runs, is reset or renewed, and
// when it ends.
type scripted struct {
	spec     proxy.Spec
	services controlplane.ProxyServices
	again    chan string
}

var endpoints = convergence.Endpoints{netip.MustParseAddrPort("10.0.0.1:80"): convergence.Healthy, netip.MustParseAddrPort("[fd00::1]:80"): convergence.Draining}

// script returns the events of a proxy, at a moment.
func script(now time.Time) []any {
	at := func(n int) time.Time { return now.Add(time.Duration(n) * time.Millisecond) }
	shared := &convergence.Content{Digest: 7, Endpoints: endpoints}
	set := []convergence.Resource{
		{Key: convergence.Key{Type: convergence.EDS, Name: "a"}, Content: shared},
		{Key: convergence.Key{Type: convergence.EDS, Name: "b"}, Content: shared},
		{Key: convergence.Key{Type: convergence.RDS, Name: "80"}, Content: &convergence.Content{Members: []string{"x", "y"}, Markers: []string{"m"}}},
		{Key: convergence.Key{Type: convergence.CDS, Name: "a"}},
	}
	return []any{
		proxy.TokenFetched{Asked: at(0), Received: at(1), Waited: time.Microsecond},
		proxy.TokenFetched{Asked: at(1), Received: at(2), Err: errors.New("no token")},
		proxy.StreamOpened{Attempt: 1, Dialed: at(2), Connected: at(3), Requested: at(4)},
		proxy.Update{Type: convergence.EDS, Bytes: 12, Complete: true, Update: convergence.Update{ReceivedAt: at(5), AckedAt: at(6), Set: set}},
		proxy.Update{Type: convergence.RDS, Wasted: true, Update: convergence.Update{ReceivedAt: at(7), AckedAt: at(8), Removed: []convergence.Key{set[0].Key}}},
		proxy.Update{Type: convergence.CDS, Rejected: errors.New("bad"), Update: convergence.Update{ReceivedAt: at(9), AckedAt: at(9)}},
		proxy.Certificate{Attempt: 1, Key: time.Millisecond, Sent: at(9), Verified: at(10), Expires: time.Unix(2e9, 0).UTC()},
		proxy.Certificate{Attempt: 2, Backoff: time.Second, Err: errors.New("refused")},
		proxy.StreamEnded{Attempt: 1, Dialed: at(2), Ended: at(11), Class: proxy.Lost, Responses: 3, Backoff: time.Second, Err: errors.New("EOF")},
	}
}

func (p *scripted) Run(ctx context.Context) error {
	if p.spec.Identity == "spoiled" {
		return errors.New("the identity is spoiled")
	}
	for _, e := range script(time.Now()) {
		p.report(e)
	}
	for {
		select {
		case why := <-p.again:
			server, _ := p.services.Backends.Choose(p.spec.Address) // never fails for an address
			p.report(proxy.StreamOpened{Attempt: len(why), Server: server})
		case <-ctx.Done():
			p.report(proxy.StreamEnded{Class: proxy.Stopped, Ended: time.Now()})
			return nil
		}
	}
}

func (p *scripted) report(e any) {
	o, id := p.services.Observer, p.spec.ID
	switch e := e.(type) {
	case proxy.TokenFetched:
		o.TokenFetched(id, e)
	case proxy.StreamOpened:
		p.services.Store.Counters().Connected.Add(1)
		o.StreamOpened(id, e)
	case proxy.Update:
		p.services.Store.Counters().Acks.Add(1)
		o.Updated(id, e)
	case proxy.StreamEnded:
		o.StreamEnded(id, e)
	case proxy.Certificate:
		o.Certified(id, e)
	}
}

func (p *scripted) Reset() { p.again <- "reset" }
func (p *scripted) Renew() { p.again <- "renewed" }

func (p *scripted) Holdings() map[convergence.Type]proxy.Holding {
	return map[convergence.Type]proxy.Holding{convergence.CDS: {Resources: 2, Bytes: 30}}
}

func (p *scripted) Held() []*proxy.Resource {
	return []*proxy.Resource{
		{Key: convergence.Key{Type: convergence.CDS, Name: "a"}}, {Key: convergence.Key{Type: convergence.CDS, Name: "b"}},
		{Key: convergence.Key{Type: convergence.RDS, Name: "a"}},
	}
}

func (p *scripted) Draining() []convergence.Key {
	return []convergence.Key{{Type: convergence.RDS, Name: "a"}}
}

// driver makes scripted proxies.
func driver(l *log) controlplane.Driver {
	return controlplane.Driver{Name: "scripted", Dataplane: controlplane.Dataplane{Proxy: controlplane.Proxy{New: func(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
		if spec.Address == "" {
			return nil, errors.New("there is no address")
		}
		l.made(spec)
		return &scripted{spec, s, make(chan string, 8)}, nil
	}}}}
}

// failures keeps what a worker reports as failed.
type failures struct {
	mu  sync.Mutex
	all []string
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, err.Error())
}

func (f *failures) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.all, "; ")
}

// served is a worker behind a connection, whose other end is served in this process.
type served struct {
	*worker.Remote
	conn  net.Conn // the other end
	ended chan error
}

func host(l *log) worker.HostOptions {
	return worker.HostOptions{
		Build: "1", Drivers: []controlplane.Driver{driver(l)},
		Keys: func() (crypto.Signer, error) { return nil, errors.New("no keys") },
		Tokens: func(string) (worker.Tokens, error) {
			return nil, errors.New("no cluster")
		},
	}
}

func serve(t *testing.T, s worker.Setup, o worker.Options) (*served, error) {
	t.Helper()
	listener, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Serve(context.WithoutCancel(t.Context()), theirs, host(o.Observer.(*log))) }()
	t.Cleanup(func() { _ = ours.Close() })
	remote, err := worker.Connect(t.Context(), ours, s, o)
	return &served{remote, theirs, ended}, err
}

// each runs a test with a worker of each kind.
func each(t *testing.T, test func(t *testing.T, w worker.Worker, seen *log, failed *failures)) {
	t.Run("in this process", func(t *testing.T) {
		seen, failed := &log{}, &failures{}
		w, err := worker.NewLocal(t.Context(), worker.Options{Name: "here", Observer: seen, Failed: failed.add}, driver(seen), controlplane.ProxyServices{})
		if err != nil {
			t.Fatal(err)
		}
		test(t, w, seen, failed)
	})
	t.Run("behind a connection", func(t *testing.T) {
		seen, failed := &log{}, &failures{}
		w, err := serve(t, worker.Setup{Build: "1", Driver: "scripted"}, worker.Options{Name: "there", Observer: seen, Failed: failed.add, Late: func(*stats.Histogram) {}})
		if err != nil {
			t.Fatal(err)
		}
		test(t, w, seen, failed)
		if err := <-w.ended; err != nil {
			t.Errorf("the other end: %v", err)
		}
	})
}

func named(id string) worker.Proxy {
	return worker.Proxy{Spec: proxy.Spec{ID: id, Address: "here", Metadata: map[string]any{"a": []any{1.0}}}}
}

// A proxy is made of the specification that it was started with, whatever runs it, and
// what specifications have in common is in memory once.
func TestSpecifications(t *testing.T) {
	build, roots := []byte("the same for all"), []byte("of one mesh")
	var want []proxy.Spec
	for i := range 3 {
		spec := named(fmt.Sprint("ns/", i)).Spec
		spec.Build, spec.RootPEM = slices.Clone(build), slices.Clone(roots)
		want = append(want, spec)
	}
	want = append(want, named("ns/plain").Spec)
	each(t, func(t *testing.T, w worker.Worker, seen *log, _ *failures) {
		g := NewWithT(t)
		for _, spec := range want {
			g.Expect(w.Start(worker.Proxy{Spec: spec})).To(Succeed())
		}
		for _, spec := range want {
			g.Eventually(func() []any { return seen.of(spec.ID) }).ShouldNot(BeEmpty())
		}
		g.Expect(w.Close(t.Context())).To(Succeed())
		g.Expect(seen.specs).To(ConsistOf(want))
		if _, remote := w.(*served); remote {
			for _, spec := range seen.specs[:3] {
				g.Expect(&spec.Build[0]).To(BeIdenticalTo(&seen.specs[0].Build[0]), "there is one copy")
				g.Expect(&spec.RootPEM[0]).To(BeIdenticalTo(&seen.specs[0].RootPEM[0]), "there is one copy")
			}
		}
	})
}

// within compares events whose times may be off by as much.
func within(d time.Duration) cmp.Options {
	return cmp.Options{
		cmp.Comparer(func(a, b time.Time) bool { return a.IsZero() == b.IsZero() && a.Sub(b).Abs() <= d }),
		cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }),
		cmpopts.EquateComparable(netip.AddrPort{}, convergence.Type{}),
	}
}

// stopped reports whether events end with that of a proxy that was stopped.
func stopped(events []any) bool {
	e, ok := events[len(events)-1].(proxy.StreamEnded)
	return ok && e.Class == proxy.Stopped
}

// Whatever runs a proxy, its events are the same, in the same order, and at the same
// times but for what the clock is not known better.
func TestEvents(t *testing.T) {
	each(t, func(t *testing.T, w worker.Worker, seen *log, failed *failures) {
		g := NewWithT(t)
		before := time.Now()
		for _, id := range []string{"ns/a", "ns/b"} {
			g.Expect(w.Start(named(id))).To(Succeed())
		}
		for _, id := range []string{"ns/a", "ns/b"} {
			g.Eventually(func() []any { return seen.of(id) }).Should(HaveLen(len(script(before))))
			got := seen.of(id)
			asked := got[0].(proxy.TokenFetched).Asked
			uncertainty := w.State().Clock.Uncertainty
			g.Expect(asked).To(BeTemporally(">=", before.Add(-uncertainty)))
			g.Expect(asked).To(BeTemporally("<=", time.Now().Add(uncertainty)))
			// The clocks may have been compared again between two of them.
			g.Expect(cmp.Diff(script(asked), got, within(2*uncertainty+time.Microsecond))).To(BeEmpty(), "-want +got of %s", id)
		}
		g.Eventually(func() int { return w.State().Started }).Should(Equal(2)) // it comes with the events, and is taken after them
		g.Eventually(func() int64 { return w.State().Counts.Acks }).Should(BeEquivalentTo(6))

		w.Do(worker.Reset, "ns/a", "ns/unknown")
		w.Do(worker.Renew, "ns/a")
		g.Eventually(func() []any { return seen.of("ns/a") }).Should(HaveLen(len(script(before)) + 2))
		g.Expect(seen.of("ns/a")[len(script(before)):]).To(Equal([]any{proxy.StreamOpened{Attempt: 5, Server: "here"}, proxy.StreamOpened{Attempt: 7, Server: "here"}}))

		w.Do(worker.Stop, "ns/a")
		g.Eventually(func() bool { return stopped(seen.of("ns/a")) }).Should(BeTrue())
		g.Expect(stopped(seen.of("ns/b"))).To(BeFalse())
		g.Expect(w.Close(t.Context())).To(Succeed())
		g.Expect(stopped(seen.of("ns/b"))).To(BeTrue(), "Close returns when all was delivered")
		g.Expect(failed.text()).To(BeEmpty())
	})
}

// Connections go to an endpoint of a Service, from the moment when the worker knows it.
func TestRoute(t *testing.T) {
	each(t, func(t *testing.T, w worker.Worker, seen *log, _ *failures) {
		g := NewWithT(t)
		g.Expect(w.Start(named("ns/a"))).To(Succeed())
		w.Route("here", []string{"there"})
		w.Do(worker.Reset, "ns/a")
		g.Eventually(func() []any { return seen.of("ns/a") }).Should(ContainElement(proxy.StreamOpened{Attempt: 5, Server: "there"}))
		g.Expect(w.Close(t.Context())).To(Succeed())
	})
}

func TestHoldings(t *testing.T) {
	each(t, func(t *testing.T, w worker.Worker, _ *log, _ *failures) {
		g := NewWithT(t)
		g.Expect(w.Start(named("ns/a"))).To(Succeed())
		all, err := w.Holdings(t.Context(), false)
		g.Expect(err).NotTo(HaveOccurred())
		types := map[convergence.Type]proxy.Holding{convergence.CDS: {Resources: 2, Bytes: 30}}
		g.Expect(all).To(Equal([]worker.Holding{{ID: "ns/a", Types: types}}))
		all, err = w.Holdings(t.Context(), true)
		g.Expect(err).NotTo(HaveOccurred())
		keys := []convergence.Key{{Type: convergence.CDS, Name: "a"}, {Type: convergence.CDS, Name: "b"}} // RDS a is draining
		g.Expect(all).To(Equal([]worker.Holding{{ID: "ns/a", Types: types, Keys: keys}}))
		g.Expect(w.Close(t.Context())).To(Succeed())
	})
}

// Several queries at a time are all answered.
func TestHoldingsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w worker.Worker, _ *log, _ *failures) {
		g := NewWithT(t)
		g.Expect(w.Start(named("ns/a"))).To(Succeed())
		answers := make(chan int, 32)
		for range cap(answers) {
			go func() {
				all, _ := w.Holdings(t.Context(), true)
				answers <- len(all)
			}()
		}
		for range cap(answers) {
			g.Eventually(answers).Should(Receive(Equal(1)))
		}
		g.Expect(w.Close(t.Context())).To(Succeed())
	})
}

// A delay is waited for, and one that is stopped meanwhile never runs.
func TestDelay(t *testing.T) {
	each(t, func(t *testing.T, w worker.Worker, seen *log, _ *failures) {
		g := NewWithT(t)
		late, never := named("ns/late"), named("ns/never")
		late.Delay, never.Delay = 20*time.Millisecond, time.Hour
		before := time.Now()
		g.Expect(w.Start(late)).To(Succeed())
		g.Expect(w.Start(never)).To(Succeed())
		g.Eventually(func() []any { return seen.of("ns/late") }).ShouldNot(BeEmpty())
		g.Expect(seen.of("ns/late")[0].(proxy.TokenFetched).Asked).To(BeTemporally(">=", before.Add(late.Delay-w.State().Clock.Uncertainty)))
		g.Expect(w.Close(t.Context())).To(Succeed())
		g.Expect(seen.of("ns/never")).To(BeEmpty())
	})
}

// A proxy that cannot work is an error, at once or later.
func TestProxiesThatCannotWork(t *testing.T) {
	each(t, func(t *testing.T, w worker.Worker, _ *log, failed *failures) {
		g := NewWithT(t)
		spoiled := named("ns/spoiled")
		spoiled.Identity = "spoiled"
		g.Expect(w.Start(spoiled)).To(Succeed())
		g.Eventually(failed.text).Should(Equal("running the proxy of pod ns/spoiled: the identity is spoiled"))
		if err := w.Start(worker.Proxy{Spec: proxy.Spec{ID: "ns/none"}}); err != nil {
			failed.add(err)
		}
		g.Eventually(failed.text).Should(HaveSuffix("simulating the proxy of pod ns/none: there is no address"))
		g.Expect(w.Close(t.Context())).To(Succeed())
	})
}

func TestSetupThatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		setup worker.Setup
		want  string
	}{
		"another build":        {worker.Setup{Build: "2", Driver: "scripted"}, "worker w is scaler 1, want 2"},
		"unknown driver":       {worker.Setup{Build: "1", Driver: "other"}, "worker w does not know the control plane other"},
		"cluster out of reach": {worker.Setup{Build: "1", Driver: "scripted", Kubeconfig: "/none"}, "no cluster"},
	} {
		failed := &failures{}
		_, err := serve(t, c.setup, worker.Options{Name: "w", Observer: &log{}, Failed: failed.add, Late: func(*stats.Histogram) {}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", name, err, c.want)
		}
		if got := failed.text(); got != "" {
			t.Errorf("%s: reported twice: %s", name, got)
		}
	}
}

// A worker whose process is gone fails, and does not block those who ask it.
func TestLostWorker(t *testing.T) {
	g := NewWithT(t)
	failed := &failures{}
	w, err := serve(t, worker.Setup{Build: "1", Driver: "scripted"}, worker.Options{Name: "w", Observer: &log{}, Failed: failed.add, Late: func(*stats.Histogram) {}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Start(named("ns/a"))).To(Succeed())
	g.Expect(w.conn.Close()).To(Succeed())
	g.Eventually(failed.text).Should(HavePrefix("worker w is lost: "))
	_, err = w.Holdings(t.Context(), true)
	g.Expect(err).To(MatchError(HavePrefix("reading what the proxies of worker w hold: ")))
	g.Expect(w.Close(t.Context())).To(MatchError(HavePrefix("closing worker w: ")))
	g.Expect(<-w.ended).To(HaveOccurred())
}
