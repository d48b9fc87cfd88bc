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

// inContainers returns a fleet of one service, whose pods are all on real nodes.
func inContainers(pods int, real RealOptions, seen func(*corev1.Pod)) *Fleet {
	f := connected(0)
	f.Event = func(record.Event) {}
	f.Mesh = topology.Mesh{Services: []topology.Service{{Name: "s", Namespace: "ns", Pods: pods}}}
	f.Adapter = version{}.adapter()
	real.Count, real.InPods = pods, &RealPods{Container: "istio-proxy", Seen: seen}
	f.Real = &real
	f.real = newRealSidecars(f, f.Revisions.list()[0])
	return f
}

// The lives of an injected sidecar are those of its container. A life that answers again over another connection is
// the same one, and a container that was started again has crashed.
func TestLivesOfAContainer(t *testing.T) {
	var warnings []record.Warning
	var events []any
	nodes := map[string]bool{}
	f := inContainers(1, RealOptions{Say: func(string) {}, Warn: func(w record.Warning) { warnings = append(warnings, w) }}, func(p *corev1.Pod) { nodes[p.Spec.NodeName] = true })
	f.Event = func(e record.Event) { events = append(events, e) }
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

// A container that ends again and again is named at once, with how it ended, and once for all pods that have the same.
func TestAContainerThatIsNotStartedIsNamed(t *testing.T) {
	var said []string
	var warnings []record.Warning
	f := inContainers(2, RealOptions{Say: func(text string) { said = append(said, text) }, Warn: func(w record.Warning) { warnings = append(warnings, w) }}, func(*corev1.Pod) {})
	for _, name := range []string{"a", "b"} {
		object := aPod(name, "s", "", false)
		object.Labels[kwok.RealLabel], object.Spec.NodeName, object.Status.Phase = "true", "node-1", corev1.PodPending
		f.OnPod(t.Context(), observe.PodEvent{Kind: observe.Added, Pod: object})
		if name == "a" && len(said) != 0 {
			t.Errorf("said %q of a pod that was just made", said)
		}
		object.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127}},
		}}
		for range 2 {
			f.OnPod(t.Context(), observe.PodEvent{Kind: observe.Modified, Pod: object})
		}
	}
	const standing = "pod a is Pending: container app waits: CrashLoopBackOff: it ended before with exit code 127"
	if diff := cmp.Diff([]string{"node node-1: " + standing}, said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	want := []record.Warning{{About: "sidecars.real", Reason: record.ReasonContainerHeld, Component: "app", Detail: standing}}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
