package run

import (
	"testing"
	"time"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// Two programs that ran one after the other held as much as one did.
func TestAddUsage(t *testing.T) {
	begin := time.Unix(1000, 0)
	w := phases.Window{Begin: begin, End: begin.Add(10 * time.Second)}
	var all *record.Usage
	addUsage(&all, measure.Usage{MemoryMean: 100, Ran: 4}, w)
	addUsage(&all, measure.Usage{MemoryMean: 100, Ran: 6}, w)
	if got := *all.MemoryBytes.Mean; got != 100 {
		t.Errorf("the mean is %v, want 100", got)
	}
}
