package xdsprobe

import (
	"math/rand/v2"
	"time"
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
