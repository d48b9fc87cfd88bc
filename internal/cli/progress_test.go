package cli

import (
	"testing"
	"time"

	"scaler.mesh/scaler/internal/run"
)

func TestStatusLine(t *testing.T) {
	s := run.Status{
		Phase: "rollout", Elapsed: 12 * time.Second, Pods: 400, Created: 120, Ready: 116, Connected: 118, Complete: 117, Converged: 2,
		Cores: 0.34, MemoryBytes: 225e6,
	}
	const pods, controlPlane = "rollout  12s | pods 120/400 created, 116 ready | ", " | control plane 0.34 cores, 215MiB"
	if got, want := statusLine(s), pods+"sidecars 118 connected, 117 complete, 2 converged"+controlPlane; got != want {
		t.Errorf("with sidecars:\n%s\nwant\n%s", got, want)
	}
	s.NodeProxy, s.Nodes = "ztunnel", 20
	if got, want := statusLine(s), pods+"ztunnels 20 connected | proxies of 118 pods connected, of 117 complete, of 2 converged"+controlPlane; got != want {
		t.Errorf("with proxies of nodes:\n%s\nwant\n%s", got, want)
	}
}
