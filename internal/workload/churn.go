package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of a churn's rate: one pod in 100 s, and more than a cluster can do.
const (
	minChurn = 0.01
	maxChurn = 1000
)

// Churn is the number of pods replaced per second. 0 means none.
type Churn float64

// ParseChurn parses the value of --churn, as in "2/s" or "31.2/s". Its error
// names the flag, the value and what is wanted.
func ParseChurn(s string) (Churn, error) {
	number, isRate := strings.CutSuffix(s, "/s")
	rate, err := strconv.ParseFloat(number, 64)
	switch {
	case !isRate || err != nil:
		return 0, fmt.Errorf("parsing --churn %q: want pods a second, as in 2/s", s)
	case !(rate >= minChurn && rate <= maxChurn): // not a number is neither
		return 0, fmt.Errorf("parsing --churn %q: want from %v/s to %d/s", s, minChurn, maxChurn)
	}
	return Churn(rate), nil
}

// String returns the rate as ParseChurn reads it, "" for none.
func (c Churn) String() string {
	if c == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(c), 'g', -1, 64) + "/s"
}

// Due returns the time since the start at which the n-th pod, from 0, is to be replaced.
// The schedule does not wait for earlier replacements.
func (c Churn) Due(n int) time.Duration {
	return time.Duration(float64(n) / float64(c) * float64(time.Second))
}
