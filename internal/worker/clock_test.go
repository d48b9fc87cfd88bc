package worker

import (
	"testing"
	"time"
)

// The true offset is within the uncertainty, whichever way took longer.
func TestClockExchange(t *testing.T) {
	const offset = 5 * time.Hour // theirs is ahead
	for name, c := range map[string]struct{ there, answering, back time.Duration }{
		"both ways alike":      {time.Millisecond, time.Millisecond, time.Millisecond},
		"slow there":           {9 * time.Millisecond, 0, time.Microsecond},
		"slow back":            {time.Microsecond, 0, 9 * time.Millisecond},
		"slow between the two": {time.Microsecond, time.Second, time.Microsecond},
	} {
		k := newClock()
		sent := 3 * time.Second
		arrived := sent + c.there + offset
		answered := arrived + c.answering
		received := answered - offset + c.back
		k.exchange(sent, arrived, answered, received)
		got, uncertainty := k.estimate()
		if off := (got - offset).Abs(); off > uncertainty {
			t.Errorf("%s: the offset is off by %v, the uncertainty is %v", name, off, uncertainty)
		}
		if most := (c.there + c.back) / 2; uncertainty > most+1 {
			t.Errorf("%s: the uncertainty is %v, want %v at most", name, uncertainty, most)
		}
		theirs := offset + 10*time.Second
		if off := k.here(theirs).Sub(k.base.Add(10 * time.Second)).Abs(); off > uncertainty {
			t.Errorf("%s: a time is off by %v, the uncertainty is %v", name, off, uncertainty)
		}
	}
}

// The quickest exchange counts, until it is so old that the clocks may have drifted
// apart by more than a slower one would be off.
func TestClockKeepsTheBest(t *testing.T) {
	k := newClock()
	exchange := func(at, took, offset time.Duration) {
		k.exchange(at, at+took/2+offset, at+took/2+offset, at+took)
	}
	exchange(0, 10*time.Millisecond, time.Hour)
	exchange(time.Second, 2*time.Millisecond, time.Hour+time.Millisecond)
	exchange(2*time.Second, 8*time.Millisecond, time.Hour+2*time.Millisecond)
	if got, u := k.estimate(); got != time.Hour+time.Millisecond || u != time.Millisecond {
		t.Errorf("the estimate is %v ± %v, want that of the quickest exchange", got, u)
	}
	exchange(100*time.Second, 8*time.Millisecond, time.Hour+3*time.Millisecond) // 1 ms and 9.9 ms of drift are more than 4 ms
	if got, _ := k.estimate(); got != time.Hour+3*time.Millisecond {
		t.Errorf("the offset is %v, want that of the newest exchange", got)
	}
	k.here(time.Hour + 200*time.Second) // translated 100 s later
	if _, u := k.estimate(); u < 13*time.Millisecond || u > 15*time.Millisecond {
		t.Errorf("the worst uncertainty is %v, want about 14 ms: 4 ms and the drift of 100 s", u)
	}
	if !k.here(0).IsZero() {
		t.Error("no time became one")
	}
}
