package guard

import (
	"context"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Window is the time that a value is of.
const Window = 30 * time.Second

// enough is the least number of requests that a 99th percentile is computed from: of fewer it would be the slowest.
const enough = 100

// Requests measures requests to an API server until the head of their responses. It may be used concurrently.
type Requests struct {
	mu   sync.Mutex
	done []request              // in the order of their ends; those older than Window are dropped
	open map[*request]time.Time // those under way, with their begin
}

type request struct {
	ended time.Time
	took  time.Duration
}

// NewRequests measures nothing yet.
func NewRequests() *Requests {
	return &Requests{open: map[*request]time.Time{}}
}

// Wrap is next, measured. It fits rest.Config.Wrap.
func (r *Requests) Wrap(next http.RoundTripper) http.RoundTripper { return measured{r, next} }

type measured struct {
	requests *Requests
	next     http.RoundTripper
}

func (m measured) RoundTrip(q *http.Request) (*http.Response, error) {
	if query := q.URL.Query(); query.Get("watch") == "true" || query.Get("watch") == "1" {
		return m.next.RoundTrip(q)
	}
	defer m.requests.begin()()
	return m.next.RoundTrip(q)
}

// begin takes the begin of a request; the function that it returns takes its end.
func (r *Requests) begin() (end func()) {
	began, one := time.Now(), &request{}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[one] = began
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, one)
		one.ended = time.Now()
		one.took = one.ended.Sub(began)
		r.done = append(r.done, *one)
		r.drop(one.ended)
	}
}

// drop forgets what ended before the window. The caller holds mu.
func (r *Requests) drop(now time.Time) {
	first := slices.IndexFunc(r.done, func(one request) bool { return now.Sub(one.ended) <= Window })
	if first < 0 {
		first = len(r.done)
	}
	r.done = slices.Delete(r.done, 0, first)
}

// P99 returns the 99th percentile, by nearest rank, of the times of requests that ended in the last Window and of those
// under way, which have taken their time so far at least; false where they are fewer than 100.
func (r *Requests) P99() (time.Duration, bool) {
	r.mu.Lock()
	now := time.Now()
	r.drop(now)
	var times []time.Duration
	for _, one := range r.done {
		times = append(times, one.took)
	}
	for _, began := range r.open {
		times = append(times, now.Sub(began))
	}
	r.mu.Unlock()
	if len(times) < enough {
		return 0, false
	}
	return p99(times), true
}

// p99 returns the 99th percentile of times by nearest rank. It sorts them.
func p99(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[int(math.Ceil(0.99*float64(len(times))))-1]
}

// Probe sends so many requests, one after the other, as a 99th percentile is computed from, and gives that percentile of
// their times. An error of a request is returned.
func Probe(ctx context.Context, send func(context.Context) error) (time.Duration, error) {
	times := make([]time.Duration, enough)
	for i := range times {
		began := time.Now()
		if err := send(ctx); err != nil {
			return 0, err
		}
		times[i] = time.Since(began)
	}
	return p99(times), nil
}
