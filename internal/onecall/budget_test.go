package onecall

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWaited(t *testing.T) {
	for name, c := range map[string]struct {
		size  int
		held  time.Duration // for how long others have all of the budget
		want  time.Duration
		taken int64
	}{
		"it is free":             {20 << 10, 0, 0, 32 << 10},
		"until it is given back": {20 << 10, 3 * time.Second, 3 * time.Second, 32 << 10},
		"no longer than that":    {20 << 10, time.Minute, budgetTimeout, 0},
		"more than there is":     {100 << 20, time.Second, time.Second, budgetSize},
		"small ones need none":   {free, time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.held > 0 {
					if !budget.TryAcquire(budgetSize) {
						t.Fatal("somebody has some of the budget")
					}
					time.AfterFunc(c.held, func() { budget.Release(budgetSize) })
				}
				conn := &Conn{ctx: t.Context(), waited: time.Hour} // of the message before
				conn.take(c.size)
				if conn.Waited() != c.want || conn.taken != c.taken {
					t.Errorf("waited %s for %d: want %s for %d", conn.Waited(), conn.taken, c.want, c.taken)
				}
				conn.giveBack()
				<-time.After(c.held) // gives it back
				synctest.Wait()
			})
		})
	}
}
