package chart

import "strconv"

// Ticks says where an axis has labels, and how they are printed.
type Ticks struct {
	Text   func(float64) string
	Binary bool // steps are powers of two, and not 1, 2 or 5 times a power of ten
}

// The ticks of numbers, of times in seconds, and of sizes in bytes, which are printed in binary units.
var (
	Number  = Ticks{Text: number}
	Seconds = Ticks{Text: seconds}
	Bytes   = Ticks{Text: bytes, Binary: true}
)

// number has four digits, which are enough for multiples of 1, 2 or 5 times a power of ten.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func seconds(v float64) string {
	switch {
	case v == 0 || v >= 0.9999:
		return strconv.FormatFloat(v, 'f', -1, 32) + "s"
	case v >= 0.9999e-3:
		return number(v*1e3) + "ms"
	default:
		return number(v*1e6) + "µs"
	}
}

func bytes(v float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if v >= unit.size {
			return number(v/unit.size) + unit.name
		}
	}
	return number(v) + "B"
}
