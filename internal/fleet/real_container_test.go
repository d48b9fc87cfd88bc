package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// The lives of an injected sidecar are those of its container. A life that answers again over another connection is
// the same one, and a container that was started again has crashed.
func TestLivesOfAContainer(t *testing.T) {
	var warnings []record.Warning
	var events []any
	f := connected(0)
	f.Event = func(e record.Event) { events = append(events, e) }
	f.Mesh = topology.Mesh{Services: []topology.Service{{Name: "s", Namespace: "ns", Pods: 1}}}
	f.Adapter = version{}.adapter()
	nodes := map[string]bool{}
	f.Real = &RealOptions{
		Count: 1, Say: func(string) {}, Warn: func(w record.Warning) { warnings = append(warnings, w) },
		InPods: &RealPods{Container: "istio-proxy", Seen: func(p *corev1.Pod) { nodes[p.Spec.NodeName] = true }},
	}
	f.real = newRealSidecars(f, f.Revisions.list()[0])
	began := time.Unix(1000, 0)
	object := aPod("a", "s", "", false)
	object.Labels[kwok.RealLabel], object.Spec.NodeName = "true", "node-1"
	see := func(restarts int32, started time.Time) {
		object.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: "istio-proxy", Image: "proxyv2:1", RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: started}}},
		}}
		f.OnPod(t.Context(), observe.PodEvent{Seen: began, Kind: observe.Modified, Pod: object})
	}
	f.OnPod(t.Context(), observe.PodEvent{Seen: began, Kind: observe.Added, Pod: object})
	p := f.Pods.byID["ns/a"].member.(*containerPod)
	if n := p.life().Number; n != 0 {
		t.Errorf("life %d before the container runs", n)
	}
	see(0, began)
	p.answered(p.life())
	p.answered(p.life()) // over another connection
	if len(events) != 1 || len(warnings) != 0 || !p.times.Dialed.Equal(began) {
		t.Errorf("events %v and warnings %v of the first life, which began at %v", events, warnings, p.times.Dialed)
	}
	see(1, began.Add(time.Minute))
	p.answered(p.life())
	want := []any{
		record.RealSidecarStarted{Pod: "ns/a", Life: 1}, record.RealSidecarStarted{Pod: "ns/a", Life: 2},
		record.RealSidecarEnded{Pod: "ns/a", Error: "its container was started again"},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(warnings) != 1 || warnings[0].Reason != record.ReasonSidecarCrashed || p.crashedSoFar() != 1 || !p.times.Dialed.Equal(began) {
		t.Errorf("warnings %v, %d crashes, dialed at %v", warnings, p.crashedSoFar(), p.times.Dialed)
	}
	sidecars, _ := f.RealSidecars()
	if diff := cmp.Diff([]RealSidecar{{Pod: "ns/a", Service: "s", Node: "node-1", Image: "proxyv2:1", Crashes: 1}}, sidecars); diff != "" || !nodes["node-1"] {
		t.Errorf("sidecars (-want +got), seen on %v:\n%s", nodes, diff)
	}
}
