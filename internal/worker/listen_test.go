package worker_test

import (
	"context"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/worker"
)

// listening is a worker that others connect to.
type listening struct {
	listener *net.TCPListener
	lost     chan error // connections that ended
	ended    chan error
}

func listen(t *testing.T, idle time.Duration, o worker.HostOptions) listening {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	l := listening{listener, make(chan error, 8), make(chan error, 1)}
	go func() {
		l.ended <- worker.Listen(context.WithoutCancel(t.Context()), listener, idle, o, func(err error) { l.lost <- err })
	}()
	t.Cleanup(func() { listener.Close() })
	return l
}

func (l listening) connect(t *testing.T, seen *log) (*worker.Remote, net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", l.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.Connect(t.Context(), conn, worker.Setup{Build: "1", Driver: "scripted"}, worker.Options{
		Name: "w", Observer: seen, Failed: func(error) {}, Late: func(*stats.Histogram) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w, conn
}

// A worker whose connection is lost starts from the beginning with the next one, and ends when it
// is closed.
func TestListenAgain(t *testing.T) {
	g := NewWithT(t)
	seen := &log{}
	o := host(seen)
	o.Metrics = measure.NewMetrics(measure.Build{}, nil)
	l := listen(t, time.Minute, o)
	w, conn := l.connect(t, seen)
	g.Expect(w.Start(named("ns/a"))).To(Succeed())
	g.Eventually(func() []any { return seen.of("ns/a") }).ShouldNot(BeEmpty())
	g.Expect(conn.Close()).To(Succeed())
	g.Eventually(l.lost).Should(Receive(HaveOccurred()))

	w, _ = l.connect(t, seen)
	all, err := w.Holdings(t.Context(), false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(BeEmpty(), "what ran for the connection before has ended")
	g.Expect(w.Start(named("ns/b"))).To(Succeed())
	g.Expect(w.Close(t.Context())).To(Succeed())
	g.Eventually(l.ended).Should(Receive(BeNil()))
}

// A worker that nobody is connected to ends.
func TestListenIdle(t *testing.T) {
	g := NewWithT(t)
	l := listen(t, time.Millisecond, host(&log{}))
	g.Eventually(l.ended).Should(Receive(BeNil()))
	g.Expect(l.lost).To(Receive(MatchError(ContainSubstring("no connection for 1ms"))))
}

// A connection on which nothing is received counts as lost.
func TestTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		timed := worker.Timed(ours, 10*time.Second)
		go func() {
			<-time.After(9 * time.Second)
			_, _ = theirs.Write([]byte{7})
		}()
		b := make([]byte, 8)
		g.Expect(timed.Read(b)).To(Equal(1))
		began := time.Now()
		_, err := timed.Read(b)
		g.Expect(err).To(MatchError(os.ErrDeadlineExceeded))
		g.Expect(time.Since(began)).To(Equal(10 * time.Second))
	})
}
