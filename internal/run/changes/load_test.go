package changes

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]Load{
		"5/s":             {5, Endpoint},
		"5/s:endpoint":    {5, Endpoint},
		"0.5/s:route":     {0.5, Route},
		"1e2/s:policy":    {100, Policy},
		"0.01/s:meshwide": {0.01, MeshWide},
		"1000/s:metadata": {1000, Metadata}, "2/s:route-metadata": {2, RouteMetadata},
	} {
		got, err := Parse(in)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v, want %v", in, got, err, want)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%q prints as %q, which parses as %v, %v", in, got, again, err)
		}
	}
	for _, in := range []string{"", "5", "5/m", "/s", "0/s", "-1/s", "1001/s", "NaN/s", "Inf/s", "5/s:", "5/s:pod", "5/s:route:x", "route", "5x:route"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", in, got)
		}
	}
	if got := (Load{}).String(); got != "" {
		t.Errorf("no load prints as %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"2/s", "31.2/s:route", "1e2/s:meshwide", "x/s:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(l.String()); err != nil || again != l {
			t.Errorf("%q: printed as %q, which parses as %v, %v", s, l, again, err)
		}
		length := 10 * time.Second
		if n := l.Count(length); n < 1 || l.Due(n-1) >= length || l.Due(n) < length {
			t.Errorf("%q: %d changes in %s, the last at %s, the next at %s", s, n, length, l.Due(n-1), l.Due(n))
		}
	})
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		load   Load
		length time.Duration
		ok     bool
	}{
		{Load{5, Endpoint}, 30 * time.Second, true},
		{Load{5, Endpoint}, 500 * time.Millisecond, false},
		{Load{5, Endpoint}, 25 * time.Hour, false},
		{Load{1000, Endpoint}, 100 * time.Second, true},
		{Load{1000, Endpoint}, 101 * time.Second, false},
	} {
		if err := c.load.Validate(c.length); (err == nil) != c.ok {
			t.Errorf("%s for %s: %v", c.load, c.length, err)
		}
	}
}
