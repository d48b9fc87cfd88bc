package compare

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// Runs of different speeds have a remark; runs of one speed have none.
func TestSpeedRemarks(t *testing.T) {
	atSpeed := func(speed float64) func(*record.Run) {
		return func(r *record.Run) {
			r.Environment.Processor = &record.Processor{Model: "one", Run: &record.Speed{Work: "1", Speed: speed, Low: speed, High: speed}}
		}
	}
	say := func(a, b func(*record.Run)) string {
		return strings.Join(comparison(t, runs("a", 5, 1, a), runs("b", 5, 2, b), Options{}).Remarks, "\n")
	}
	const differing = "1 to 1.2 reference processors, which differ by more than 5%"
	if said := say(atSpeed(1), atSpeed(1.2)); !strings.Contains(said, differing) {
		t.Errorf("of different speeds: %q", said)
	}
	if said := say(atSpeed(1), atSpeed(1.03)); strings.Contains(said, "reference processors") {
		t.Errorf("of one speed: %q", said)
	}
	other := func(r *record.Run) { atSpeed(1)(r); r.Environment.Processor.Model = "another" }
	if _, err := Compare(runs("a", 5, 1, atSpeed(1)), runs("b", 5, 2, other), Options{}); err == nil || !strings.Contains(err.Error(), "processor model") {
		t.Errorf("of different processors: %v, want a refusal that names the processor model", err)
	}
}
