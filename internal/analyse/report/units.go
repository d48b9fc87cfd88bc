package report

import (
	"math"
	"strconv"

	"scaler.mesh/scaler/internal/output"
)

// absent is the text for a figure that was not measured.
const absent = "-"

// seconds prints a time with three digits, as in 431ms.
func seconds(v *float64) string {
	if v == nil {
		return absent
	}
	scaled, unit := output.Seconds(*v)
	return threeDigits(scaled) + unit
}

// bytes prints a size with three digits and binary units, as in 182MiB.
func bytes(v *float64) string {
	if v == nil {
		return absent
	}
	return output.Bytes(*v)
}

// number prints a quantity without a unit (cores, a rate) with three digits.
func number(v *float64) string {
	if v == nil {
		return absent
	}
	return threeDigits(*v)
}

// percent prints a share of 1.
func percent(v *float64) string {
	if v == nil {
		return absent
	}
	return threeDigits(*v*100) + "%"
}

// count prints a whole number.
func count[T int | int64](v *T) string {
	if v == nil {
		return absent
	}
	return strconv.FormatInt(int64(*v), 10)
}

// tally formats a count, which may be a mean or a rate.
func tally(v *float64) string {
	if v != nil && *v == math.Trunc(*v) {
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	return number(v)
}

// threeDigits formats v with three significant digits and no exponent; below 1 with three
// decimals, because more precision than a thousandth of a core is not useful.
func threeDigits(v float64) string {
	if v == 0 {
		return output.Digits(v, 0)
	}
	return output.Digits(v, 3)
}

// orEmpty returns an empty value in place of one that was not measured.
func orEmpty[T any](measured *T) *T {
	if measured == nil {
		return new(T)
	}
	return measured
}

// orAbsent prints words that may be unknown.
func orAbsent(s string) string {
	if s == "" {
		return absent
	}
	return s
}
