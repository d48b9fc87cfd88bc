package existing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forwarded is a pod some ports of which are reached at ports of loopback, through the API
// server and the pod's kubelet. All connections share one from here to the API server.
type Forwarded struct {
	local map[int]int // port of loopback, by the pod's
	stop  context.CancelFunc
	done  chan struct{}
	err   error // why it ended; set before done is closed
}

// Forward forwards ports of a pod and returns when they can be connected to. It ends with
// Close, when the pod ends, and when the connection to the API server does. With ctx ends
// only the start.
func (c *Cluster) Forward(ctx context.Context, namespace, pod string, ports ...int) (*Forwarded, error) {
	return c.forward(ctx, false, namespace, pod, ports...)
}

// ForwardBeforeStart is Forward of a port that nothing may listen on yet. A connection that the pod refuses ends the
// forwarding, as it does with Forward, but client-go does not log it.
func (c *Cluster) ForwardBeforeStart(ctx context.Context, namespace, pod string, port int) (*Forwarded, error) {
	return c.forward(ctx, true, namespace, pod, port)
}

// forward does the work of Forward or, quietly, of ForwardBeforeStart.
func (c *Cluster) forward(ctx context.Context, quietly bool, namespace, pod string, ports ...int) (*Forwarded, error) {
	fail := func(err error) error { return fmt.Errorf("forwarding ports of pod %s/%s: %w", namespace, pod, err) }
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return nil, fail(err)
	}
	var wanted []string
	for _, port := range ports {
		wanted = append(wanted, ":"+strconv.Itoa(port))
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	dialer := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	if quietly {
		dialer = quietDialer{dialer}
	}
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, wanted, running.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		stop()
		return nil, fail(err)
	}
	f := &Forwarded{local: map[int]int{}, stop: stop, done: make(chan struct{})}
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
		return nil, fail(f.err)
	case <-ctx.Done():
		f.Close()
		return nil, context.Cause(ctx)
	}
	opened, err := forwarder.GetPorts()
	if err != nil {
		f.Close()
		return nil, fail(err)
	}
	for _, port := range opened {
		f.local[int(port.Remote)] = int(port.Local)
	}
	return f, nil
}

// Port returns the local port that is forwarded to a port of the pod.
func (f *Forwarded) Port(port int) int { return f.local[port] }

// Address is HOST:PORT of loopback that stands for a port of the pod.
func (f *Forwarded) Address(port int) string { return "127.0.0.1:" + strconv.Itoa(f.local[port]) }

// Done is closed when it has ended; Err is why, nil after Close.
func (f *Forwarded) Done() <-chan struct{} { return f.done }

// Err returns the reason why it has ended, once Done is closed.
func (f *Forwarded) Err() error { return f.err }

// Close ends it and returns when nothing of it runs.
func (f *Forwarded) Close() {
	f.stop()
	<-f.done
}

// quietDialer makes connections that end without an error where the pod refuses a forwarded connection.
type quietDialer struct{ httpstream.Dialer }

func (d quietDialer) Dial(protocols ...string) (httpstream.Connection, string, error) {
	c, protocol, err := d.Dialer.Dial(protocols...)
	if err != nil {
		return nil, "", err
	}
	return quiet{c}, protocol, nil
}

type quiet struct{ httpstream.Connection }

func (c quiet) CreateStream(headers http.Header) (httpstream.Stream, error) {
	s, err := c.Connection.CreateStream(headers)
	switch {
	case err != nil:
		return nil, err
	case headers.Get(corev1.StreamType) == corev1.StreamTypeError:
		return refusals{s, c.Connection}, nil
	default:
		return toPod{s}, nil
	}
}

func (c quiet) RemoveStreams(streams ...httpstream.Stream) {
	for i, s := range streams {
		switch of := s.(type) {
		case refusals:
			streams[i] = of.Stream
		case toPod:
			streams[i] = of.Stream
		}
	}
	c.Connection.RemoveStreams(streams...)
}

// toPod is the stream of what one forwarded connection sends. Where the connection to the API server has ended, as refusals ends it, writing fails
// with net.ErrClosed, which client-go does not log, in place of io.EOF.
type toPod struct{ httpstream.Stream }

func (s toPod) Write(p []byte) (int, error) {
	n, err := s.Stream.Write(p)
	if errors.Is(err, io.EOF) {
		err = net.ErrClosed
	}
	return n, err
}

// refusals is the stream of what went wrong with one forwarded connection. It reads as empty. Anything in it ends the
// connection to the API server, as client-go does: a pod's side that is not read from could block the others.
type refusals struct {
	httpstream.Stream
	on httpstream.Connection
}

func (s refusals) Read([]byte) (int, error) {
	switch n, err := io.Copy(io.Discard, s.Stream); {
	case err != nil:
		return 0, err
	case n > 0:
		_ = s.on.Close() // the forwarding ends, which its user sees
	}
	return 0, io.EOF
}
