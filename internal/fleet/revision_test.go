package fleet

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// version is a control plane of which sidecars want the endpoints of one service port.
// It sends endpoints that are not ready, or leaves them out; its pods have its name as a label.
type version struct {
	controlplane.Revision
	controlplane.Mesh
	name         string
	sendsUnready bool
}

const port = "ns/s:http"

func (v version) Serves(pod *corev1.Pod) bool { return pod.Labels["version"] == v.name }

func (v version) Wants(topology.Mesh, scenario.Settings, int) []convergence.Want {
	return []convergence.Want{{Key: convergence.Key{Type: convergence.EDS, Name: "s"}, Service: port}}
}

func (v version) EndpointHealth(ready, _, _ bool) (convergence.Health, bool) {
	if ready {
		return convergence.Healthy, true
	}
	return convergence.Unhealthy, v.sendsUnready
}

func (v version) adapter() *controlplane.ControlPlane {
	return &controlplane.ControlPlane{Mesh: v, Revision: v}
}

// A sidecar is expected to hold what the version sends that serves its pod, and what it
// received is counted for that version. One that joins knows the endpoints that were there before.
func TestRevisions(t *testing.T) {
	f := connected(0)
	f.Mesh = topology.Mesh{Services: []topology.Service{{Name: "s", Namespace: "ns"}}}
	old, next := version{name: "old"}, version{name: "new", sendsUnready: true}
	first := newRevision(f, old.adapter())
	f.tracker = first.tracker
	f.Revisions.all.Store(&[]*revision{first})

	ready, unready := netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("10.0.0.2:80")
	seen := time.Unix(1000, 0)
	list := func(at time.Time, endpoints ...observe.Endpoint) {
		f.OnEndpoints(observe.EndpointsEvent{Seen: at, Service: "ns/s", Ports: map[string][]observe.Endpoint{"http": endpoints}})
	}
	list(seen, observe.Endpoint{Addr: ready, Ready: true}, observe.Endpoint{Addr: unready})
	f.Revisions.Join(next.adapter())

	add := func(name, label string) *simulated {
		p := withSidecar(f, name)
		p.revision = f.Revisions.of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"version": label}}})
		p.revision.tracker.Add(p.id, p.revision.scopes["s"])
		observer{f}.StreamOpened(p.id, proxy.StreamOpened{Requested: seen})
		p.revision.tracker.Certified(p.id, seen)
		return p
	}
	a, b, nobodys := add("a", "old"), add("b", "new"), add("c", "")
	if a.revision == b.revision || nobodys.revision != a.revision {
		t.Fatal("pods are not with the version that serves them")
	}
	send := func(name string, at time.Time, endpoints convergence.Endpoints) {
		observer{f}.Updated("ns/"+name, proxy.Update{Update: convergence.Update{
			Set:        []convergence.Resource{{Key: convergence.Key{Type: convergence.EDS, Name: "s"}, Content: &convergence.Content{Endpoints: endpoints}}},
			ReceivedAt: at, AckedAt: at,
		}})
	}
	received := f.Revisions.Receive()
	both := convergence.Endpoints{ready: convergence.Healthy, unready: convergence.Unhealthy}
	send("a", seen.Add(time.Second), convergence.Endpoints{ready: convergence.Healthy})
	send("b", seen.Add(time.Second), both)
	send("c", seen.Add(time.Second), both) // more than its version sends
	if c := a.revision.tracker.Counts(); c.Sidecars != 2 || c.Converged != 1 {
		t.Errorf("of the old version %+v, want one of two converged", c)
	}
	if c := b.revision.tracker.Counts(); c.Sidecars != 1 || c.Converged != 1 {
		t.Errorf("of the new version %+v, want one converged", c)
	}

	list(seen.Add(10*time.Second), observe.Endpoint{Addr: unready}) // the first is gone
	send("b", seen.Add(12*time.Second), convergence.Endpoints{unready: convergence.Unhealthy})
	if n := received[0].Responses.Load(); n != 2 {
		t.Errorf("%d responses of the old version, want 2", n)
	}
	if n := received[1].Responses.Load(); n != 2 {
		t.Errorf("%d responses of the new version, want 2", n)
	}
	stale := received[1].Endpoints()[record.EndpointRemove].Summary()
	if stale.Count != 1 || stale.Max == nil || *stale.Max < 1.99 || *stale.Max > 2.01 {
		t.Errorf("stale: %+v, want once 2 s", stale)
	}
	if s := received[0].Endpoints()[record.EndpointRemove].Summary(); s.Count != 0 {
		t.Errorf("stale with the old version: %+v, which sent nothing yet", s)
	}

	// With the new version in place of the old one, endpoints that are not ready are expected.
	f.Revisions.Replace(next.adapter())
	send("c", seen.Add(13*time.Second), convergence.Endpoints{unready: convergence.Unhealthy})
	if c := a.revision.tracker.Counts(); c.Converged != 1 {
		t.Errorf("with the new version in place of the old one %+v, want one of two converged", c)
	}
}

// Convergence waits for the pods of the services that are renewed, and for no others.
func TestRenewServices(t *testing.T) {
	f := connected(2)
	a, b := f.Pods.byID["ns/pod-00"], f.Pods.byID["ns/pod-01"]
	a.service, b.service = "a", "b"
	old := func() int { return f.states().old }
	f.Pods.Begin()
	f.Pods.Renew("a")
	if old() != 1 {
		t.Errorf("%d pods are to be replaced, want that of a", old())
	}
	f.Pods.Begin() // of another activity: what was asked for before still holds
	if old() != 1 {
		t.Errorf("%d pods are to be replaced after another activity began, want 1", old())
	}
	f.Pods.Renew()
	if old() != 2 {
		t.Errorf("%d pods are to be replaced, want all", old())
	}
	a.background, b.background = 2, 2
	if old() != 0 {
		t.Errorf("%d pods are to be replaced, want none", old())
	}
}
