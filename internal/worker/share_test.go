package worker_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/proxy"
)

// places are processes in which a share's worker runs, one after another.
type places struct {
	listening
	t    *testing.T
	seen *log

	mu       sync.Mutex
	conns    []net.Conn
	refused  int           // attempts to be refused
	gate     chan struct{} // that later connections wait for
	lost     []string
	replaced chan time.Duration
}

func (p *places) connect(ctx context.Context, o worker.Options) (worker.Worker, error) {
	p.mu.Lock()
	n := len(p.conns)
	if n > 0 && p.refused > 0 {
		p.refused--
		p.mu.Unlock()
		return nil, errors.New("not ready")
	}
	p.mu.Unlock()
	if n > 0 {
		select {
		case <-p.gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	conn, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.conns = append(p.conns, conn)
	p.mu.Unlock()
	return worker.Connect(ctx, conn, worker.Setup{Build: "1", Driver: "scripted"}, o)
}

func (p *places) share(t *testing.T, failed *failures) *worker.Share {
	t.Helper()
	s, err := worker.NewShare(t.Context(), worker.ShareOptions{
		Options: worker.Options{Name: "w", Observer: p.seen, Failed: failed.add, Late: func(*stats.Histogram) {}},
		Connect: p.connect,
		Lost: func(_ worker.Worker, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lost = append(p.lost, err.Error())
		},
		Replaced: func(_ worker.Worker, after time.Duration) { p.replaced <- after },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p *places) lose(g Gomega) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.Expect(p.conns[len(p.conns)-1].Close()).To(Succeed())
}

func newPlaces(t *testing.T) *places {
	seen := &log{}
	return &places{listening: listen(t, time.Minute, host(seen)), t: t, seen: seen, gate: make(chan struct{}), replaced: make(chan time.Duration, 4)}
}

// Another worker takes over the share of one that was lost: what ran, what was started meanwhile,
// and not what was stopped. What both counted is one sum.
func TestShareIsTakenOver(t *testing.T) {
	g := NewWithT(t)
	p, failed := newPlaces(t), &failures{}
	p.refused = 1
	s := p.share(t, failed)
	for _, id := range []string{"ns/a", "ns/b"} {
		g.Expect(s.Start(named(id))).To(Succeed())
		g.Eventually(func() int { return len(p.seen.of(id)) }).Should(BeNumerically(">=", len(script(time.Now()))))
	}
	g.Eventually(func() int64 { return s.State().Counts.Acks }).Should(BeEquivalentTo(6))
	s.Route("here", []string{"there"})

	p.lose(g)
	g.Eventually(func() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.lost) }).Should(Equal(1))
	g.Expect(s.State()).To(And(HaveField("Started", 2), HaveField("Counts.Acks", BeEquivalentTo(6)), HaveField("Counts.Connected", BeZero())), "what was counted stays, and its streams have ended")
	s.Do(worker.Stop, "ns/b")
	g.Expect(s.Start(named("ns/c"))).To(Succeed())
	held := make(chan []worker.Holding, 1)
	go func() {
		all, _ := s.Holdings(t.Context(), false)
		held <- all
	}()
	before := len(p.seen.of("ns/b"))
	close(p.gate)
	g.Eventually(p.replaced).Should(Receive(BeNumerically(">", 0)))
	g.Eventually(held).Should(Receive(ConsistOf(HaveField("ID", "ns/a"), HaveField("ID", "ns/c"))))
	g.Eventually(func() int { return len(p.seen.of("ns/a")) }).Should(BeNumerically(">=", 2*len(script(time.Now()))))
	g.Eventually(func() int64 { return s.State().Counts.Acks }).Should(BeEquivalentTo(12))
	g.Expect(s.State()).To(And(HaveField("Name", "w"), HaveField("Started", 4), HaveField("Clock.Uncertainty", BeNumerically(">", 0))))
	s.Do(worker.Reset, "ns/c")
	g.Eventually(func() []any { return p.seen.of("ns/c") }).Should(ContainElement(proxy.StreamOpened{Attempt: 5, Server: "there"}))
	g.Expect(p.seen.of("ns/b")).To(HaveLen(before))
	g.Expect(s.Close(t.Context())).To(Succeed())
	g.Expect(failed.text()).To(BeEmpty())
}

// A share that is closed while nobody runs it waits for nobody.
func TestShareClosedMeanwhile(t *testing.T) {
	g := NewWithT(t)
	p, failed := newPlaces(t), &failures{}
	s := p.share(t, failed)
	g.Expect(s.Start(named("ns/a"))).To(Succeed())
	p.lose(g)
	g.Eventually(func() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.lost) }).Should(Equal(1))
	g.Expect(s.Close(t.Context())).To(Succeed())
	g.Expect(failed.text()).To(BeEmpty())
}
