package dataplane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

// fakeClock is right within a synctest bubble, where timers are exact.
type fakeClock struct{}

func (fakeClock) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (fakeClock) close() error { return nil }

// programmed is a server whose n-th request, by arrival, takes service(n), and
// which stalls: what arrives meanwhile is served from the stall's end on, all at
// once, as by a process that was stopped.
type programmed struct {
	start, stall, until time.Time
	service             func(n int) time.Duration
	requests            atomic.Int64
	running             sync.WaitGroup
}

// dial is Load.Dial; the connections are in memory, so that the clock may be
// false.
func (p *programmed) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.running.Go(func() { p.serve(server) })
	return client, nil
}

func (p *programmed) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = r.ReadString('\n'); err != nil {
				return
			}
		}
		wait := p.service(int(p.requests.Add(1) - 1))
		if now := time.Now(); !now.Before(p.stall) && now.Before(p.until) {
			wait += p.until.Sub(now)
		}
		time.Sleep(wait)
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}

const (
	theoryRate     = 200
	theoryDuration = 10 * time.Second
	theoryRequests = theoryRate * 10
	stallAt        = 5 * time.Second
	stallFor       = time.Second
)

// theoryService is 1 to 100 ms, evenly.
func theoryService(n int) time.Duration { return time.Duration(1+n*37%100) * time.Millisecond }

// theory returns the latencies of open-loop theory: every request that is due in the stall
// waits for its end.
func theory() []time.Duration {
	var all []time.Duration
	for n := range theoryRequests {
		due := time.Duration(n) * time.Second / theoryRate
		latency := theoryService(n)
		if due >= stallAt && due < stallAt+stallFor {
			latency += stallAt + stallFor - due
		}
		all = append(all, latency)
	}
	slices.Sort(all)
	return all
}

// asTheory is the check: percentiles and maximum must be those of theory, within
// the three digits that a histogram keeps.
func asTheory(r *Result) error {
	want := theory()
	got := r.Latency.Summary()
	var wrong []string
	for _, q := range []struct {
		name  string
		value *float64
		rank  int
	}{
		{"p50", got.P50, 50 * theoryRequests / 100}, {"p90", got.P90, 90 * theoryRequests / 100},
		{"p99", got.P99, 99 * theoryRequests / 100}, {"p99.9", got.P999, 999 * theoryRequests / 1000},
		{"max", got.Max, theoryRequests},
	} {
		w := want[q.rank-1].Seconds()
		if q.value == nil || math.Abs(*q.value-w) > 0.002*w {
			wrong = append(wrong, fmt.Sprintf("%s = %v, theory has %v", q.name, deref(q.value), w))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}

func deref(v *float64) any {
	if v == nil {
		return "none"
	}
	return *v
}

// newProgrammed makes the server of theory. In its bubble time goes on only while
// the test does, so the test ends after the server.
func newProgrammed(t testing.TB) *programmed {
	now := time.Now()
	p := &programmed{start: now, stall: now.Add(stallAt), until: now.Add(stallAt + stallFor), service: theoryService}
	t.Cleanup(p.running.Wait)
	return p
}

var anywhere = Target{Addresses: []string{"server:80"}}

func TestPercentilesAreThoseOfOpenLoopTheory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newProgrammed(t)
		r, err := Open(t.Context(), OpenLoad{
			Load: Load{Target: anywhere, Dial: server.dial}, Rate: theoryRate, Duration: theoryDuration, clock: fakeClock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := asTheory(r); err != nil {
			t.Error(err)
		}
		if late := r.Lateness.Summary(); r.Requests != theoryRequests || late.Count != theoryRequests || *late.Max != 0 || r.Failed() != 0 || r.NotSent != 0 {
			t.Errorf("%d requests, at most %v s late, %d failed, %d not sent: want %d, none late, none failed", r.Requests, *late.Max, r.Failed(), r.NotSent, theoryRequests)
		}
	})
}

// The same check on the same server must fail for a closed loop at the same mean
// rate: it shows that the check distinguishes the two, and what a closed loop hides.
func TestClosedLoopHidesAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newProgrammed(t)
		const mean = 0.0505                               // seconds, of theoryService
		connections := int(math.Round(theoryRate * mean)) // so that it makes theoryRate a second
		r, err := Closed(t.Context(), ClosedLoad{
			Load: Load{Target: anywhere, Dial: server.dial, Connections: connections}, Requests: theoryRequests,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests != theoryRequests || r.Failed() != 0 {
			t.Fatalf("%d requests, %d failed: want %d, 0", r.Requests, r.Failed(), theoryRequests)
		}
		if err := asTheory(r); err == nil {
			t.Error("a closed loop passes the check of an open one: the check is blind")
		}
		if p99 := *r.Latency.Summary().P99; p99 > 0.11 {
			t.Errorf("p99 = %v s: want 0.1 s, as if there had been no stall", p99)
		}
	})
}

func TestSlowServerDoesNotSlowTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newProgrammed(t)
		server.service = func(int) time.Duration { return 1995 * time.Millisecond }
		r, err := Open(t.Context(), OpenLoad{
			Load: Load{Target: anywhere, Dial: server.dial, Connections: 100}, Rate: 100, Duration: 4 * time.Second, clock: fakeClock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		// 100 find room in the first second and are under way for all but two; so do 100 of
		// the third. Those of the second and the fourth find none.
		if r.Requests != 400 || r.NotSent != 200 || r.Connections != 100 {
			t.Errorf("%d requests, %d not sent, %d connections: want 400, 200, 100", r.Requests, r.NotSent, r.Connections)
		}
		got := r.Latency.Summary()
		if got.Count != 200 || got.Lost != 200 || got.P90 != nil || math.Abs(*got.P50-1.995) > 0.01 {
			t.Errorf("latency %+v: want 200 of 1.995 s and 200 lost, and so no p90", got)
		}
		want := []Second{{Requests: 100}, {Requests: 100, NotSent: 100}, {Requests: 100}, {Requests: 100, NotSent: 100}}
		if !slices.Equal(r.Seconds, want) {
			t.Errorf("seconds %v: want %v", r.Seconds, want)
		}
	})
}

func TestTimeoutAndWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newProgrammed(t)
		server.stall = server.start.Add(1500 * time.Millisecond)
		server.until = server.start.Add(time.Hour)
		server.service = func(int) time.Duration { return time.Millisecond }
		r, err := Open(t.Context(), OpenLoad{
			Load: Load{Target: anywhere, Dial: server.dial, Timeout: time.Second, Warmup: time.Second},
			Rate: 100, Duration: time.Second, clock: fakeClock{},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests != 100 || r.Answered != 50 || r.Errors[problemTimeout] != 50 || r.Latency.Summary().Lost != 50 {
			t.Errorf("%d requests, %d answered, %v: want 100, of which 50 timed out", r.Requests, r.Answered, r.Errors)
		}
		if got := r.Start.Sub(r.Begin); got != time.Second {
			t.Errorf("the window starts %s after the warm-up's begin: want 1s", got)
		}
	})
}

// Answers that come between two looks at the connections are late too.
func TestAnAnswerAfterTheTimeoutIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		takes    time.Duration
		answered int64
	}{
		"just in time": {time.Second, 50},
		"just not":     {time.Second + reapEvery/4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newProgrammed(t)
				server.service = func(int) time.Duration { return c.takes }
				r, err := Open(t.Context(), OpenLoad{
					Load: Load{Target: anywhere, Dial: server.dial, Timeout: time.Second},
					Rate: 100, Duration: time.Second / 2, clock: fakeClock{},
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := r.Latency.Summary(); r.Errors[problemTimeout] != 50-c.answered || got.Count != c.answered || got.Lost != 50-c.answered {
					t.Errorf("%d answers count, %v: want %d, and a timeout for each of the others", got.Count, r.Errors, c.answered)
				}
			})
		})
	}
}

// Each address has connections of its own; none is closed for another's sake.
func TestSeveralAddressesKeepTheirConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const connections, requests = 2, 300
		target := Target{Addresses: []string{"a:80", "b:80", "c:80"}}
		servers, dials := map[string]*programmed{}, map[string]int{}
		for i, address := range target.Addresses {
			servers[address] = newProgrammed(t)
			servers[address].service = func(n int) time.Duration { return time.Duration(1+(n*7+i)%5) * time.Millisecond }
		}
		var mu sync.Mutex
		r, err := Closed(t.Context(), ClosedLoad{
			Load: Load{Target: target, Connections: connections, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				dials[address]++
				return servers[address].dial(ctx, network, address)
			}},
			Requests: requests,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests != requests || r.Answered != requests || r.NotSent != 0 {
			t.Errorf("%d requests, %d answered, %d not sent: want %d, all answered", r.Requests, r.Answered, r.NotSent, requests)
		}
		for address, server := range servers {
			if n := server.requests.Load(); n != requests/3 || dials[address] > connections {
				t.Errorf("%s was dialled %d times for %d requests: want %d at most for %d", address, dials[address], n, connections, requests/3)
			}
		}
	})
}

// A closed loop's rate is that of all answers in its window: those to requests of
// the warm-up that were under way when it began are among them.
func TestRateOfAClosedLoop(t *testing.T) {
	for name, c := range map[string]struct {
		service  func(n int) time.Duration
		answered int64
		length   time.Duration
	}{
		// A connection is made every 10 ms. The window begins when the first is free after
		// the warm-up; nine answers of the warm-up follow, and the last request is sent
		// 190 ms after the first.
		"warm-up under way": {func(int) time.Duration { return 100 * time.Millisecond }, 29, 290 * time.Millisecond},
		// The tenth request, of the warm-up, is answered when the window is long over;
		// the nine other connections send 20 within 210 ms.
		"warm-up never ends": {func(n int) time.Duration {
			if n == 9 {
				return 5 * time.Second
			}
			return 100 * time.Millisecond
		}, 28, 310 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newProgrammed(t)
				server.stall = server.until // of none
				server.service = c.service
				var dialled atomic.Int64
				r, err := Closed(t.Context(), ClosedLoad{
					Load: Load{Target: anywhere, Connections: 10, Warmup: time.Second, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
						time.Sleep(time.Duration(dialled.Add(1)) * 10 * time.Millisecond)
						return server.dial(ctx, network, address)
					}},
					Requests: 20,
				})
				if err != nil {
					t.Fatal(err)
				}
				if r.Requests != 20 || r.Latency.Summary().Count != 20 || r.Answered != c.answered || r.End.Sub(r.Start) != c.length {
					t.Errorf("%d requests, %d latencies, %d answered in %s: want 20, 20, %d in %s",
						r.Requests, r.Latency.Summary().Count, r.Answered, r.End.Sub(r.Start), c.answered, c.length)
				}
			})
		})
	}
}

// With HTTP/2 a goroutine of its own sends each request: what it waits for its
// turn is the generator's.
func TestLatenessOfHTTP2IsOfTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
		s := newSink(0, time.Second)
		h := newHTTP2(t.Context(), Load{Target: anywhere, HTTP: 2, Timeout: time.Second, Dial: refuse}, s)
		defer h.close()
		time.Sleep(5 * time.Millisecond)
		if problem := h.exchange(h.requests[0], 0); problem != problemConnect {
			t.Errorf("problem %q: want %q", problem, problemConnect)
		}
		if late := s.r.Lateness.Summary(); late.Count != 1 || *late.Max != 0.005 {
			t.Errorf("lateness %+v: want 5 ms once", late)
		}
	})
}

func TestAnEndOfContextEndsALoop(t *testing.T) {
	for name, run := range map[string]func(context.Context, Load) (*Result, error){
		"open": func(ctx context.Context, l Load) (*Result, error) {
			return Open(ctx, OpenLoad{Load: l, Rate: 10, Duration: time.Hour, clock: fakeClock{}})
		},
		"closed": func(ctx context.Context, l Load) (*Result, error) {
			return Closed(ctx, ClosedLoad{Load: l, Requests: 1e9})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				r, err := run(ctx, Load{Target: anywhere, Dial: newProgrammed(t).dial})
				if err != context.DeadlineExceeded || r == nil || r.Requests == 0 {
					t.Errorf("%+v, %v: want what there was until the end, and its cause", r, err)
				}
			})
		})
	}
}

var _ = It("schedules requests evenly", func() {
	t := GinkgoTB()
	s := NewSchedule(Constant, 3, 0)
	for n := range 1_000_000 {
		want := time.Duration(float64(n) / 3 * float64(time.Second))
		if got := s.Next(); got != want {
			t.Fatalf("request %d is due at %d ns: want %d", n, got, want)
		}
	}
	const n = 200_000
	same, s := NewSchedule(Poisson, 1000, 7), NewSchedule(Poisson, 1000, 7)
	var last time.Duration
	var squares float64
	for range n {
		at := s.Next()
		if again := same.Next(); again != at {
			t.Fatalf("the same seed gives %s and %s", at, again)
		}
		gap := (at - last).Seconds() * 1000
		if gap < 0 {
			t.Fatalf("due at %s after %s", at, last)
		}
		squares += gap * gap
		last = at
	}
	// An exponential interval's mean is 1 and its second moment 2.
	if mean := last.Seconds() * 1000 / n; math.Abs(mean-1) > 0.01 {
		t.Errorf("mean interval is %g of what is wanted", mean)
	}
	if moment := squares / n; math.Abs(moment-2) > 0.05 {
		t.Errorf("second moment of intervals is %g: want 2", moment)
	}
})
