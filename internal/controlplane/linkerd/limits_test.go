package linkerd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/component"
)

func TestDilate(t *testing.T) {
	got := dilate([]string{"OTHER=1", "LINKERD_RESYNC_INTERVAL=5m"}, 8, 4)
	if diff := cmp.Diff([]string{"OTHER=1", "LINKERD_API_REQUESTS_PER_SECOND=1.25", "LINKERD_RESYNC_INTERVAL=20m0s"}, got.Env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Args) > 0 || len(got.Scaled) != len(component.LinkerdTimes) || len(got.Unscaled) == 0 {
		t.Errorf("it is %+v", got)
	}
}

func TestLimitsOfSettings(t *testing.T) {
	for want, env := range map[float64][]string{
		component.LinkerdTimes[0].PerSecond: {"LINKERD_API_REQUESTS_PER_SECOND=many"},
		2.5:                                 {"LINKERD_API_REQUESTS_PER_SECOND=9", "LINKERD_API_REQUESTS_PER_SECOND=2.5"},
	} {
		if got := limits(env); got.TokenReviewsPerSecond != want || got.TokenReviewsBurst != 10 || got.TokenReviewsPerSidecar != 1 {
			t.Errorf("%v: %+v, want %v reviews per second", env, got, want)
		}
	}
}
