package istio

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDilate(t *testing.T) {
	for _, test := range []struct {
		name string
		env  []string
		k    float64
		want []string
	}{
		{"stock", nil, 4, []string{
			"PILOT_DEBOUNCE_AFTER=400ms", "PILOT_DEBOUNCE_MAX=40s",
			"PILOT_MAX_REQUESTS_PER_SECOND=13.75", "PILOT_PUSH_THROTTLE=55", // 15 + 5 x 8 processors
		}},
		{"more processors than count", nil, 16, []string{
			"PILOT_DEBOUNCE_AFTER=1.6s", "PILOT_DEBOUNCE_MAX=2m40s", "PILOT_MAX_REQUESTS_PER_SECOND=6.25", "PILOT_PUSH_THROTTLE=100",
		}},
		{"set", []string{"OTHER=1", "PILOT_PUSH_THROTTLE=7", "PILOT_MAX_REQUESTS_PER_SECOND=50", "PILOT_DEBOUNCE_AFTER=1s"}, 2, []string{
			"OTHER=1", "PILOT_DEBOUNCE_AFTER=2s", "PILOT_DEBOUNCE_MAX=20s", "PILOT_MAX_REQUESTS_PER_SECOND=25", "PILOT_PUSH_THROTTLE=7",
		}},
	} {
		got := dilate(test.env, int(2*test.k), test.k)
		if diff := cmp.Diff(test.want, got.Env); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if got.LimiterWait != time.Second {
			t.Errorf("%s: a stream waits %s for the limiter, want 1s", test.name, got.LimiterWait)
		}
		if len(got.Scaled) == 0 || len(got.Unscaled) == 0 {
			t.Errorf("%s: it does not say what is scaled and what is not", test.name)
		}
	}
	// 78.67 a second are slowed down, 1.33 are not.
	want := []string{"--kubernetesApiQPS", "21", "--kubernetesApiBurst", "160", "--keepaliveMaxServerConnectionAge", "2h0m0s"}
	if diff := cmp.Diff(want, dilate(nil, 8, 4).Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}
