package measure

import (
	"math"
	"testing"
)

// The mean of a limit is over time. Before the first one, and where there was none, it is not known.
func TestMeanLimit(t *testing.T) {
	var l limits
	l.change(at(0), 1)
	l.change(at(2), 2)
	l.change(at(3), 4)
	for _, c := range []struct{ from, to, want float64 }{
		{0, 2, 1}, {1, 3, 1.5}, {2, 6, 3.5}, {10, 12, 4}, {2.5, 3.5, 3}, {-1, 2, 0}, {2, 2, 0},
	} {
		if got := l.mean(at(c.from), at(c.to)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("from %g to %g: %g, want %g", c.from, c.to, got, c.want)
		}
	}
	if got := (*limits)(nil).mean(at(0), at(1)); got != 0 {
		t.Errorf("without limits: %g", got)
	}
}
