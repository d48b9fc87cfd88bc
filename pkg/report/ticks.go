package report

import "strconv"

// What stands at an axis is 1, 2 or 5 times something, or sums of it: it needs no
// digits for its precision.

func axisNumber(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func axisSeconds(v float64) string {
	switch {
	case v == 0 || v >= 0.9999:
		return strconv.FormatFloat(v, 'f', -1, 32) + "s"
	case v >= 0.9999e-3:
		return axisNumber(v*1e3) + "ms"
	default:
		return axisNumber(v*1e6) + "µs"
	}
}

func axisBytes(v float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if v >= unit.size {
			return axisNumber(v/unit.size) + unit.name
		}
	}
	return axisNumber(v) + "B"
}
