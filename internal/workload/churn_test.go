package workload

import (
	"testing"
	"time"
)

func TestParseChurn(t *testing.T) {
	for _, test := range []struct {
		in    string
		want  Churn
		fails bool
	}{
		{in: "2/s", want: 2},
		{in: "31.2/s", want: 31.2},
		{in: "0.01/s", want: 0.01},
		{in: "1000/s", want: 1000},
		{in: "", fails: true},
		{in: "5x", fails: true},
		{in: "2", fails: true},
		{in: "/s", fails: true},
		{in: "2/m", fails: true},
		{in: "0/s", fails: true},
		{in: "-1/s", fails: true},
		{in: "1001/s", fails: true},
		{in: "NaN/s", fails: true},
		{in: "Inf/s", fails: true},
		{in: "1e999/s", fails: true},
	} {
		got, err := ParseChurn(test.in)
		if (err != nil) != test.fails || got != test.want {
			t.Errorf("ParseChurn(%q) = %v, %v, want %v, error %t", test.in, got, err, test.want, test.fails)
		}
	}
}

func FuzzParseChurn(f *testing.F) {
	for _, s := range []string{"2/s", "31.2/s", "1e2/s", "x/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseChurn(s)
		if err != nil {
			return
		}
		if again, err := ParseChurn(c.String()); err != nil || again != c {
			t.Errorf("%q: printed as %q, which parses as %v, %v", s, c, again, err)
		}
		if due := c.Due(1); due < time.Millisecond || due > 100*time.Second {
			t.Errorf("%q: the second pod is due after %s", s, due)
		}
	})
}

func TestChurnDue(t *testing.T) {
	for n, want := range []time.Duration{0, 500 * time.Millisecond, time.Second} {
		if got := Churn(2).Due(n); got != want {
			t.Errorf("pod %d of 2/s is due after %s, want %s", n, got, want)
		}
	}
}
