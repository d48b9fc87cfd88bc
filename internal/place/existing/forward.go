package existing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forwarded is a pod some ports of which are reached at ports of loopback, through the API
// server and the pod's kubelet. All connections share one from here to the API server.
type Forwarded struct {
	Pod string

	local map[int]int // port of loopback, by the pod's
	stop  context.CancelFunc
	done  chan struct{}
	err   error // why it ended; set before done is closed
}

// Forward forwards ports of a pod and returns when they can be connected to. It ends with
// Close, when the pod ends, and when the connection to the API server does. With ctx ends
// only the start.
func (c *Cluster) Forward(ctx context.Context, namespace, pod string, ports ...int) (*Forwarded, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return nil, fmt.Errorf("forwarding ports of pod %s/%s: %w", namespace, pod, err)
	}
	var wanted []string
	for _, port := range ports {
		wanted = append(wanted, ":"+strconv.Itoa(port))
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, wanted, running.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		stop()
		return nil, fmt.Errorf("forwarding ports of pod %s/%s: %w", namespace, pod, err)
	}
	f := &Forwarded{Pod: pod, local: map[int]int{}, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.err = forwarder.ForwardPorts()
		if f.err == nil && running.Err() == nil {
			f.err = errors.New("the connection was closed")
		}
	}()
	select {
	case <-ready:
	case <-f.done:
		stop()
		return nil, fmt.Errorf("forwarding ports of pod %s/%s: %w", namespace, pod, f.err)
	case <-ctx.Done():
		f.Close()
		return nil, context.Cause(ctx)
	}
	opened, err := forwarder.GetPorts()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("forwarding ports of pod %s/%s: %w", namespace, pod, err)
	}
	for _, port := range opened {
		f.local[int(port.Remote)] = int(port.Local)
	}
	return f, nil
}

// Port is the port of loopback that stands for a port of the pod.
func (f *Forwarded) Port(port int) int { return f.local[port] }

// Address is HOST:PORT of loopback that stands for a port of the pod.
func (f *Forwarded) Address(port int) string { return "127.0.0.1:" + strconv.Itoa(f.local[port]) }

// Done is closed when it has ended; Err is why, nil after Close.
func (f *Forwarded) Done() <-chan struct{} { return f.done }

// Err is why it has ended, once Done is closed.
func (f *Forwarded) Err() error { return f.err }

// Close ends it and returns when nothing of it runs.
func (f *Forwarded) Close() {
	f.stop()
	<-f.done
}
