// Package observe watches a run's pods and EndpointSlices and reports every change with
// the time at which it was seen. It does not interpret the changes.
package observe

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/kwok"
)

// Options state what is watched and which callbacks are called. They are called one at a
// time, in the order in which changes were seen. A slow callback delays the others but
// does not change any reported time.
type Options struct {
	// Client is the client for the API server. It is required, and must not limit its own
	// rate.
	Client kubernetes.Interface
	// Run selects the objects: those whose label kwok.RunLabel has this value.
	// Pods have it from their template; EndpointSlices from their Service, whose
	// labels the EndpointSlice controller copies.
	Run string

	OnPod       func(PodEvent)       // nil = pods are not watched
	OnEndpoints func(EndpointsEvent) // nil = EndpointSlices are not watched
	// OnLost is called for every failed attempt to list or watch, and for every watch
	// that ended early. They are resumed: meanwhile changes may be seen late, or, if
	// several undo each other, not at all. nil = they are not reported.
	OnLost func(error)
}

// Kind says what happened to an object.
type Kind uint8

// The kinds of change.
const (
	Added Kind = iota + 1
	Modified
	Deleted
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Added:
		return "added"
	case Modified:
		return "modified"
	case Deleted:
		return "deleted"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// PodEvent is one change of a pod.
type PodEvent struct {
	Seen time.Time // when the change was read and decoded; monotonic
	Kind Kind
	// Pod is the pod after the change, without managed fields. It must not be changed. If
	// its deletion was only discovered after a lost watch, it is as last seen, reduced to
	// its metadata and IPs.
	Pod *corev1.Pod
}

// EndpointsEvent is the state of a service's endpoints after a change of one of
// its EndpointSlices, all of them merged. The state may be the same as before.
type EndpointsEvent struct {
	Seen    time.Time // when the change was read and decoded; monotonic
	Service string    // "namespace/name"
	// Ports holds, by the port's name, the endpoints of each port of the service, in the
	// order of their addresses. A port that was seen once is kept, without endpoints if
	// it has none: a service without pods lists no ports either.
	Ports map[string][]Endpoint
}

// Endpoint is one address of a service port. Omitted conditions are filled in as the API
// defines.
type Endpoint struct {
	Addr                        netip.AddrPort
	Ready, Serving, Terminating bool
}

// Run watches until ctx ends, then returns nil; everything it started has ended by then.
// A lost watch is resumed, and missed changes are reported then. It returns an error only
// if a retry cannot succeed: the run's name is not a label value, or the API server
// refuses the request.
func Run(ctx context.Context, o Options) error {
	selector, err := labels.ValidatedSelectorFromSet(labels.Set{kwok.RunLabel: o.Run})
	if err != nil {
		return fmt.Errorf("watching objects of run %q: %w", o.Run, err)
	}
	events := newQueue()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { events.run(ctx); return nil })
	if o.OnPod != nil {
		group.Go(func() error { return followPods(ctx, o, selector.String(), events) })
	}
	if o.OnEndpoints != nil {
		group.Go(func() error { return followEndpoints(ctx, o, selector.String(), events) })
	}
	return group.Wait()
}

func followPods(ctx context.Context, o Options, selector string, events *queue) error {
	api := o.Client.CoreV1().Pods(metav1.NamespaceAll)
	store := &changes[*corev1.Pod]{
		reduce: func(p *corev1.Pod) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: p.ObjectMeta, Status: corev1.PodStatus{PodIP: p.Status.PodIP, PodIPs: p.Status.PodIPs}}
		},
		report: func(seen time.Time, kind Kind, pod *corev1.Pod) {
			events.push(func() { o.OnPod(PodEvent{seen, kind, pod}) })
		},
	}
	return follow(ctx, source{
		what: "pods", kind: &corev1.Pod{}, selector: selector,
		list:  func(ctx context.Context, lo metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, lo) },
		watch: func(ctx context.Context, lo metav1.ListOptions) (watch.Interface, error) { return api.Watch(ctx, lo) },
	}, store, o, events)
}

func followEndpoints(ctx context.Context, o Options, selector string, events *queue) error {
	api := o.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll)
	merged := newMerger()
	store := &changes[*discoveryv1.EndpointSlice]{
		reduce: func(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
			return &discoveryv1.EndpointSlice{ObjectMeta: s.ObjectMeta}
		},
		report: func(_ time.Time, kind Kind, slice *discoveryv1.EndpointSlice) {
			merged.set(kind, slice)
		},
		reported: func(seen time.Time) {
			for _, event := range merged.take(seen) {
				events.push(func() { o.OnEndpoints(event) })
			}
		},
	}
	return follow(ctx, source{
		what: "endpoint slices", kind: &discoveryv1.EndpointSlice{}, selector: selector,
		list:  func(ctx context.Context, lo metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, lo) },
		watch: func(ctx context.Context, lo metav1.ListOptions) (watch.Interface, error) { return api.Watch(ctx, lo) },
	}, store, o, events)
}

// Ready reports whether a pod has the condition Ready.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
