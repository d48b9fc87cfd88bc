package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// maxDelay bounds what a start-up delay may be asked to be.
const maxDelay = time.Hour

// exponentialBound cuts an exponential delay off: one in 22,000 is longer than
// ten times the mean, and a single pod must not decide how long a rollout takes.
const exponentialBound = 10

// Delay is the distribution of the time from a pod's having its address to the
// start of its sidecar: images to pull, containers to create. The zero value is
// no delay.
type Delay struct {
	Shape    string        // "constant", "uniform" or "exponential"; "" means constant
	Min, Max time.Duration // of uniform
	Mean     time.Duration // of constant and exponential
}

// Shapes of a Delay.
const (
	Constant    = "constant"
	Uniform     = "uniform"
	Exponential = "exponential"
)

// ParseDelay parses the value of --start-delay: a duration as in "2s", or
// "constant:2s", "uniform:1s-5s", "exponential:2s". Its error names the flag,
// the value and what is wanted.
func ParseDelay(s string) (Delay, error) {
	wrong := func(want string) (Delay, error) {
		return Delay{}, fmt.Errorf("parsing --start-delay %q: want %s", s, want)
	}
	shape, value, named := strings.Cut(s, ":")
	if !named {
		shape, value = Constant, s
	}
	d := Delay{Shape: shape}
	var err error
	switch shape {
	case Constant, Exponential:
		d.Mean, err = time.ParseDuration(value)
	case Uniform:
		low, high, _ := strings.Cut(value, "-")
		if d.Min, err = time.ParseDuration(low); err == nil {
			d.Max, err = time.ParseDuration(high)
		}
	default:
		err = fmt.Errorf("no shape %q", shape)
	}
	switch {
	case err != nil:
		return wrong("a duration as in 2s, uniform:1s-5s or exponential:2s")
	case d.Mean < 0 || d.Min < 0 || max(d.Mean, d.Max) > maxDelay:
		return wrong("durations from 0s to 1h")
	case d.Min > d.Max:
		return wrong("uniform's shorter duration first")
	}
	return d, nil
}

// String returns the delay as ParseDelay reads it, "" for none at all.
func (d Delay) String() string {
	switch {
	case d == Delay{} || d == Delay{Shape: Constant}:
		return ""
	case d.Shape == Uniform:
		return fmt.Sprintf("%s:%s-%s", d.Shape, d.Min, d.Max)
	case d.Shape == "":
		return Constant + ":" + d.Mean.String()
	default:
		return d.Shape + ":" + d.Mean.String()
	}
}

// Of returns the delay of the n-th pod. It depends on seed and n only. An exponential
// delay is limited to ten times the mean.
func (d Delay) Of(seed uint64, n int) time.Duration {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	switch d.Shape {
	case Uniform:
		return d.Min + time.Duration(random.Float64()*float64(d.Max-d.Min))
	case Exponential:
		return time.Duration(math.Min(random.ExpFloat64(), exponentialBound) * float64(d.Mean))
	default:
		return d.Mean
	}
}
