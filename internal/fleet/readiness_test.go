package fleet

import (
	"net/netip"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// A control plane may leave out an endpoint until its pod is Ready. A pod whose sidecar waited for
// it, while that pod waits for the same reason, would never become Ready.
func TestPodsDoNotWaitForEndpointsThatAreNotReady(t *testing.T) {
	f := connected(1)
	const id, service = "ns/pod-00", "ns/svc:http"
	r := &revision{fleet: f, tracker: convergence.New()}
	r.tracker.OnUsable, r.tracker.OnComplete = observer{f}.usable, observer{f}.complete
	key := convergence.Key{Type: convergence.EDS, Name: "svc"}
	p := f.Pods.simulated[id]
	p.revision = r
	r.tracker.Add(id, r.tracker.Scope([]convergence.Want{{Key: key, Service: service}}))
	ready, other := netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("10.0.0.2:80")
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	r.tracker.SetEndpoints(service, convergence.Endpoints{ready: convergence.Healthy, other: convergence.Unhealthy}, at(0))
	r.tracker.FirstRequest(id, at(1))
	o := observer{f}
	o.Certified(id, proxy.Certificate{Sent: at(1), Verified: at(2)})
	holds := func(s int, eps convergence.Endpoints) {
		o.Updated(id, proxy.Update{Complete: true, Update: convergence.Update{
			ReceivedAt: at(s), AckedAt: at(s), Set: []convergence.Resource{{Key: key, Content: convergence.ContentOf(eps)}}}})
	}
	holds(3, convergence.Endpoints{other: convergence.Unhealthy})
	if p.reported {
		t.Error("a pod was reported whose sidecar lacks a ready endpoint")
	}
	holds(4, convergence.Endpoints{ready: convergence.Healthy})
	if !p.reported || !p.times.Usable.Equal(at(4)) {
		t.Errorf("reported: %v, usable at %v; want true, %v", p.reported, p.times.Usable, at(4))
	}
	if !p.times.Complete.IsZero() || f.Latencies.CompleteConfiguration.Summary().Count != 0 {
		t.Errorf("complete at %v without an endpoint that is listed", p.times.Complete)
	}
	holds(5, convergence.Endpoints{ready: convergence.Healthy, other: convergence.Unhealthy})
	if !p.times.Complete.Equal(at(5)) {
		t.Errorf("complete at %v, want %v", p.times.Complete, at(5))
	}
}
