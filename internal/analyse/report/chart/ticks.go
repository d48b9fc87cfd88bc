package chart

import "strconv"

// Number formats a number at an axis. Ticks are multiples of 1, 2 or 5 times a power of
// ten, so four digits are enough.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// Seconds prints a time at an axis.
func Seconds(v float64) string {
	switch {
	case v == 0 || v >= 0.9999:
		return strconv.FormatFloat(v, 'f', -1, 32) + "s"
	case v >= 0.9999e-3:
		return Number(v*1e3) + "ms"
	default:
		return Number(v*1e6) + "µs"
	}
}

// Bytes prints a size at an axis, in binary units. Steps of an axis that has it are powers of two.
func Bytes(v float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if v >= unit.size {
			return Number(v/unit.size) + unit.name
		}
	}
	return Number(v) + "B"
}
