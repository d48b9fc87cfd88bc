package istio

import "testing"

// Only a refused value of what was asked for is one: istiod's own environment may have others.
func TestRefusal(t *testing.T) {
	log := "2026-11-23T02:00:00Z\tinfo\tstarting\n2026-11-23T02:00:01Z\twarn\tInvalid environment variable value `abc`, expecting an integer, defaulting to 0\n"
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"A=1", "PILOT_PUSH_THROTTLE=abc"}, "2026-11-23T02:00:01Z\twarn\tInvalid environment variable value `abc`, expecting an integer, defaulting to 0"},
		{[]string{"PILOT_PUSH_THROTTLE=ab"}, ""},
		{nil, ""},
	} {
		if got := refusal(log, c.env); got != c.want {
			t.Errorf("%v: %q, want %q", c.env, got, c.want)
		}
	}
}
