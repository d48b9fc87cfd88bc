package cli

import (
	"testing"

	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/existing"
)

// The runs of a night have a label each, which is not known before: the command deletes what is of any.
func TestLabelOf(t *testing.T) {
	target := attach.Target{Target: existing.Target{Context: "staging", Kubeconfig: "k"}}
	for several, want := range map[bool][2]string{
		false: {"scaler.mesh/run=a-3f9a1c", "scaler cleanup --run a-3f9a1c --context staging --kubeconfig k"},
		true:  {"scaler.mesh/run, with a value for each run that is printed at its start", "scaler cleanup --all --context staging --kubeconfig k"},
	} {
		if label, removal := labelOf(target, "a-3f9a1c", several); label != want[0] || removal != want[1] {
			t.Errorf("several %v: %q, %q, want %q", several, label, removal, want)
		}
	}
}
