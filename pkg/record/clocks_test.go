package record

import (
	"slices"
	"testing"
)

// What is shorter than a clock is known is marked, and only what goes from one clock to another.
func TestBelowClock(t *testing.T) {
	short, long := &Latency{Count: 2, P50: new(0.002)}, &Latency{Count: 2, P50: new(0.2)}
	l := Latencies{
		Connect: short, Certificate: short,
		Push:        map[ChangeKind]*Latency{RouteChange: short, PolicyChange: long, EndpointAdd: {Lost: 3}},
		RolloutPush: map[ChangeKind]*Latency{EndpointHealth: short},
		Propagation: map[ChangeKind]Propagation{RouteChange: {First: short, Last: long}, PolicyChange: {First: long, Last: long}},
	}
	want := []string{"latencies.push.route", "latencies.rolloutPush.endpointHealth", "latencies.propagation.route"}
	if got := l.BelowClock(0.005); !slices.Equal(got, want) {
		t.Errorf("below 5 ms: %v, want %v", got, want)
	}
	if got := l.BelowClock(0.001); got != nil {
		t.Errorf("below 1 ms: %v, want none", got)
	}
}
