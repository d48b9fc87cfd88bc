package compare

import (
	"fmt"
	"math"
	"strconv"

	"scaler.mesh/scaler/internal/output"
)

// print formats a figure, scaled for reading, with three digits.
func (u Unit) print(v float64) string {
	switch u {
	case Seconds:
		scaled, unit := output.Seconds(v)
		return digits(scaled) + unit
	case Bytes:
		return output.Bytes(v)
	case Share:
		return digits(v*100) + "%"
	case PerSecond:
		return digits(v) + "/s"
	case BytesPerSecond:
		return Bytes.print(v) + "/s"
	default:
		return digits(v)
	}
}

// digits formats v with three significant digits and no exponent; whole numbers without a
// decimal point.
func digits(v float64) string {
	if v == math.Trunc(v) {
		return output.Digits(v, 0)
	}
	return output.Digits(v, 4)
}

// signed formats a difference: of a ratio in percent, else in the unit.
func (f *Figure) signed(d float64) string {
	sign := "+"
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case !f.Ratio:
		return sign + f.Unit.print(d)
	case d >= 9.995: // ten times as much and more
		return "x" + digits(d+1)
	default:
		return sign + strconv.FormatFloat(d*100, 'f', 1, 64) + "%"
	}
}

// differenceText formats the difference; "-" if there is none.
func (f *Figure) differenceText() string {
	if f.Difference == nil {
		return "-"
	}
	return f.signed(*f.Difference)
}

func (f *Figure) intervalText() string {
	if f.Low == nil {
		return "-"
	}
	return f.signed(*f.Low) + " to " + f.signed(*f.High)
}

// changeText formats the change of a figure, with both values.
func (f *Figure) changeText() string {
	return fmt.Sprintf("%s to %s (%s)", f.Unit.print(*f.A.Mean), f.Unit.print(*f.B.Mean), f.differenceText())
}

// text formats the mean of a sample, and the range of its values.
func (s *Sample) text(u Unit) string {
	switch {
	case s.N == 0 && s.Lost > 0:
		return "lost"
	case s.N == 0:
		return "-"
	}
	text := u.print(*s.Mean)
	if least, most := u.print(*s.Min), u.print(*s.Max); least != most {
		text += " (" + least + " to " + most + ")"
	}
	if s.Lost > 0 {
		text += fmt.Sprintf(", lost in %d", s.Lost)
	}
	return text
}

func pText(p *float64) string {
	switch {
	case p == nil:
		return "-"
	case *p < 0.0005:
		return "<0.001"
	default:
		return strconv.FormatFloat(*p, 'f', 3, 64)
	}
}
