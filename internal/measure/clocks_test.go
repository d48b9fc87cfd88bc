package measure

import (
	"testing"
	"time"
)

func TestClocks(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		wall, monotonic, boot time.Duration // that passed
		want                  Disturbance
	}{
		"undisturbed":                     {s, s, s, Disturbance{}},
		"a slewed clock":                  {s + 400*ms, s, s, Disturbance{}},
		"a busy machine":                  {3 * s, 3 * s, 3 * s, Disturbance{}},
		"moved forward by an hour":        {time.Hour + s, s, s, Disturbance{Moved: time.Hour}},
		"moved back by an hour":           {s - time.Hour, s, s, Disturbance{Moved: -time.Hour}},
		"suspended for a minute":          {61 * s, s, 61 * s, Disturbance{Suspended: time.Minute}},
		"suspended, and its clock is set": {60*s + time.Hour, s, 60 * s, Disturbance{Suspended: 59 * s, Moved: time.Hour}},
		"stopped for a minute":            {61 * s, 61 * s, 61 * s, Disturbance{Paused: time.Minute}},
	} {
		now := moment{wall: epoch, monotonic: time.Hour, boot: 2 * time.Hour}
		clocks, err := newClocks(func() (moment, error) { return now, nil })
		if err != nil {
			t.Fatal(err)
		}
		now = moment{now.wall.Add(c.wall), now.monotonic + c.monotonic, now.boot + c.boot}
		if got, err := clocks.Compare(s); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
		if got, err := clocks.Compare(0); err != nil || got != (Disturbance{}) {
			t.Errorf("%s, once more: %+v, %v", name, got, err)
		}
	}
}

func TestClocksOfThisMachine(t *testing.T) {
	clocks, err := NewClocks()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := clocks.Compare(0); err != nil || got != (Disturbance{}) {
		t.Errorf("%+v, %v; want nothing", got, err)
	}
}
