package fleet

import (
	"errors"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// idle is a worker that does nothing.
type idle struct{ worker.Worker }

// What the sidecars of a lost worker had not reported is lost, what they had stays, and their second
// start is in no figure. Later ones are in the figures again.
func TestMissed(t *testing.T) {
	f := connected(3)
	gone, other := &idle{}, &idle{}
	r := &revision{fleet: f, tracker: convergence.New()}
	r.tracker.OnComplete = observer{f}.complete
	scope := r.tracker.Scope(nil)
	for i, id := range []string{"ns/pod-00", "ns/pod-01", "ns/pod-02"} {
		p := f.Pods.simulated[id]
		p.revision, p.worker, p.rollout = r, gone, true
		if i == 2 {
			p.worker = other
		}
		r.tracker.Add(id, scope)
	}
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	o := observer{f}
	start := func(id string, from int) {
		o.TokenFetched(id, proxy.TokenFetched{Asked: at(from), Received: at(from + 1)})
		o.StreamOpened(id, proxy.StreamOpened{Dialed: at(from), Connected: at(from + 1), Requested: at(from + 1)})
		o.Updated(id, proxy.Update{Complete: true, Update: convergence.Update{ReceivedAt: at(from + 2), AckedAt: at(from + 2)}})
		o.Certified(id, proxy.Certificate{Sent: at(from), Verified: at(from + 3)})
	}
	start("ns/pod-00", 0) // pod-01 has reported nothing
	start("ns/pod-02", 0)
	if n := f.Missed(gone, at(10)); n != 2 {
		t.Errorf("%d sidecars were missed, want 2", n)
	}
	if f.Pods.away != 2 {
		t.Errorf("%d sidecars are away, want 2", f.Pods.away)
	}
	start("ns/pod-00", 60)
	start("ns/pod-01", 60)
	if f.Pods.away != 0 {
		t.Errorf("%d sidecars are away when they are back", f.Pods.away)
	}
	f.Latencies.Lose(3, 0, 0)
	for _, n := range f.Latencies.all() {
		s := (*n.histogram).Summary()
		switch n.name {
		case "certificate", "token", "firstConfiguration", "completeConfiguration", "connectTotal":
			if s.Count != 2 || s.Lost != 1 || *s.Max > 3.1 {
				t.Errorf("%s: %+v, want 2 and 1 lost, none from the second start", n.name, s)
			}
		case "reconnect":
			if s.Count+s.Lost > 0 {
				t.Errorf("%s: %+v: no stream was lost", n.name, s)
			}
		}
	}
	if c := f.Pods.Certificates(); c.Issued != 3 || c.Without != 0 {
		t.Errorf("certificates: %+v", c)
	}
	if s := f.Renewals.Summary(); s.Count > 0 {
		t.Errorf("renewals: %+v", s)
	}

	o.StreamEnded("ns/pod-00", proxy.StreamEnded{Ended: at(100), Class: proxy.Lost, Err: errors.New("EOF")})
	o.StreamOpened("ns/pod-00", proxy.StreamOpened{Dialed: at(101), Connected: at(101), Requested: at(101)})
	o.Updated("ns/pod-00", proxy.Update{Complete: true, Update: convergence.Update{ReceivedAt: at(105), AckedAt: at(105)}})
	if s := f.Latencies.Reconnect.Summary(); s.Count != 1 {
		t.Errorf("a stream that was lost later: %+v", s)
	}
}
