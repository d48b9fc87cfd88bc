package loadagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts an agent of build "1" and connects to it.
func start(t *testing.T, s *server) *Agent {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener, s) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	a, err := Connect(t.Context(), "m/client", listener.Addr().String(), "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func agent(t *testing.T) *Agent {
	return start(t, &server{build: "1", find: find, processes: map[string]*observed{}})
}

func TestOtherBuild(t *testing.T) {
	a := agent(t)
	_, err := Connect(t.Context(), "m/client", a.address, "2")
	if !errors.Is(err, ErrBuild) || err.Error() != "connecting to the agent of pod m/client: its image has another version of scaler: 1: want 2" {
		t.Errorf("%v", err)
	}
}

// echo answers requests, every fourth with an error.
func echo(t *testing.T) dataplane.Target {
	requests := make(chan int, 1)
	requests <- 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := <-requests + 1
		requests <- n
		if n%4 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(web.Close)
	return dataplane.Target{Addresses: []string{web.Listener.Addr().String()}}
}

// What comes of a load is whole, with the times of this program's clock.
func TestLoads(t *testing.T) {
	a, l := agent(t), dataplane.Load{Target: echo(t), Warmup: 10 * time.Millisecond}
	for name, send := range map[string]func() (*dataplane.Result, error){
		"open": func() (*dataplane.Result, error) {
			return a.Open(t.Context(), dataplane.OpenLoad{Load: l, Rate: 400, Duration: 100 * time.Millisecond})
		},
		"closed": func() (*dataplane.Result, error) {
			return a.Closed(t.Context(), dataplane.ClosedLoad{Load: l, Requests: 40})
		},
	} {
		before := time.Now()
		r, err := send()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		latency := r.Latency.Summary()
		if r.Requests != 40 || latency.Count+latency.Lost != 40 || latency.Lost != r.Failed() || r.Errors["status 503"] < 8 || *latency.P50 <= 0 {
			t.Errorf("%s: %+v, %+v", name, r, latency)
		}
		if lateness := r.Lateness.Summary(); name == "open" && lateness.Count != 40 {
			t.Errorf("lateness: %+v", lateness)
		}
		// One clock: what differs is how exactly the agent's is known.
		const exact = 100 * time.Millisecond
		if r.Begin.Before(before.Add(-exact)) || r.Start.Before(r.Begin) || r.End.Before(r.Start) || r.End.After(time.Now().Add(exact)) {
			t.Errorf("%s: begin %s, start %s, end %s, asked for at %s", name, r.Begin, r.Start, r.End, before)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	a := agent(t)
	_, err := a.Open(t.Context(), dataplane.OpenLoad{Load: dataplane.Load{Target: echo(t)}})
	if err == nil || !strings.Contains(err.Error(), "sending requests from pod m/client") || !strings.Contains(err.Error(), "sending 0 requests a second") {
		t.Errorf("no rate: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	if _, err := a.Open(ctx, dataplane.OpenLoad{Load: dataplane.Load{Target: echo(t)}, Rate: 10, Duration: time.Hour}); !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
	if err := a.do(t.Context(), http.MethodPost, "/open", "no load", nil); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("no load: %v", err)
	}
}

// A connection from the pod carries both ways, and its ends are those of the far one.
func TestDial(t *testing.T) {
	a := agent(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			text, _ := io.ReadAll(c) // until the client has closed its half
			fmt.Fprintf(c, "%d bytes", len(text))
			c.Close()
		}
	}()
	conn, err := a.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*tunnelConn).Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); err != nil || string(text) != "5 bytes" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := a.DialContext(t.Context(), "tcp", "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "connecting from pod m/client to 127.0.0.1:1") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestProcess(t *testing.T) {
	a := agent(t)
	own, err := a.Process(t.Context(), Own)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Read(); err != nil {
		t.Fatal(err)
	}
	direct, err := measure.Self().Read()
	if err != nil {
		t.Fatal(err)
	}
	reading, err := own.Read()
	if err != nil || reading.CPU < direct.CPU || reading.Resident < direct.Resident/2 || reading.At.Before(direct.At.Add(-time.Second)) {
		t.Errorf("read %+v, %v: want no less than %+v", reading, err, direct)
	}
	if started, err := own.Started(); err != nil || started.After(reading.At) {
		t.Errorf("started %s, %v", started, err)
	}
	if remote, ok := own.(measure.Remote); !ok || !remote.Remote() {
		t.Error("it is not read over the network")
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Process(t.Context(), strings.TrimSpace(string(comm))); err != nil {
		t.Errorf("by its name: %v", err)
	}
	if _, err := a.Process(t.Context(), "no-such-program"); err == nil || !strings.Contains(err.Error(), "the pod has no process no-such-program: it has ") {
		t.Errorf("a program that does not run: %v", err)
	}
}

// source is a process that ends.
type source struct {
	id    string
	ended atomic.Bool
}

func (s *source) ID() string                     { return s.id }
func (s *source) Started() (time.Time, error)    { return time.Now(), nil }
func (s *source) ExitCPU() (time.Duration, bool) { return 0, false }
func (s *source) Read() (measure.Reading, error) {
	if s.ended.Load() {
		return measure.Reading{}, measure.ErrEnded
	}
	return measure.Reading{At: time.Now()}, nil
}

// The end of a process is not hidden by the next that has its name.
func TestProcessEnds(t *testing.T) {
	var now atomic.Pointer[source]
	now.Store(&source{id: "first"})
	a := start(t, &server{build: "1", processes: map[string]*observed{}, find: func(string) (measure.Source, error) { return now.Load(), nil }})
	first, err := a.Process(t.Context(), "envoy")
	if err != nil {
		t.Fatal(err)
	}
	now.Load().ended.Store(true)
	if _, err := first.Read(); !errors.Is(err, measure.ErrEnded) {
		t.Errorf("after its end: %v", err)
	}
	now.Store(&source{id: "second"})
	if _, err := first.Read(); !errors.Is(err, measure.ErrEnded) {
		t.Errorf("after another has begun: %v", err)
	}
	second, err := a.Process(t.Context(), "envoy")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Read(); err != nil || second.ID() == first.ID() {
		t.Errorf("the next: %s, %v", second.ID(), err)
	}
}
