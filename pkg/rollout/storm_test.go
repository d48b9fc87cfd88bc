package rollout

import (
	"testing"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/record"
)

func TestBinding(t *testing.T) {
	limited := controlplane.Description{Name: "one", Limits: &record.Limits{TokenReviewsPerSecond: 80, TokenReviewsBurst: 160}}
	for _, c := range []struct {
		of       controlplane.Description
		sidecars int
		seconds  float64
		want     string
	}{
		{limited, 100, 0.5, ""}, // within the burst
		{limited, 400, 3.1, "token reviews: one has each token reviewed through a client limited to 80 a second, 160 at once; that alone takes 3.0 s"},
		{limited, 400, 10, ""},  // much longer than the limit explains
		{limited, 400, 0.5, ""}, // much shorter: it was not held to
		{limited, 1600, 18.1, "token reviews: one has each token reviewed through a client limited to 80 a second, 160 at once; that alone takes 18.0 s"},
		{controlplane.Description{Name: "another"}, 400, 3.1, ""}, // no limit is known
	} {
		if got := binding(c.of, c.sidecars, c.seconds); got != c.want {
			t.Errorf("%s, %d sidecars in %g s: %q, want %q", c.of.Name, c.sidecars, c.seconds, got, c.want)
		}
	}
}
