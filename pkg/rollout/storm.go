package rollout

import (
	"context"
	"fmt"
	"time"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/stats"
)

const (
	// stormTimeout is how long a storm may last; a sidecar without its new
	// certificate by then has lost it.
	stormTimeout = 5 * time.Minute

	// istiod's client of the API server, which it has every token reviewed
	// through (--kubernetesApiQPS, --kubernetesApiBurst).
	reviewsPerSecond = 80
	reviewsBurst     = 160
	// bound is how near to a limit's own time a storm must be for the limit to
	// be called what binds.
	bound = 1.25
)

// storm is a moment at which all sidecars ask for a certificate anew.
type storm struct {
	latency  *stats.Histogram
	requests int64
	failures int64
	pending  map[string]bool
	last     time.Time
	done     chan struct{}
}

// certificateStorm makes all sidecars ask anew at once and waits until each has
// its certificate.
func (r *rolloutRun) certificateStorm(ctx context.Context) (experiment.Undo, error) {
	if !r.spec.CertificateStorm {
		return nil, nil
	}
	return nil, r.window(ctx, record.PhaseStorm, 0, func(ctx context.Context) (record.EndedBy, error) {
		begin := time.Now()
		s := r.fleet.beginStorm()
		timer := time.NewTimer(stormTimeout)
		defer timer.Stop()
		endedBy := record.EndedByConverged
		select {
		case <-s.done:
		case <-timer.C:
			endedBy = record.EndedByTimeout
		case <-ctx.Done():
		}
		r.fleet.endStorm()
		sidecars := len(s.pending) + int(s.latency.Summary().Count)
		s.latency.Lose(int64(len(s.pending)))
		summary := s.latency.Summary()
		latency := record.Latency(summary)
		result := &record.CertificateStorm{
			Sidecars: sidecars, Issued: summary.Count, Attempts: s.requests, Failures: s.failures,
			Latency: &latency,
		}
		if s.last.After(begin) {
			seconds := s.last.Sub(begin).Seconds()
			result.Seconds = &seconds
			result.PerSecond = new(float64(summary.Count) / seconds)
			result.Binds = binding(sidecars, seconds)
		}
		r.mu.Lock()
		r.storm = result
		r.mu.Unlock()
		if ctx.Err() != nil {
			return record.EndedByInterrupt, context.Cause(ctx)
		}
		return endedBy, r.writer.Histogram("certificateStorm", s.latency)
	})
}

// binding names the limit that a storm's length is explained by, "" if none is
// known to.
func binding(sidecars int, seconds float64) string {
	if sidecars <= reviewsBurst {
		return ""
	}
	least := float64(sidecars-reviewsBurst) / reviewsPerSecond
	if seconds > bound*least {
		return ""
	}
	return fmt.Sprintf("token reviews: istiod has each token reviewed through a client limited to %d a second, %d at once; that alone takes %.1f s",
		reviewsPerSecond, reviewsBurst, least)
}

// beginStorm makes every sidecar that has a certificate ask for a new one.
func (f *fleet) beginStorm() *storm {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &storm{latency: stats.NewHistogram(), pending: map[string]bool{}, done: make(chan struct{})}
	for id, p := range f.pods {
		if !p.gone && p.sidecar != nil && !p.times.Certified.IsZero() { // a real one is not told what to ask for
			s.pending[id] = true
		}
	}
	f.storm = s
	for id := range s.pending {
		f.pods[id].sidecar.Renew()
	}
	if len(s.pending) == 0 {
		close(s.done)
	}
	return s
}

func (f *fleet) endStorm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.storm = nil
}

// see takes the end of a certificate request. The caller holds fleet.mu.
func (s *storm) see(id string, sent, verified time.Time, err error) {
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
