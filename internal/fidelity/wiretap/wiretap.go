// Package wiretap records the traffic between a proxy and its control plane. It is a gRPC
// server that forwards every call, byte for byte, and records the messages of ADS streams
// of the delta variant, and certificate requests. Two proxies behind the same wiretap are
// observed by the same clock and at the same point, whatever their implementation.
//
// From a recording one can compute the resources that a proxy holds, and its
// subscriptions in order (see Stream.Requests), to compare a simulated sidecar with a
// real one. Callers start the proxies.
package wiretap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// The calls whose messages are written down.
const (
	deltaMethod       = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
	certificateMethod = "/istio.v1.auth.IstioCertificateService/CreateCertificate"
)

// Options configure a Wiretap.
type Options struct {
	Upstream    string          // host:port of the control plane
	ServerName  string          // name that the control plane's certificate must carry
	RootPEM     []byte          // roots that certificate is verified against
	Certificate tls.Certificate // shown to proxies
	// Also is a second listener where proxies find the server, for example in a network
	// namespace; nil means none. Run closes it at its end.
	Also net.Listener
}

// Wiretap is a server between proxies and their control plane.
type Wiretap struct {
	// fixed after Listen
	listener net.Listener
	also     net.Listener // nil = there is none
	server   *grpc.Server
	upstream string
	trust    credentials.TransportCredentials

	mu           sync.Mutex
	streams      []*Stream
	certificates []*CertificateRequest
	cuts         map[*Stream]context.CancelCauseFunc
	changed      chan struct{} // closed, and replaced, with every message
}

// Listen takes a free port of the loopback interface. Proxies that connect are
// served once Run is called.
func Listen(o Options) (*Wiretap, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(o.RootPEM) {
		return nil, errors.New("reading the control plane's roots: no certificate in them")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for proxies: %w", err)
	}
	w := &Wiretap{
		listener: listener,
		also:     o.Also,
		upstream: o.Upstream,
		trust:    credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: o.ServerName, MinVersion: tls.VersionTLS12}),
		cuts:     map[*Stream]context.CancelCauseFunc{},
		changed:  make(chan struct{}),
	}
	w.server = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{o.Certificate}, MinVersion: tls.VersionTLS12})),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.UnknownServiceHandler(w.pass),
	)
	return w, nil
}

// Address returns the host:port where proxies find it.
func (w *Wiretap) Address() string { return w.listener.Addr().String() }

// Run serves until ctx is done, and returns when every stream has ended.
func (w *Wiretap) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, w.server.Stop)
	defer stop()
	var serving errgroup.Group
	for _, l := range []net.Listener{w.listener, w.also} {
		if l != nil {
			serving.Go(func() error {
				defer w.server.Stop() // neither is of use without the other
				return w.server.Serve(l)
			})
		}
	}
	err := serving.Wait()
	if ctx.Err() != nil {
		w.server.Stop() // waits for the handlers
		return nil
	}
	return fmt.Errorf("serving proxies: %w", err)
}

// errCut is the error of a stream that was cut.
var errCut = errors.New("the stream was cut")

// Cut breaks every stream of the proxy with this node id with the status UNAVAILABLE, as
// a restart of the control plane does, and reports whether there was one.
func (w *Wiretap) Cut(node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := false
	for s, cut := range w.cuts {
		if s.Node != nil && s.Node.ID == node {
			cut(errCut)
			found = true
		}
	}
	return found
}

// Streams returns copies of all streams of the proxy with this node id, in the order in
// which they were opened.
func (w *Wiretap) Streams(node string) []Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	var streams []Stream
	for _, s := range w.streams {
		if s.Node != nil && s.Node.ID == node {
			streams = append(streams, s.clone())
		}
	}
	return streams
}

// Changed returns a channel that is closed at the next event recorded after the call.
func (w *Wiretap) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// pass forwards one call, on a separate connection, because the proxy has one for it too.
func (w *Wiretap) pass(_ any, down grpc.ServerStream) (err error) {
	method, ok := grpc.MethodFromServerStream(down)
	if !ok {
		return status.Error(codes.Internal, "a call without a method")
	}
	ctx, cancel := context.WithCancelCause(down.Context())
	defer cancel(nil)
	conn, err := grpc.NewClient("passthrough:///"+w.upstream, grpc.WithTransportCredentials(w.trust), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	defer conn.Close()
	headers, _ := metadata.FromIncomingContext(ctx)
	headers = headers.Copy()
	for _, own := range []string{":authority", "content-type", "user-agent", "grpc-accept-encoding"} {
		headers.Delete(own)
	}
	up, err := conn.NewStream(metadata.NewOutgoingContext(ctx, headers),
		&grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	var t tape
	switch method {
	case deltaMethod:
		s := w.open(down.Context(), cancel)
		defer w.close(s)
		t.sent = func(f frame) { m, node := readRequest(f); w.note(s, m, node) }
		t.received = func(f frame) { w.note(s, readResponse(f), nil) }
	case certificateMethod:
		r := w.begin(down.Context())
		defer func() { w.end(r, err) }()
		t.sent = func(f frame) { w.describe(r, f) }
	}
	err = w.relay(up, down, t, cancel)
	if errors.Is(context.Cause(ctx), errCut) {
		return status.Error(codes.Unavailable, errCut.Error())
	}
	return err
}

// tape records the messages that pass; a nil function records nothing.
type tape struct{ sent, received func(frame) }

// relay forwards messages in both directions until the control plane ends the call, or
// the proxy disconnects.
func (w *Wiretap) relay(up grpc.ClientStream, down grpc.ServerStream, t tape, cancel context.CancelCauseFunc) error {
	var group errgroup.Group
	group.Go(func() error { // ends with the call, at the latest when this handler returns
		for {
			var f frame
			if err := down.RecvMsg(&f); err != nil {
				return up.CloseSend() // also where the proxy only has nothing more to send
			}
			if t.sent != nil {
				t.sent(f)
			}
			if err := up.SendMsg(&f); err != nil {
				return nil // receiving returns why
			}
		}
	})
	for {
		var f frame
		if err := up.RecvMsg(&f); err != nil {
			cancel(nil)
			down.SetTrailer(up.Trailer())
			if errors.Is(err, errEnd) {
				return nil
			}
			return err
		}
		if t.received != nil {
			t.received(f)
		}
		if err := down.SendMsg(&f); err != nil {
			return err
		}
	}
}

// open begins to write a stream down.
func (w *Wiretap) open(ctx context.Context, cut context.CancelCauseFunc) *Stream {
	s := &Stream{Headers: headersOf(ctx)}
	if from, ok := peer.FromContext(ctx); ok {
		s.From = from.Addr.String()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams = append(w.streams, s)
	w.cuts[s] = cut
	return s
}

// close notes that a stream has ended.
func (w *Wiretap) close(s *Stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Ended = true
	delete(w.cuts, s)
	w.notify()
}

// note adds a message to a stream.
func (w *Wiretap) note(s *Stream, m Message, node *Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if node != nil {
		s.Nodes++
		if s.Node == nil {
			s.Node = node
		}
	}
	s.Messages = append(s.Messages, m)
	w.notify()
}

// notify wakes the goroutines that wait for Changed. The caller holds mu.
func (w *Wiretap) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}
