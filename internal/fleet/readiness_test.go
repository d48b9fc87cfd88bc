package fleet

import (
	"net/netip"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// A proxy cannot know that an answer is out of date, as one that lacks an endpoint: its pod becomes Ready
// all the same. It does not before everything that was requested is answered and its certificate is there.
func TestAPodIsReportedOnceItsProxyIsInitializedAndCertified(t *testing.T) {
	const id, service = "ns/pod-00", "ns/svc:http"
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	key := convergence.Key{Type: convergence.EDS, Name: "svc"}
	answer := func(s int, complete bool) func(observer) {
		return func(o observer) {
			o.Updated(id, proxy.Update{Complete: complete, Update: convergence.Update{
				ReceivedAt: at(s), AckedAt: at(s), Set: []convergence.Resource{{Key: key, Content: convergence.ContentOf(nil)}}}})
		}
	}
	certificate := func(s int) func(observer) {
		return func(o observer) { o.Certified(id, proxy.Certificate{Sent: at(1), Verified: at(s)}) }
	}
	for name, c := range map[string]struct {
		events      []func(observer)
		initialized time.Time
		reported    bool
	}{
		"an answer is missing":    {[]func(observer){certificate(2), answer(3, false)}, time.Time{}, false},
		"no certificate":          {[]func(observer){answer(3, true)}, at(3), false},
		"both, certificate first": {[]func(observer){certificate(2), answer(3, false), answer(4, true)}, at(4), true},
		"both, certificate last":  {[]func(observer){answer(3, true), certificate(4)}, at(3), true},
		"answered again":          {[]func(observer){certificate(2), answer(3, true), answer(4, false), answer(5, true)}, at(3), true},
	} {
		f := connected(1)
		r := &revision{fleet: f, tracker: convergence.New()}
		r.tracker.OnComplete = observer{f}.complete
		p := f.Pods.simulated[id]
		p.revision = r
		r.tracker.Add(id, r.tracker.Scope([]convergence.Want{{Key: key, Service: service}}))
		r.tracker.SetEndpoints(service, convergence.Endpoints{netip.MustParseAddrPort("10.0.0.1:80"): convergence.Healthy}, at(0))
		r.tracker.FirstRequest(id, at(1))
		for _, event := range c.events {
			event(observer{f})
		}
		if p.reported != c.reported || !p.times.Initialized.Equal(c.initialized) {
			t.Errorf("%s: reported %v, initialized at %v; want %v, %v", name, p.reported, p.times.Initialized, c.reported, c.initialized)
		}
		if !p.times.Complete.IsZero() || f.Latencies.CompleteConfiguration.Summary().Count != 0 {
			t.Errorf("%s: complete at %v without an endpoint that is listed", name, p.times.Complete)
		}
	}
}
