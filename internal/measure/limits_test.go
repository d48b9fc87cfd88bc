package measure

import (
	"math"
	"testing"
)

// The mean of a limit is over time. Before the first one, and where there was none, it is not known. One of the whole machine does not bind.
func TestMeanLimit(t *testing.T) {
	l := NewProcessorLimits(4)
	if got := l.Mean(at(0), at(1)); got != 0 {
		t.Errorf("before the first: %g", got)
	}
	l.change(at(0), 1)
	l.change(at(2), 2)
	l.change(at(3), 4)
	for _, c := range []struct{ from, to, want, binding float64 }{
		{0, 2, 1, 1}, {1, 3, 1.5, 1.5}, {2, 6, 3.5, 3.5}, {10, 12, 4, 0}, {2.5, 3.5, 3, 3}, {-1, 2, 0, 0}, {2, 2, 0, 0},
	} {
		if got, binding := l.Mean(at(c.from), at(c.to)), l.binding(at(c.from), at(c.to)); math.Abs(got-c.want) > 1e-9 || math.Abs(binding-c.binding) > 1e-9 {
			t.Errorf("from %g to %g: %g, binding %g, want %g and %g", c.from, c.to, got, binding, c.want, c.binding)
		}
	}
	if got := (*ProcessorLimits)(nil).binding(at(0), at(1)); got != 0 {
		t.Errorf("without limits: %g", got)
	}
}
