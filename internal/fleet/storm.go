package fleet

import (
	"sync"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/worker"
)

// Storm is a moment at which all simulated sidecars request a certificate anew.
type Storm struct {
	latency *stats.Histogram
	done    chan struct{}

	mu       sync.Mutex
	requests int64
	failures int64
	pending  map[string]bool
	last     time.Time
}

// StormResult sums up a storm.
type StormResult struct {
	Sidecars           int              // that took part; of nodes' proxies, their identities
	Requests, Failures int64            // certificate requests, and those of them that failed
	Latency            *stats.Histogram // request to certificate; sidecars without one are lost
	Last               time.Time        // when the last certificate was verified; zero if none came
}

// BeginStorm makes every sidecar that has a certificate request a new one.
func (f *Fleet) BeginStorm() *Storm {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	s := &Storm{latency: stats.NewHistogram(), pending: map[string]bool{}, done: make(chan struct{})}
	var all []*simulated // a real one decides itself what it requests
	for _, p := range f.Pods.simulated {
		if p.gone {
			continue
		}
		certificates := p.as.renewable()
		for _, name := range certificates {
			s.pending[name] = true
		}
		if len(certificates) > 0 {
			all = append(all, p)
		}
	}
	if len(s.pending) == 0 {
		close(s.done)
	}
	f.storm.Store(s)
	act(worker.Renew, all)
	return s
}

// certificateOf names the certificate of a proxy, or that of an identity if it has several.
func certificateOf(id, identity string) string {
	if identity == "" {
		return id
	}
	return id + " " + identity
}

// Done is closed when every sidecar has its new certificate.
func (s *Storm) Done() <-chan struct{} { return s.done }

// EndStorm ends a storm. Certificates that come later are not its own.
func (f *Fleet) EndStorm(s *Storm) StormResult {
	f.storm.Store(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	result := StormResult{
		Sidecars: len(s.pending) + int(s.latency.Summary().Count),
		Requests: s.requests, Failures: s.failures, Latency: s.latency, Last: s.last,
	}
	s.latency.Lose(int64(len(s.pending)))
	return result
}

// take records the end of a certificate request.
func (s *Storm) take(id string, sent, verified time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pending[id] {
		return
	}
	s.requests++
	if err != nil {
		s.failures++
		return
	}
	s.latency.Record(verified.Sub(sent))
	if verified.After(s.last) {
		s.last = verified
	}
	delete(s.pending, id)
	if len(s.pending) == 0 {
		close(s.done)
	}
}
