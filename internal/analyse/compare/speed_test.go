package compare

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// Runs of different speeds, and runs within which the speed changed, have a remark; runs of one
// speed have none.
func TestSpeedRemarks(t *testing.T) {
	atSpeed := func(before, after float64) func(*record.Run) {
		return func(r *record.Run) {
			r.Environment.Processor = &record.Processor{
				Model: "one", Before: &record.Speed{Work: "1", Speed: before, Low: before, High: before}, After: &record.Speed{Work: "1", Speed: after, Low: after, High: after},
			}
		}
	}
	say := func(a, b func(*record.Run)) string {
		return strings.Join(comparison(t, runs("a", 5, 1, a), runs("b", 5, 2, b), Options{}).Remarks, "\n")
	}
	const apart, drifted = "1 to 1.2 reference processors, which differ by more than 5%", "in 5 of 10 runs a processor was more than 5% faster or slower"
	if said := say(atSpeed(1, 1), atSpeed(1.2, 1.2)); !strings.Contains(said, apart) || strings.Contains(said, drifted) {
		t.Errorf("of different speeds: %q", said)
	}
	if said := say(atSpeed(1, 1), atSpeed(1.1, 0.9)); !strings.Contains(said, drifted) || strings.Contains(said, "differ by") {
		t.Errorf("of one speed that changed: %q", said)
	}
	if said := say(atSpeed(1, 1), atSpeed(1.02, 1.03)); strings.Contains(said, "reference processors") || strings.Contains(said, "faster or slower") {
		t.Errorf("of one speed: %q", said)
	}
	other := func(r *record.Run) { atSpeed(1, 1)(r); r.Environment.Processor.Model = "another" }
	if _, err := Compare(runs("a", 5, 1, atSpeed(1, 1)), runs("b", 5, 2, other), Options{}); err == nil || !strings.Contains(err.Error(), "processor model") {
		t.Errorf("of different processors: %v, want a refusal that names the processor model", err)
	}
}
