package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// server is an API server's two collections as a test states them, with the
// watches on them in the test's hand.
type server struct {
	t       *testing.T
	client  *fake.Clientset
	watches map[string]chan *watch.FakeWatcher // by resource, each watch as it is opened
	lists   map[string]*atomic.Pointer[runtime.Object]
}

func newServer(t *testing.T) *server {
	s := &server{t: t, client: fake.NewClientset(), watches: make(map[string]chan *watch.FakeWatcher), lists: make(map[string]*atomic.Pointer[runtime.Object])}
	for resource, empty := range map[string]runtime.Object{"pods": &corev1.PodList{}, "endpointslices": &discoveryv1.EndpointSliceList{}} {
		opened, list := make(chan *watch.FakeWatcher, 10), new(atomic.Pointer[runtime.Object])
		list.Store(&empty)
		s.watches[resource], s.lists[resource] = opened, list
		s.client.PrependReactor("list", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			if got, want := a.(clienttesting.ListAction).GetListRestrictions().Labels.String(), kwok.RunLabel+"=r1"; got != want {
				t.Errorf("listing %s labelled %q, want %q", resource, got, want)
			}
			return true, *list.Load(), nil
		})
		s.client.PrependWatchReactor(resource, func(a clienttesting.Action) (bool, watch.Interface, error) {
			if got, want := a.(clienttesting.WatchAction).GetWatchRestrictions().Labels.String(), kwok.RunLabel+"=r1"; got != want {
				t.Errorf("watching %s labelled %q, want %q", resource, got, want)
			}
			w := watch.NewFake()
			opened <- w
			return true, w, nil
		})
	}
	return s
}

// next returns the next value from c, and fails the test if there is none in time.
func next[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came within 10 s")
		panic("not reached")
	}
}

func (s *server) stores(resource string, list runtime.Object) { s.lists[resource].Store(&list) }

// start runs o against the server until the test ends.
func (s *server) start(o Options) {
	o.Client, o.Run = s.client, "r1"
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	s.t.Cleanup(func() {
		cancel()
		if err := next(s.t, ended); err != nil {
			s.t.Errorf("run ended with %v, want nil", err)
		}
	})
}

func podOf(name, uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version,
		Labels:        map[string]string{kwok.RunLabel: "r1"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}, Spec: corev1.PodSpec{NodeName: "node"}, Status: corev1.PodStatus{PodIP: "10.0.0." + uid}}
}

func podList(version string, pods ...*corev1.Pod) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	return list
}

// wantPods takes as many events as are wanted and compares them in any order: a
// list has none.
func wantPods(t *testing.T, events <-chan PodEvent, want ...string) {
	t.Helper()
	var got []string
	for range want {
		e := next(t, events)
		if e.Pod.ManagedFields != nil {
			t.Errorf("managed fields of %s are kept", e.Pod.Name)
		}
		if since := time.Since(e.Seen); since < 0 || since > 10*time.Second {
			t.Errorf("%s seen %v ago", e.Pod.Name, since)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Kind, e.Pod.Name, e.Pod.UID, e.Pod.Status.PodIP))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestPods(t *testing.T) {
	s := newServer(t)
	s.stores("pods", podList("10", podOf("a", "1", "8")))
	events := make(chan PodEvent, 100)
	s.start(Options{OnPod: func(e PodEvent) { events <- e }})
	w := next(t, s.watches["pods"])
	wantPods(t, events, "added a 1 10.0.0.1")

	w.Add(podOf("b", "2", "11"))
	wantPods(t, events, "added b 2 10.0.0.2")
	w.Modify(podOf("b", "2", "12"))
	wantPods(t, events, "modified b 2 10.0.0.2")
	w.Modify(podOf("b", "2", "12")) // reported already
	w.Delete(podOf("b", "2", "13"))
	wantPods(t, events, "deleted b 2 10.0.0.2")
	w.Modify(podOf("a", "3", "14")) // another pod of the same name
	wantPods(t, events, "added a 3 10.0.0.3", "deleted a 1 10.0.0.1")
}

// TestRelist loses the watch: what happened meanwhile must be reported from the next
// list, deletions and replacements included, and nothing twice.
func TestRelist(t *testing.T) {
	s := newServer(t)
	s.stores("pods", podList("10", podOf("changed", "1", "1"), podOf("deleted", "2", "2"), podOf("replaced", "3", "3"), podOf("same", "4", "4")))
	events := make(chan PodEvent, 100)
	lost := make(chan error, 10)
	s.start(Options{OnPod: func(e PodEvent) { events <- e }, OnLost: func(err error) { lost <- err }})
	w := next(t, s.watches["pods"])
	wantPods(t, events, "added changed 1 10.0.0.1", "added deleted 2 10.0.0.2", "added replaced 3 10.0.0.3", "added same 4 10.0.0.4")

	s.stores("pods", podList("20", podOf("changed", "1", "11"), podOf("replaced", "5", "12"), podOf("same", "4", "4"), podOf("new", "6", "13")))
	w.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
	w = next(t, s.watches["pods"])
	if got, want := next(t, lost).Error(), "watching pods labelled scaler.mesh/run=r1: the watch ended before its time"; got != want {
		t.Errorf("lost because of %q, want %q", got, want)
	}
	wantPods(t, events, "added new 6 10.0.0.6", "added replaced 5 10.0.0.5",
		"deleted deleted 2 10.0.0.2", "deleted replaced 3 10.0.0.3", "modified changed 1 10.0.0.1")
	w.Delete(podOf("same", "4", "21"))
	wantPods(t, events, "deleted same 4 10.0.0.4")
}

// TestSlowListener holds the listener up: the times must not wait for it.
func TestSlowListener(t *testing.T) {
	s := newServer(t)
	events, hold := make(chan PodEvent, 100), make(chan struct{})
	s.start(Options{OnPod: func(e PodEvent) { <-hold; events <- e }})
	w := next(t, s.watches["pods"])
	for i := range 50 {
		w.Add(podOf(fmt.Sprint("p", i), "1", fmt.Sprint(i+1))) // returns when the watch took it
	}
	taken := time.Now()
	close(hold)
	for i := range 50 {
		e := next(t, events)
		// The last one may be stamped a moment after it was taken.
		if i < 49 && e.Seen.After(taken) || e.Pod.Name != fmt.Sprint("p", i) {
			t.Errorf("event %d is of %s, seen %v after the listener went on", i, e.Pod.Name, e.Seen.Sub(taken))
		}
	}
}

func TestFailuresAreTriedAgain(t *testing.T) {
	s := newServer(t)
	var failures atomic.Int32
	failures.Store(2)
	s.client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failures.Add(-1) >= 0, nil, errors.New("connection refused")
	})
	lost := make(chan error, 10)
	events := make(chan PodEvent, 10)
	s.stores("pods", podList("1", podOf("a", "1", "1")))
	s.start(Options{OnPod: func(e PodEvent) { events <- e }, OnLost: func(err error) { lost <- err }})
	wantPods(t, events, "added a 1 10.0.0.1")
	for range 2 {
		if got, want := next(t, lost).Error(), "listing pods labelled scaler.mesh/run=r1: connection refused"; got != want {
			t.Errorf("lost because of %q, want %q", got, want)
		}
	}
}

func TestRefusalEndsRun(t *testing.T) {
	s := newServer(t)
	s.client.PrependReactor("list", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "endpointslices"}, "", errors.New("no rights"))
	})
	err := Run(t.Context(), Options{Client: s.client, Run: "r1", OnPod: func(PodEvent) {}, OnEndpoints: func(EndpointsEvent) {}})
	if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "listing endpoint slices labelled scaler.mesh/run=r1: ") {
		t.Errorf("run ended with %v, want the refusal", err)
	}
	if err := Run(t.Context(), Options{Client: s.client, Run: "not a label"}); err == nil || !strings.HasPrefix(err.Error(), `watching objects of run "not a label": `) {
		t.Errorf("run ended with %v, want the run's name refused", err)
	}
}

// sliceOf writes a slice of port http 8080; an endpoint is written as its last
// byte and its conditions: r(eady), s(erving), t(erminating), or - for those left
// out.
func sliceOf(name, version string, endpoints ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: version,
		Labels: map[string]string{kwok.RunLabel: "r1", discoveryv1.LabelServiceName: "svc"},
	}}
	if len(endpoints) > 0 { // the controller lists no ports without endpoints
		slice.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}
	}
	for _, e := range endpoints {
		last, conditions, _ := strings.Cut(e, " ")
		endpoint := discoveryv1.Endpoint{Addresses: []string{"10.0.0." + last}}
		if conditions != "-" {
			endpoint.Conditions = discoveryv1.EndpointConditions{
				Ready: new(strings.Contains(conditions, "r")), Serving: new(strings.Contains(conditions, "s")), Terminating: new(strings.Contains(conditions, "t")),
			}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

// wantEndpoints compares the next event with port http's endpoints as sliceOf
// writes them.
func wantEndpoints(t *testing.T, events <-chan EndpointsEvent, want ...string) {
	t.Helper()
	e := next(t, events)
	var got []string
	for _, endpoint := range e.Ports["http"] {
		text := strings.TrimPrefix(endpoint.Addr.Addr().String(), "10.0.0.") + " "
		for i, holds := range []bool{endpoint.Ready, endpoint.Serving, endpoint.Terminating} {
			if holds {
				text += "rst"[i : i+1]
			}
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(want, got); diff != "" || e.Service != "ns/svc" {
		t.Errorf("endpoints of %s (-want +got):\n%s", e.Service, diff)
	}
}

func TestEndpoints(t *testing.T) {
	s := newServer(t)
	s.stores("endpointslices", &discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "10"},
		Items: []discoveryv1.EndpointSlice{*sliceOf("one", "1", "1 rs", "2 -"), *sliceOf("two", "2", "3 ")}})
	events := make(chan EndpointsEvent, 100)
	s.start(Options{OnEndpoints: func(e EndpointsEvent) { events <- e }})
	w := next(t, s.watches["endpointslices"])
	wantEndpoints(t, events, "1 rs", "2 rs", "3 ") // one event for the list

	w.Modify(sliceOf("two", "11", "3 rs"))
	wantEndpoints(t, events, "1 rs", "2 rs", "3 rs")
	w.Modify(sliceOf("two", "12", "3 rs", "1 st")) // 1 is on its way from one slice to the other
	wantEndpoints(t, events, "1 rs", "2 rs", "3 rs")
	w.Modify(sliceOf("one", "13", "2 st"))
	wantEndpoints(t, events, "1 st", "2 st", "3 rs")
	w.Delete(sliceOf("two", "14", "3 rs", "1 st"))
	wantEndpoints(t, events, "2 st")
	w.Modify(sliceOf("one", "15"))
	e := next(t, events)
	if diff := cmp.Diff([]string{"http"}, slices.Collect(maps.Keys(e.Ports))); diff != "" || len(e.Ports["http"]) != 0 {
		t.Errorf("ports of a service without endpoints %v, want http without any", e.Ports)
	}
	w.Add(sliceOf("three", "16", "9 rs"))
	wantEndpoints(t, events, "9 rs")
	s.stores("endpointslices", &discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}})
	w.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
	wantEndpoints(t, events) // every slice is gone
}

func TestEndpointsOf(t *testing.T) {
	slice := sliceOf("s", "1", "1 rs", "2 rs")
	slice.Endpoints[1].Addresses = []string{"2001:db8::1", "svc.example"}
	slice.Ports = append(slice.Ports,
		discoveryv1.EndpointPort{Port: new(int32(53)), Protocol: new(corev1.ProtocolUDP)},
		discoveryv1.EndpointPort{Port: new(int32(54)), Protocol: new(corev1.ProtocolTCP)},
		discoveryv1.EndpointPort{Name: new("any")})
	var got []string
	for port, endpoints := range endpointsOf(slice) {
		for _, e := range endpoints {
			got = append(got, fmt.Sprintf("%s %s", port, e.Addr))
		}
	}
	slices.Sort(got)
	want := []string{" 10.0.0.1:53", " 10.0.0.1:54", " [2001:db8::1]:53", " [2001:db8::1]:54", "http 10.0.0.1:8080", "http [2001:db8::1]:8080"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}

	m := newMerger()
	delete(slice.Labels, discoveryv1.LabelServiceName)
	m.set(Added, slice)
	if events := m.take(time.Now()); len(events) != 0 {
		t.Errorf("a slice of no service gives %v", events)
	}
}

func TestKindString(t *testing.T) {
	if got, want := fmt.Sprint(Added, Modified, Deleted, Kind(9)), "added modified deleted Kind(9)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
