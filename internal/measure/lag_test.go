package measure

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// In synctest's time a wake-up is never late, but the observer can hold the
// loop up.
func TestLagCountsEveryMomentOfAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var lags []time.Duration
		lag := NewLag(func(d time.Duration) {
			lags = append(lags, d)
			if len(lags) == 2 {
				<-time.After(35 * time.Millisecond)
			}
		})
		done := make(chan error)
		go func() { done <- lag.Run(ctx) }()
		<-time.After(71 * time.Millisecond)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		ms := time.Millisecond
		// On time at 10 and 20; held until 55, when 30, 40 and 50 are overdue;
		// on time again at 60 and 70.
		if want := []time.Duration{0, 0, 25 * ms, 15 * ms, 5 * ms, 0, 0}; !slices.Equal(lags, want) {
			t.Errorf("got %v, want %v", lags, want)
		}
	})
}
