package dataplane

import (
	"math/rand/v2"
	"time"
)

// Arrivals says how the times at which requests are due are distributed.
type Arrivals string

// The kinds of arrivals.
const (
	Constant Arrivals = "constant" // one interval between all: 1/rate
	Poisson  Arrivals = "poisson"  // exponential intervals with that mean, as of many independent users
)

// Schedule generates the times at which requests are due, in order, each as the time
// since the start. It is pure: it does not depend on when requests are sent or answered.
type Schedule struct {
	arrivals Arrivals
	rate     float64 // a second
	random   *rand.Rand
	sent     int64
	at       float64 // seconds
}

// NewSchedule makes a schedule with a rate per second, above 0. The seed is only used for
// Poisson arrivals.
func NewSchedule(arrivals Arrivals, rate float64, seed uint64) *Schedule {
	return &Schedule{arrivals: arrivals, rate: rate, random: rand.New(rand.NewPCG(seed, 0))}
}

// Next returns the time at which the next request is due. Constant arrivals begin at 0,
// and each is computed from its number, so that rounding errors do not add up.
func (s *Schedule) Next() time.Duration {
	if s.arrivals == Poisson {
		s.at += s.random.ExpFloat64() / s.rate
	} else {
		s.at = float64(s.sent) / s.rate
		s.sent++
	}
	return time.Duration(s.at * float64(time.Second))
}
