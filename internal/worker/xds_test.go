package worker

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
		longest  time.Duration
		slowdown float64
		want     *record.Warning
	}{
		"none waited":                     {0, 1, nil},
		"for next to none":                {10 * time.Millisecond, 1, nil},
		"for next to none of slowed time": {40 * time.Millisecond, 4, nil},
		"for long of slowed time": {500 * time.Millisecond, 2, &record.Warning{
			About: "latencies", Reason: record.ReasonLateReceipt,
			Values: map[string]float64{"waited": 3, "responses": 120, "longestSeconds": 0.25, "totalSeconds": 0.255},
		}},
		"for long": {250 * time.Millisecond, 1, &record.Warning{
			About: "latencies", Reason: record.ReasonLateReceipt,
			Values: map[string]float64{"waited": 3, "responses": 120, "longestSeconds": 0.25, "totalSeconds": 0.26},
		}},
	} {
		counts := xdsprobe.Counts{ByType: []xdsprobe.TypeCounts{{Type: convergence.CDS, Responses: 100}, {Responses: 20}}}
		if test.longest > 0 {
			counts.Waits, counts.LongestWait, counts.Waited = 3, test.longest, test.longest+10*time.Millisecond
		}
		if diff := cmp.Diff(test.want, LateReceipt(counts, test.slowdown)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
