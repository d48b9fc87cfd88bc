package attach

import (
	"testing"

	"scaler.mesh/scaler/internal/place/existing"
)

// The command that deletes what a run left names its cluster as the run did.
func TestRemoval(t *testing.T) {
	for want, target := range map[string]Target{
		"scaler cleanup --run a-3f9a1c --context staging":                {Target: existing.Target{Context: "staging"}},
		"scaler cleanup --run a-3f9a1c --context staging --kubeconfig k": {Target: existing.Target{Context: "staging", Kubeconfig: "k"}},
	} {
		if got := target.removal("a-3f9a1c"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
