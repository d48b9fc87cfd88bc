package rollout

import (
	"testing"
)

func TestBinding(t *testing.T) {
	for _, c := range []struct {
		sidecars int
		seconds  float64
		binds    bool
	}{
		{100, 0.5, false},  // within the burst
		{400, 3.1, true},   // (400-160)/80 = 3 s
		{400, 10, false},   // much longer than the limit explains
		{1600, 18.1, true}, // 18 s
	} {
		if got := binding(c.sidecars, c.seconds); (got != "") != c.binds {
			t.Errorf("binding(%d, %g) is %q", c.sidecars, c.seconds, got)
		}
	}
}
