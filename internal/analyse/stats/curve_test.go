package stats

import (
	"math"
	"testing"
	"time"
)

func TestCurve(t *testing.T) {
	h := NewHistogram()
	if h.Curve() != nil {
		t.Error("nothing has a curve")
	}
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	h.Lose(1000)
	curve := h.Curve()
	first, last := curve[0], curve[len(curve)-1]
	if first != (CurvePoint{0, 0.001}) || last != (CurvePoint{0.5, 1}) {
		t.Errorf("from %v to %v: want it to begin with the least and to end with the greatest, at the share that came", first, last)
	}
	for i, p := range curve[1:] {
		if p.Quantile < curve[i].Quantile || p.Seconds < curve[i].Seconds {
			t.Errorf("%v follows %v", p, curve[i])
		}
		if want := max(0.001, 2*p.Quantile); math.Abs(p.Seconds-want) > 0.0025*want+0.001 {
			t.Errorf("at %g it is %g s: want %g", p.Quantile, p.Seconds, want)
		}
	}
}
