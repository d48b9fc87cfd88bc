package xdsprobe

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Envoy's backoff for ADS streams: SubscriptionFactory's RetryInitialDelayMs and
// RetryMaxDelayMs.
const (
	streamBackoffBase = 500 * time.Millisecond
	streamBackoffMax  = 30 * time.Second
)

// backoff is Envoy's JitteredExponentialBackOffStrategy: waits uniformly
// distributed below an interval that doubles until it has reached max.
type backoff struct {
	base, max time.Duration
	interval  time.Duration // of the next wait; 0 means base
}

func (b *backoff) next() time.Duration {
	interval := b.interval
	if interval == 0 {
		interval = b.base
	}
	b.interval = b.max
	if interval < b.max/2 {
		b.interval = 2 * interval
	}
	return rand.N(interval)
}

func (b *backoff) reset() { b.interval = 0 }

// Istio's agent retries a certificate request in rounds: five tries with waits of
// 100 ms, doubling, jittered by 10 %, for errors that may pass (its
// CARetryOptions); between rounds it waits as in its pkg/backoff, 500 ms growing
// by half, jittered by 50 %, 60 s at most.
const (
	triesInRound    = 5
	tryBackoff      = 100 * time.Millisecond
	tryJitter       = 0.1
	roundBackoff    = 500 * time.Millisecond
	roundBackoffMax = 60 * time.Second
	roundGrowth     = 1.5
	roundJitter     = 0.5
)

// certificateBackoff follows those rounds.
type certificateBackoff struct {
	tries  int           // failed in this round
	rounds time.Duration // wait after this round; 0 means roundBackoff
}

// next returns how long to wait after err, and whether the next request begins a
// new round, with a new key.
func (b *certificateBackoff) next(err error) (wait time.Duration, fresh bool) {
	b.tries++
	if b.tries < triesInRound && passing(err) {
		return jitter(tryBackoff<<(b.tries-1), tryJitter), false
	}
	b.tries = 0
	if b.rounds == 0 {
		b.rounds = roundBackoff
	}
	wait = jitter(b.rounds, roundJitter)
	b.rounds = min(time.Duration(float64(b.rounds)*roundGrowth), roundBackoffMax)
	return wait, true
}

// passing reports whether the agent's CA client retries an error at once.
func passing(err error) bool {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.Unavailable:
		return true
	}
	return false
}

// jitter returns a duration within a share of d.
func jitter(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 + share*(2*rand.Float64()-1)))
}

// sleep waits, and returns false if the context ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
