package workload

import (
	"testing"
	"time"
)

func TestParseArrival(t *testing.T) {
	for in, want := range map[string]struct {
		rate     Arrival
		text     string
		interval time.Duration
	}{
		"15/s":   {15, "15/s", 66666666 * time.Nanosecond},
		"0.5/s":  {0.5, "0.5/s", 2 * time.Second},
		"1000/s": {1000, "1000/s", time.Millisecond},
		"0.01/s": {0.01, "0.01/s", 100 * time.Second},
		"stock":  {20, "20/s", 50 * time.Millisecond},
	} {
		got, err := ParseArrival(in)
		if err != nil || got != want.rate || got.String() != want.text || got.Burst() != (Burst{1, want.interval}) {
			t.Errorf("%q is %v, %q, %+v, %v; want %+v", in, float64(got), got, got.Burst(), err, want)
		}
	}
}

func TestParseArrivalErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":        `parsing --arrival "": want pods a second, as in 15/s, or stock`,
		"15":      `parsing --arrival "15": want pods a second, as in 15/s, or stock`,
		"15/m":    `parsing --arrival "15/m": want pods a second, as in 15/s, or stock`,
		"all":     `parsing --arrival "all": want pods a second, as in 15/s, or stock`,
		"0/s":     `parsing --arrival "0/s": want from 0.01/s to 1000/s`,
		"-1/s":    `parsing --arrival "-1/s": want from 0.01/s to 1000/s`,
		"NaN/s":   `parsing --arrival "NaN/s": want from 0.01/s to 1000/s`,
		"1e9/s":   `parsing --arrival "1e9/s": want from 0.01/s to 1000/s`,
		"0.009/s": `parsing --arrival "0.009/s": want from 0.01/s to 1000/s`,
	} {
		if got, err := ParseArrival(in); err == nil || err.Error() != want {
			t.Errorf("%q is %v, %v, want error %q", in, float64(got), err, want)
		}
	}
}

// FuzzParseArrival checks that what is accepted makes a burst that is accepted too,
// and is read again as it is written.
func FuzzParseArrival(f *testing.F) {
	for _, s := range []string{"15/s", "stock", "0.01/s", "1e3/s", "/s", "0x1p-3/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseArrival(s)
		if err != nil {
			return
		}
		if again, err := ParseArrival(a.String()); err != nil || again != a {
			t.Errorf("%q is %v, written as %q, which is %v, %v", s, float64(a), a, float64(again), err)
		}
		if b, err := ParseBurst(a.Burst().String()); err != nil || b != a.Burst() {
			t.Errorf("%q is the burst %v, which is read as %v, %v", s, a.Burst(), b, err)
		}
	})
}
