package dilation

import (
	"fmt"
	"strconv"
)

// Auto is the value for a factor that a trial chooses.
const Auto = -1

// Max is the largest factor. It limits the duration of a run whose factor is mistyped.
const Max = 64

// Parse parses the value of --dilate: a factor, or auto for one that a trial
// chooses. Its error names the flag, the value and what is wanted.
func Parse(text string) (float64, error) {
	if text == "auto" {
		return Auto, nil
	}
	k, err := strconv.ParseFloat(text, 64)
	if err != nil || k < 0 {
		return 0, FactorError(strconv.Quote(text))
	}
	return k, nil
}

// FactorError returns the error for a value of --dilate that is no factor.
func FactorError(value string) error {
	return fmt.Errorf("parsing --dilate %s: want from 1 to %d, or auto", value, Max)
}
