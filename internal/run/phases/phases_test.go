package phases

import (
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

func TestLengthText(t *testing.T) {
	for k, want := range map[float64]string{1: "rollout: 20.3 s", 3: "rollout: 6.8 s, in 20.3 s of real time"} {
		if got := lengthText(record.PhaseRollout, 20300*time.Millisecond, k); got != want {
			t.Errorf("slowed down %g times: %q, want %q", k, got, want)
		}
	}
}
