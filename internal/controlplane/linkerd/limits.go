package linkerd

import (
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/pkg/record"
)

// limits returns the limits of identity's client: those of client-go of its release (rest/config.go: DefaultQPS,
// DefaultBurst), or those set in its environment (NAME=VALUE; of a name that comes several times the
// last counts). It reviews one token for each certificate. Each API group has a limit of its own there,
// so that the Events that identity writes do not count.
func limits(env []string) *record.Limits {
	return &record.Limits{
		TokenReviewsPerSecond: controlplane.NumberIn(env, "LINKERD_API_REQUESTS_PER_SECOND", 5),
		TokenReviewsBurst:     10, TokenReviewsPerSidecar: 1,
	}
}

// cost is the processor time of all three programs: 28 to 36 ms for a pod, with 200 to 1600 pods. The client of identity makes
// 5 requests a second, one for each certificate (docs/results/control-planes.md).
var cost = dilation.Cost{Pod: 0.036, ReadyPerSecond: 5}

// dilate slows all three programs down by k: all of component.LinkerdTimes.
func dilate(env []string, _ int, k float64) controlplane.Dilated {
	var d controlplane.Dilated
	d.Env, d.Scaled = controlplane.Slow(env, component.LinkerdTimes, k)
	d.Unscaled = []string{
		"GOMAXPROCS of identity and the proxy injector, which is that of this machine",
		"the time limit of the injection webhook, 10 s: nothing in it waits for a limit",
		"the lifetime of certificates, 24 h: no run is that long",
		"Events of identity: of one account 25 at once and then one in 5 minutes",
		controlplane.UnscaledClient,
		controlplane.UnscaledCollection,
		controlplane.UnscaledThread,
	}
	return d
}
