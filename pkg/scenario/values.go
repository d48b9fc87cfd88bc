package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// List is a list that a document writes as a single value where it has one.
type List[T any] []T

// MarshalJSON writes one value as itself and several as an array.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if len(l) == 1 {
		return json.Marshal(l[0])
	}
	return json.Marshal([]T(l))
}

// UnmarshalJSON reads a value or an array of values.
func (l *List[T]) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, (*[]T)(l))
	}
	var one T
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*l = List[T]{one}
	return nil
}

// First returns the first value, the zero value of an empty list: the value of a single run.
func (l List[T]) First() T {
	if len(l) == 0 {
		return *new(T)
	}
	return l[0]
}

// Duration is a length of time as Go writes it, as in 90s or 1h30m.
type Duration time.Duration

// String returns the duration as UnmarshalText reads it.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText returns the duration as UnmarshalText reads it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration that is not negative.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	switch {
	case err != nil:
		return wrong(string(text), "a duration, as in 90s or 15m")
	case v < 0:
		return wrong(string(text), "a duration that is not negative")
	}
	*d = Duration(v)
	return nil
}

// Bytes is an amount of memory as Kubernetes writes it, as in 512Mi or 2G.
type Bytes int64

// byteUnits are the suffixes of quantities, greatest first within a base.
var byteUnits = []struct {
	suffix string
	bytes  float64
}{
	{"Ei", 1 << 60}, {"Pi", 1 << 50}, {"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
	{"E", 1e18}, {"P", 1e15}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3},
}

// String returns the amount with the greatest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range byteUnits[:6] {
		if b != 0 && math.Mod(float64(b), u.bytes) == 0 {
			return strconv.FormatInt(int64(float64(b)/u.bytes), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalText returns the amount as UnmarshalText reads it.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads a quantity of bytes: a decimal number and an optional unit. Fractions of
// a byte are rounded up, as Kubernetes does.
func (b *Bytes) UnmarshalText(text []byte) error {
	const want = "bytes with a unit, as in 512Mi, 2Gi or 1G"
	number, unit := string(text), 1.0
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	if strings.ContainsAny(number, "xXpP_") { // Go's own notations
		return wrong(string(text), want)
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0) || v*unit >= math.MaxInt64 {
		return wrong(string(text), want)
	}
	*b = Bytes(math.Ceil(v * unit))
	return nil
}

// Rate is a number of events per second, as in 5/s; 0 = never.
type Rate float64

// Greatest and least rates that can be asked for.
const (
	MinRate = 0.01
	MaxRate = 1000
)

// String returns the rate as UnmarshalText reads it; "" for 0.
func (r Rate) String() string {
	if r == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(r), 'g', -1, 64) + "/s"
}

// MarshalText returns the rate as UnmarshalText reads it.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rate, as in 5/s, from MinRate to MaxRate.
func (r *Rate) UnmarshalText(text []byte) error {
	number, perSecond := strings.CutSuffix(string(text), "/s")
	v, err := strconv.ParseFloat(number, 64)
	switch {
	case !perSecond || err != nil:
		return wrong(string(text), "a rate, as in 5/s")
	case !(v >= MinRate && v <= MaxRate): // not a number is neither
		return wrong(string(text), fmt.Sprintf("from %v/s to %v/s", MinRate, MaxRate))
	}
	*r = Rate(v)
	return nil
}

// Due returns the time after the start at which the n-th event, from 0, is due. The schedule does not wait
// for earlier events.
func (r Rate) Due(n int) time.Duration {
	return time.Duration(float64(n) / float64(r) * float64(time.Second))
}

// Share is a part of the pods, as in 50%; 0 = all of them.
type Share float64

// String returns the share as UnmarshalText reads it.
func (s Share) String() string {
	if s == 0 {
		s = 1
	}
	return strconv.FormatFloat(float64(s)*100, 'g', 6, 64) + "%"
}

// MarshalText returns the share as UnmarshalText reads it.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a share above 0% and up to 100%.
func (s *Share) UnmarshalText(text []byte) error {
	number, percent := strings.CutSuffix(string(text), "%")
	share, err := strconv.ParseFloat(number, 64)
	if !percent || err != nil || !(share > 0) || share > 100 {
		return wrong(string(text), "a share above 0% and up to 100%, as in 50%")
	}
	if *s = Share(share / 100); share == 100 {
		*s = 0
	}
	return nil
}

// Shares are ascending shares of the pods, as in 10%,50%,100%; the last one is the whole.
type Shares []float64

// String returns the shares as UnmarshalText reads them.
func (s Shares) String() string {
	var all []string
	for _, share := range s {
		all = append(all, strconv.FormatFloat(share*100, 'g', 6, 64)+"%")
	}
	return strings.Join(all, ",")
}

// MarshalText returns the shares as UnmarshalText reads them.
func (s Shares) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads shares with commas between them.
func (s *Shares) UnmarshalText(text []byte) error {
	var shares Shares
	for field := range strings.SplitSeq(string(text), ",") {
		number, percent := strings.CutSuffix(strings.TrimSpace(field), "%")
		share, err := strconv.ParseFloat(number, 64)
		switch {
		case !percent || err != nil:
			return wrong(string(text), "shares of the pods, as in 10%,50%,100%")
		case !(share > 0) || share > 100:
			return wrong(string(text), "shares above 0% and up to 100%")
		case len(shares) > 0 && share/100 <= shares[len(shares)-1]:
			return wrong(string(text), "ascending shares, each with the ones before it, as in 10%,50%,100%")
		}
		shares = append(shares, share/100)
	}
	if shares[len(shares)-1] != 1 {
		return wrong(string(text), "100% as the last share: an upgrade moves all pods")
	}
	*s = shares
	return nil
}

// Arrival is the schedule by which pods are created: all at once (the zero value), in bursts of
// Size every Interval, or one by one at Rate a second, evenly spaced.
type Arrival struct {
	Size     int
	Interval time.Duration
	Rate     float64
}

// StockArrival is the value of the rate that the stock limit of a cluster's controllers allows.
const StockArrival = "stock"

// stockRate is 20 pods a second: the default --kube-api-qps of kube-controller-manager
// (pkg/controller/apis/config/v1alpha1/defaults.go of Kubernetes).
const stockRate = 20

// stockStart is the time that the containers of a pod take to start, images not counted. Kubernetes' objective is 5 s for 99 % of the
// pods; with 20 or 30 pods on each node half of them took 2.9 s, and 90 % 4.1 s (kubernetes/kubernetes#3954). The
// definitions give the reasons.
var stockStart = Delay{Min: time.Second, Max: 5 * time.Second}

// Bounds of an arrival.
const (
	MaxPods         = 100_000 // five times the largest cluster that Kubernetes is tested for
	minArrival      = 0.01    // pods a second
	maxArrival      = 1000
	minBurstSpacing = time.Millisecond
	maxBurstSpacing = time.Hour
)

// String returns the arrival as UnmarshalText reads it.
func (a Arrival) String() string {
	switch {
	case a.Rate > 0:
		return strconv.FormatFloat(a.Rate, 'g', -1, 64) + "/s"
	case a.Size > 0:
		return fmt.Sprintf("%d/%s", a.Size, a.Interval)
	}
	return "all"
}

// Bursts returns the arrival as bursts: of one pod each where it is a rate. size 0 means all at once.
func (a Arrival) Bursts() (size int, interval time.Duration) {
	if a.Rate > 0 {
		return 1, time.Duration(float64(time.Second) / a.Rate)
	}
	return a.Size, a.Interval
}

// PerSecond returns the mean rate at which pods come, and peak that within a burst, or in its first second; 0 means all at once.
func (a Arrival) PerSecond() (mean, peak float64) {
	if a.Size == 0 {
		return a.Rate, a.Rate
	}
	seconds, size := a.Interval.Seconds(), float64(a.Size)
	return size / seconds, size / min(1, seconds)
}

// Slowed returns the arrival k times as slow.
func (a Arrival) Slowed(k float64) Arrival {
	a.Rate /= k
	a.Interval = time.Duration(float64(a.Interval) * k)
	return a
}

// MarshalText returns the arrival as UnmarshalText reads it.
func (a Arrival) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads all, SIZE/INTERVAL as in 100/10s, RATE/s as in 20/s, or stock.
func (a *Arrival) UnmarshalText(data []byte) error {
	text := string(data)
	switch text {
	case "all":
		*a = Arrival{}
		return nil
	case StockArrival:
		*a = Arrival{Rate: stockRate}
		return nil
	}
	const want = "all, SIZE/INTERVAL as in 100/10s, or pods a second as in 20/s"
	left, right, _ := strings.Cut(text, "/")
	if right == "s" {
		rate, err := strconv.ParseFloat(left, 64)
		switch {
		case err != nil:
			return wrong(text, want)
		case !(rate >= minArrival && rate <= maxArrival): // not a number is neither
			return wrong(text, fmt.Sprintf("from %v/s to %d/s", minArrival, maxArrival))
		}
		*a = Arrival{Rate: rate}
		return nil
	}
	size, sizeErr := strconv.Atoi(left)
	interval, intervalErr := time.ParseDuration(right)
	switch {
	case sizeErr != nil || intervalErr != nil:
		return wrong(text, want)
	case size < 1 || size > MaxPods:
		return wrong(text, fmt.Sprintf("a size of 1 to %d", MaxPods))
	case interval < minBurstSpacing || interval > maxBurstSpacing:
		return wrong(text, "an interval of 1ms to 1h")
	}
	*a = Arrival{Size: size, Interval: interval}
	return nil
}

// Delay is the time from a pod's address to the start of its sidecar: Mean alone is constant
// or, with Exponential, the mean of an exponential distribution; Min and Max bound a uniform
// one. The zero value is none.
type Delay struct {
	Mean        time.Duration
	Exponential bool
	Min, Max    time.Duration
}

// Spread returns the time between the first and the last start of the sidecars of pods that get their addresses together: Max - Min of a
// uniform delay, and twice the mean of an exponential one, which covers 86 % of them.
func (d Delay) Spread() time.Duration {
	if d.Exponential {
		return 2 * d.Mean
	}
	return d.Max - d.Min
}

// Average returns the mean of the delay.
func (d Delay) Average() time.Duration {
	if d.Max > 0 {
		return (d.Min + d.Max) / 2
	}
	return d.Mean
}

// maxDelay bounds a delay.
const maxDelay = time.Hour

// exponentialBound cuts an exponential delay off: one in 22,000 is longer than ten times the
// mean, and a single pod must not decide how long a rollout takes.
const exponentialBound = 10

// Of returns the delay of the n-th pod. It depends on seed and n only. An exponential delay is
// limited to ten times the mean.
func (d Delay) Of(seed uint64, n int) time.Duration {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	switch {
	case d.Max > 0:
		return d.Min + time.Duration(random.Float64()*float64(d.Max-d.Min))
	case d.Exponential:
		return time.Duration(math.Min(random.ExpFloat64(), exponentialBound) * float64(d.Mean))
	}
	return d.Mean
}

// Longest returns the approximate longest delay of n pods.
func (d Delay) Longest(n int) time.Duration {
	if d.Exponential {
		return time.Duration(min(exponentialBound, math.Log(float64(max(1, n)))) * float64(d.Mean))
	}
	return max(d.Mean, d.Max)
}

// Slowed returns the delay k times as long.
func (d Delay) Slowed(k float64) Delay {
	for _, t := range []*time.Duration{&d.Mean, &d.Min, &d.Max} {
		*t = time.Duration(float64(*t) * k)
	}
	return d
}

// String returns the delay as UnmarshalText reads it.
func (d Delay) String() string {
	switch {
	case d.Max > 0:
		return fmt.Sprintf("uniform:%s-%s", d.Min, d.Max)
	case d.Exponential:
		return "exponential:" + d.Mean.String()
	}
	return d.Mean.String()
}

// MarshalText returns the delay as UnmarshalText reads it.
func (d Delay) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration, uniform:MIN-MAX or exponential:MEAN.
func (d *Delay) UnmarshalText(data []byte) error {
	text := string(data)
	shape, value, named := strings.Cut(text, ":")
	if !named {
		shape, value = "constant", text
	}
	var v Delay
	var err error
	switch shape {
	case "exponential":
		v.Exponential = true
		v.Mean, err = time.ParseDuration(value)
	case "constant":
		v.Mean, err = time.ParseDuration(value)
	case "uniform":
		low, high, _ := strings.Cut(value, "-")
		if v.Min, err = time.ParseDuration(low); err == nil {
			v.Max, err = time.ParseDuration(high)
		}
	default:
		err = fmt.Errorf("no shape %q", shape)
	}
	switch {
	case err != nil:
		return wrong(text, "a duration as in 2s, uniform:1s-5s or exponential:2s")
	case v.Mean < 0 || v.Min < 0 || max(v.Mean, v.Max) > maxDelay:
		return wrong(text, "durations from 0s to 1h")
	case v.Min > v.Max:
		return wrong(text, "uniform's shorter duration first")
	}
	*d = v
	return nil
}

// Dilation is the factor K by which time is slowed down, so that this machine can do what the modelled
// one does. Auto chooses it. The zero value leaves it to the command.
type Dilation struct {
	Factor float64 // 1 = not slowed down
	Auto   bool
}

// MaxDilation is the greatest factor.
const MaxDilation = 64

// String returns the factor as UnmarshalText reads it; "" for the zero value.
func (d Dilation) String() string {
	switch {
	case d.Auto:
		return "auto"
	case d.Factor == 0:
		return ""
	}
	return strconv.FormatFloat(d.Factor, 'g', -1, 64)
}

// MarshalText returns the factor as UnmarshalText reads it.
func (d Dilation) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a factor from 1 to MaxDilation, or auto.
func (d *Dilation) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*d = Dilation{Auto: true}
		return nil
	}
	k, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(k >= 1 && k <= MaxDilation) {
		return wrong(string(text), fmt.Sprintf("from 1 to %d, or auto", MaxDilation))
	}
	*d = Dilation{Factor: k}
	return nil
}
