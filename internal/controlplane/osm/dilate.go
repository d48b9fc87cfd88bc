package osm

import (
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
)

// cost is the processor time of both programs: 108, 145 and 278 ms for a pod with 200, 400 and 800 pods in permissive mode
// (docs/results/control-planes.md), including pushes, as a line that is not below them. The client of the injector
// makes 5 requests a second, one for each pod.
var cost = dilation.Cost{Pod: 0.085, PodPerPod: 0.00024, ReadyPerSecond: 5}

// dilate slows both programs down by k: all of component.OSMTimes. Pushes at the same time follow from
// GOMAXPROCS (pkg/workerpool), which is that of the modelled machine.
func dilate(env []string, _ int, k float64) controlplane.Dilated {
	var d controlplane.Dilated
	d.Env, d.Scaled = controlplane.Slow(env, component.OSMTimes, k)
	d.Unscaled = []string{
		"the time limit of the injection webhook above 30 s, the most that Kubernetes takes, and that of the API server, 60 s: an injection that waits longer is repeated, and takes another Secret; --arrival of at most 4 pods per second avoids it",
		"GOMAXPROCS of osm-injector, which is that of this machine",
		"the time limit of the validation webhook, 10 s, and of HTTP headers, 10 s",
		"lifetimes of certificates, 24 h, and the 30 to 35 s before their end at which they are renewed: no run is that long",
		controlplane.UnscaledClient,
		controlplane.UnscaledCollection,
		controlplane.UnscaledThread,
	}
	return d
}
