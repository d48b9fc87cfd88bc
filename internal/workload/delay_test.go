package workload

import (
	"testing"
	"time"
)

func TestParseDelay(t *testing.T) {
	for _, test := range []struct {
		in    string
		want  Delay
		fails bool
	}{
		{in: "2s", want: Delay{Shape: Constant, Mean: 2 * time.Second}},
		{in: "0s", want: Delay{Shape: Constant}},
		{in: "constant:150ms", want: Delay{Shape: Constant, Mean: 150 * time.Millisecond}},
		{in: "uniform:1s-5s", want: Delay{Shape: Uniform, Min: time.Second, Max: 5 * time.Second}},
		{in: "uniform:2s-2s", want: Delay{Shape: Uniform, Min: 2 * time.Second, Max: 2 * time.Second}},
		{in: "exponential:2s", want: Delay{Shape: Exponential, Mean: 2 * time.Second}},
		{in: "", fails: true},
		{in: "2", fails: true},
		{in: "-2s", fails: true},
		{in: "2h", fails: true},
		{in: "uniform:5s-1s", fails: true},
		{in: "uniform:1s", fails: true},
		{in: "uniform:1s-", fails: true},
		{in: "uniform:-1s-5s", fails: true},
		{in: "exponential:", fails: true},
		{in: "exponential:-1s", fails: true},
		{in: "normal:1s", fails: true},
		{in: ":1s", fails: true},
	} {
		got, err := ParseDelay(test.in)
		if (err != nil) != test.fails || got != test.want {
			t.Errorf("ParseDelay(%q) = %+v, %v, want %+v, error %t", test.in, got, err, test.want, test.fails)
		}
	}
}

// FuzzParseDelay checks that what is accepted prints as what means the same.
func FuzzParseDelay(f *testing.F) {
	for _, s := range []string{"2s", "uniform:1s-5s", "exponential:2s", "constant:1h", "uniform:0s-0s", "x:1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDelay(s)
		if err != nil {
			return
		}
		if got := d.Of(1, 1); got < 0 || got > exponentialBound*maxDelay {
			t.Errorf("%q: delay of %s", s, got)
		}
		if d.String() == "" {
			return // none
		}
		if again, err := ParseDelay(d.String()); err != nil || again != d {
			t.Errorf("%q: printed as %q, which parses as %+v, %v", s, d, again, err)
		}
	})
}

func TestDelayOf(t *testing.T) {
	const pods = 20_000
	mean := func(d Delay) (mean, least, most time.Duration) {
		least = time.Hour
		var sum time.Duration
		for n := range pods {
			v := d.Of(7, n)
			if v != d.Of(7, n) {
				t.Fatalf("%s: pod %d has two delays", d, n)
			}
			sum += v
			least, most = min(least, v), max(most, v)
		}
		return sum / pods, least, most
	}
	about := func(got, want time.Duration) bool { return got > want*97/100 && got < want*103/100 }

	if m, least, most := mean(Delay{Mean: 2 * time.Second}); m != 2*time.Second || least != m || most != m {
		t.Errorf("constant: %s to %s, mean %s", least, most, m)
	}
	if m, least, most := mean(Delay{Shape: Uniform, Min: time.Second, Max: 5 * time.Second}); !about(m, 3*time.Second) || least < time.Second || most > 5*time.Second {
		t.Errorf("uniform: %s to %s, mean %s", least, most, m)
	}
	if m, _, most := mean(Delay{Shape: Exponential, Mean: 2 * time.Second}); !about(m, 2*time.Second) || most > 20*time.Second {
		t.Errorf("exponential: up to %s, mean %s", most, m)
	}
	if d := (Delay{Shape: Uniform, Max: time.Hour}); d.Of(1, 5) == d.Of(2, 5) {
		t.Error("the seed changes nothing")
	}
	if d := (Delay{}); d.Of(1, 1) != 0 {
		t.Error("no delay is a delay")
	}
}
