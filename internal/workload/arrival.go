package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bounds of an arrival rate: one pod in 100 s, and as many as bursts of one allow.
const (
	minArrival = 0.01
	maxArrival = 1000
)

// StockArrival is the value of --arrival for the pace of a cluster whose
// controller-manager has the stock limits: the ReplicaSet controller creates pods
// through a client of 20 requests a second (--kube-api-qps).
const StockArrival = "stock"

// stockRate is the rate of StockArrival, in pods a second.
const stockRate = 20

// Arrival is the rate at which pods arrive, in pods per second, one by one and evenly
// spaced. 0 means that they arrive in bursts.
type Arrival float64

// ParseArrival parses the value of --arrival, as in "15/s", or "stock". Its error
// names the flag, the value and what is wanted.
func ParseArrival(s string) (Arrival, error) {
	if s == StockArrival {
		return stockRate, nil
	}
	number, isRate := strings.CutSuffix(s, "/s")
	rate, err := strconv.ParseFloat(number, 64)
	switch {
	case !isRate || err != nil:
		return 0, fmt.Errorf("parsing --arrival %q: want pods a second, as in 15/s, or %s", s, StockArrival)
	case !(rate >= minArrival && rate <= maxArrival): // not a number is neither
		return 0, fmt.Errorf("parsing --arrival %q: want from %v/s to %d/s", s, minArrival, maxArrival)
	}
	return Arrival(rate), nil
}

// String returns the rate as ParseArrival reads it, "" for none.
func (a Arrival) String() string {
	if a == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(a), 'g', -1, 64) + "/s"
}

// Burst returns the arrival as bursts of one pod each.
func (a Arrival) Burst() Burst {
	return Burst{Size: 1, Interval: time.Duration(float64(time.Second) / float64(a))}
}
