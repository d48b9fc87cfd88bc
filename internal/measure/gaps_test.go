package measure

import (
	"testing"
	"time"
)

func TestGaps(t *testing.T) {
	up := func(times ...float64) (points []Point) {
		for _, s := range times {
			points = append(points, Point{at(s), 1})
		}
		return points
	}
	failed := up(0.5, 1.5, 2.5, 3.5)
	failed[1].Value, failed[2].Value = 0, 0
	for _, test := range []struct {
		name          string
		up            []Point
		from, to      float64
		missed, total int
	}{
		{"all there", up(0.5, 1.5, 2.5, 3.5), 0, 4, 0, 4},
		{"on the edge", up(1, 2, 3), 0, 3, 0, 3},
		{"a millisecond late", up(1.001, 2.001, 3), 0, 3, 0, 3},
		{"jitter", up(0.5, 1.9, 2.4, 3.6), 0, 4, 0, 4},
		{"two failed", failed, 0, 4, 2, 4},
		{"one never made", up(0.5, 2.5, 3.5), 0, 4, 1, 4},
		{"late start", up(2.5, 3.5), 0, 4, 2, 4},
		{"early end", up(0.5, 1.5), 0, 4, 2, 4},
		{"none", nil, 0, 4.5, 4, 4},
		{"window shorter than the interval", nil, 0, 0.5, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			missed, total := gaps(test.up, at(test.from), at(test.to), time.Second)
			if missed != test.missed || total != test.total {
				t.Errorf("got %d of %d, want %d of %d", missed, total, test.missed, test.total)
			}
		})
	}
}
