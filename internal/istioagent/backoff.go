package istioagent

import (
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Istio's agent retries a certificate request in rounds: five tries with waits of
// 100 ms, doubling, jittered by 10 %, for errors that may pass (its
// CARetryOptions); between rounds it waits as in its pkg/backoff, 500 ms growing
// by half, jittered by 50 %, 60 s at most.
const (
	// TriesInRound is the number of tries in a round.
	TriesInRound    = 5
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
	if b.tries < TriesInRound && Transient(err) {
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

// Transient reports whether the agent's certificate client retries after an error
// within the same round, over the same connection.
func Transient(err error) bool {
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
