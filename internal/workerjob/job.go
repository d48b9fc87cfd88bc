package workerjob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/worker"
)

// readyTimeout is the time limit for a worker's pod to be ready, with its image pulled.
const readyTimeout = 3 * time.Minute

// Job has the workers of a run in a cluster.
type Job struct {
	// fixed after Start
	spec    Spec
	cluster *existing.Cluster
	client  kubernetes.Interface

	mu     sync.Mutex
	places map[int]Place // by index
	closed bool
}

// Start creates the objects of the workers, and waits for nothing. The objects are the run's: they
// are deleted by its label. The client must not limit its own rate.
func Start(ctx context.Context, cluster *existing.Cluster, client kubernetes.Interface, s Spec) (*Job, error) {
	_, err := client.CoreV1().Namespaces().Create(ctx, s.namespace(), metav1.CreateOptions{})
	if err == nil {
		_, err = client.CoreV1().ServiceAccounts(s.Namespace).Create(ctx, s.account(), metav1.CreateOptions{})
	}
	if err == nil {
		_, err = client.BatchV1().Jobs(s.Namespace).Create(ctx, s.job(), metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("creating the workers: %w", err)
	}
	return &Job{spec: s, cluster: cluster, client: client, places: map[int]Place{}}, nil
}

// Place is the pod of a worker.
type Place struct {
	Pod, Node string

	metrics string // URL of the worker's own
	forward *existing.Forwarded
}

// Connect waits until the pod of an index is ready, and connects to it. The connection to an earlier
// pod of that index ends. It may be called at the same time for several indexes.
func (j *Job) Connect(ctx context.Context, index int, s worker.Setup, o worker.Options) (*worker.Remote, error) {
	limited, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("it was not ready after %v", readyTimeout))
	defer cancel()
	pod, err := j.await(limited, index)
	if err != nil {
		return nil, fmt.Errorf("waiting for worker %d: %w", index, err)
	}
	forwarded, err := j.cluster.Forward(ctx, j.spec.Namespace, pod.Name, port, metricsPort)
	if err != nil {
		return nil, fmt.Errorf("connecting to worker %d: %w", index, err)
	}
	place := Place{Pod: pod.Name, Node: pod.Spec.NodeName, metrics: "http://" + forwarded.Address(metricsPort) + "/metrics", forward: forwarded}
	if err := j.replace(index, place); err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", forwarded.Address(port))
	if err != nil {
		return nil, fmt.Errorf("connecting to worker %d: %w", index, err)
	}
	return worker.Connect(ctx, worker.Timed(conn, worker.SilenceTimeout), s, o)
}

// Place returns the pod in which the worker of an index runs, or ran last.
func (j *Job) Place(index int) Place {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.places[index]
}

// replace ends the connection of an index before the one that is given.
func (j *Job) replace(index int, p Place) error {
	j.mu.Lock()
	before, closed := j.places[index], j.closed
	if !closed {
		j.places[index] = p
	}
	j.mu.Unlock()
	if before.forward != nil {
		before.forward.Close()
	}
	if closed {
		p.forward.Close()
		return errors.New("the connections to the workers were closed")
	}
	return nil
}

// Close ends all connections, and returns when nothing of them runs. Connect fails from then on.
func (j *Job) Close() {
	j.mu.Lock()
	all := slices.Collect(maps.Values(j.places))
	j.closed = true
	j.mu.Unlock()
	for _, p := range all {
		p.forward.Close()
	}
}

// await waits until an index has a pod that is ready. Its error says how the pod stood last.
func (j *Job) await(ctx context.Context, index int) (*corev1.Pod, error) {
	pods := j.client.CoreV1().Pods(j.spec.Namespace)
	selector := batchv1.JobCompletionIndexAnnotation + "=" + strconv.Itoa(index)
	stood := "it has no pod"
	for {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, ended(ctx, stood, err)
		}
		for _, pod := range list.Items {
			if usable(&pod) {
				return &pod, nil
			}
			stood = observe.Standing(&pod)
		}
		changes, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: list.ResourceVersion})
		if err != nil {
			return nil, ended(ctx, stood, err)
		}
		pod := next(ctx, changes.ResultChan(), &stood)
		changes.Stop()
		if pod != nil {
			return pod, nil
		}
		if ctx.Err() != nil {
			return nil, ended(ctx, stood, nil)
		}
	}
}

// next returns the first usable pod among events; nil when they or the context end first. How other pods
// stand is noted.
func next(ctx context.Context, events <-chan watch.Event, stood *string) *corev1.Pod {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events:
			if !open {
				return nil
			}
			pod, ok := event.Object.(*corev1.Pod)
			switch {
			case ok && usable(pod):
				return pod
			case ok:
				*stood = observe.Standing(pod)
			}
		}
	}
}

// ended returns the reason why waiting ended: that of the context, or an error of the API server.
func ended(ctx context.Context, stood string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %s", context.Cause(ctx), stood)
	}
	return err
}

// usable reports whether a pod can be connected to.
func usable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && observe.Ready(pod)
}
