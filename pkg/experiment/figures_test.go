package experiment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

func TestLateReceipt(t *testing.T) {
	for name, test := range map[string]struct {
		longest time.Duration
		want    *record.Warning
	}{
		"none waited":      {0, nil},
		"for next to none": {10 * time.Millisecond, nil},
		"for long": {250 * time.Millisecond, &record.Warning{
			About: "latencies", Reason: record.ReasonLateReceipt,
			Values: map[string]float64{"waited": 3, "responses": 120, "longestSeconds": 0.25, "totalSeconds": 0.26},
		}},
	} {
		counters := xdsprobe.NewStore().Counters()
		counters.Add(convergence.CDS, 100, 0)
		counters.Add("", 20, 0) // not subscribed to
		if test.longest > 0 {
			counters.Waits.Store(3)
			counters.LongestWait.Store(int64(test.longest))
			counters.Waited.Store(int64(test.longest + 10*time.Millisecond))
		}
		if diff := cmp.Diff(test.want, LateReceipt(counters)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
