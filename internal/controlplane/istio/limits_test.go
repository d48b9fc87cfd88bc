package istio

import "testing"

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name            string
		env             []string
		processors      int
		streams, pushes float64
		debounce        float64
	}{
		{"one processor", nil, 1, 20, 20, 0.1},
		{"two", nil, 2, 25, 25, 0.1},
		{"as many as count", nil, 17, 100, 100, 0.1},
		{"more than count", nil, 64, 100, 100, 0.1},
		{"set", []string{"PILOT_MAX_REQUESTS_PER_SECOND=7.5", "PILOT_PUSH_THROTTLE=3", "PILOT_DEBOUNCE_AFTER=1s"}, 8, 7.5, 3, 1},
		{"set to none", []string{"PILOT_MAX_REQUESTS_PER_SECOND=0"}, 2, 25, 25, 0.1},
		{"the last counts", []string{"PILOT_PUSH_THROTTLE=3", "PILOT_PUSH_THROTTLE=4"}, 2, 25, 4, 0.1},
		{"not to be read", []string{"PILOT_PUSH_THROTTLE=many", "PILOT_DEBOUNCE_AFTER=soon"}, 2, 25, 25, 0.1},
	} {
		l := Limits(c.env)
		if s, p := l.StreamsPerSecond.At(c.processors), l.ConcurrentPushes.At(c.processors); s != c.streams || p != c.pushes || l.DebounceSeconds != c.debounce {
			t.Errorf("%s: %v streams a second, %v pushes, debounce %v s; want %v, %v, %v", c.name, s, p, l.DebounceSeconds, c.streams, c.pushes, c.debounce)
		}
	}
}
