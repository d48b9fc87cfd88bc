package dataplane

import (
	"maps"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
)

// Result describes the outcome of the requests that count: those due after the warm-up.
type Result struct {
	// Latency is the time from when a request was due (in a closed loop: sent) to the
	// last byte of its answer. Requests without a successful answer are lost: errors and
	// those not sent.
	Latency *stats.Histogram
	// Lateness is the time from when a request was due to when the generator sent it, or
	// started to dial for it. It is part of Latency. It is empty in a closed loop.
	Lateness *stats.Histogram

	Requests int64            // due
	NotSent  int64            // of Requests: there was no room under the bound
	Errors   map[string]int64 // of Requests, by what went wrong: connect, timeout, closed, malformed, or "status 503"
	// Answered counts the successful answers received within the window, whenever their
	// requests were due (in a closed loop: sent). Divided by the window's length it is
	// the rate achieved.
	Answered    int64
	Connections int // the most at once, warm-up included
	// Begin is the start of the warm-up; the window is [Start, End). In a closed loop the
	// window begins with the first request that counts and ends with the last response to one.
	Begin, Start, End time.Time
	Seconds           []Second // of an open loop's window, in order
}

// Failed returns the sum of Errors.
func (r *Result) Failed() int64 {
	var n int64
	for _, count := range r.Errors {
		n += count
	}
	return n
}

// Second counts the outcomes of the requests that were due in one second.
type Second struct{ Requests, Failed, NotSent int64 }

// sink collects the outcomes of requests. Times are since its start.
type sink struct {
	// fixed after start
	start    time.Time
	warmup   time.Duration
	duration time.Duration     // of the window; 0 = until the last of limit
	limit    int64             // requests that count, in a closed loop
	ended    func(failed bool) // called at every request's end; nil = not called

	pending sync.WaitGroup // requests under way

	mu    sync.Mutex
	r     Result
	first time.Duration // in a closed loop: when the window began
	last  time.Duration
	since int64 // good answers within the window that are not in r.Answered yet
}

func newSink(warmup, duration time.Duration) *sink {
	return &sink{
		start: time.Now(), warmup: warmup, duration: duration,
		r: Result{
			Latency: stats.NewHistogram(), Lateness: stats.NewHistogram(), Errors: map[string]int64{},
			Seconds: make([]Second, (duration+time.Second-1)/time.Second),
		},
		first: -1,
	}
}

func (s *sink) now() time.Duration { return time.Since(s.start) }

// begin counts a request of an open loop.
func (s *sink) begin(due time.Duration) {
	s.pending.Add(1)
	if due < s.warmup {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r.Requests++
	s.second(due).Requests++
}

// came records how late the generator was when it sent a request, or found no free
// connection for it. A closed loop has no lateness.
func (s *sink) came(due time.Duration) {
	if due >= s.warmup && s.limit == 0 {
		s.r.Lateness.Record(s.now() - due)
	}
}

// take counts a request of a closed loop; false when there were enough.
func (s *sink) take(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now >= s.warmup {
		if s.r.Requests == s.limit {
			return false
		}
		if s.first < 0 {
			s.first = now
		}
		s.r.Requests++
	}
	s.pending.Add(1)
	return true
}

// second returns the counts for a due time. A closed loop has none, and gets counts that
// are discarded.
func (s *sink) second(due time.Duration) *Second {
	if i := int((due - s.warmup) / time.Second); i < len(s.r.Seconds) {
		return &s.r.Seconds[i]
	}
	return new(Second)
}

// notSent ends a request that found no room.
func (s *sink) notSent(due time.Duration) {
	defer s.pending.Done()
	if due < s.warmup {
		return
	}
	s.r.Latency.Lose(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r.NotSent++
	s.second(due).NotSent++
}

// done ends a request: problem is "" for a successful answer.
func (s *sink) done(due time.Duration, problem string) {
	defer s.pending.Done()
	now := s.now()
	s.count(due, now, problem)
	if s.ended != nil {
		s.ended(problem != "")
	}
}

func (s *sink) count(due, now time.Duration, problem string) {
	counts := due >= s.warmup
	switch {
	case counts && problem == "":
		s.r.Latency.Record(now - due)
	case counts:
		s.r.Latency.Lose(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if problem == "" && s.within(now) {
		s.since++
	}
	// A closed loop's window is extended to here.
	if counts || s.limit == 0 {
		s.last = max(s.last, now)
		s.r.Answered += s.since
		s.since = 0
	}
	if counts && problem != "" {
		s.r.Errors[problem]++
		s.second(due).Failed++
	}
}

// within reports whether the window has begun, and for an open loop whether it has
// not ended. The caller holds mu.
func (s *sink) within(now time.Duration) bool {
	if s.limit > 0 {
		return s.first >= 0 && now >= s.first
	}
	return now >= s.warmup && now < s.warmup+s.duration
}

func (s *sink) result(connections int) *Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.r
	r.Errors = maps.Clone(r.Errors)
	r.Connections = connections
	first, length := s.warmup, s.duration
	if s.limit > 0 {
		first, length = max(s.first, 0), s.last-max(s.first, 0)
	}
	r.Begin, r.Start, r.End = s.start, s.start.Add(first), s.start.Add(first+max(length, 0))
	return &r
}
