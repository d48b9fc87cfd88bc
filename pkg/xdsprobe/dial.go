package xdsprobe

import (
	"errors"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

const (
	// window is the flow-control window of Istio's agent.
	window = 1 << 20
	// A plaintext connection's read buffer is lent to it only while there is
	// something to read. A TLS connection keeps its own, beside the one within
	// crypto/tls that does the work.
	readBuffer    = 16 << 10
	readBufferTLS = 1 << 10
	writeBuffer   = 16 << 10 // lent only while there is something to write
)

// method returns the gRPC method of a variant.
func (v Variant) method() (*grpc.StreamDesc, string) {
	name := "DeltaAggregatedResources"
	if v == SotW {
		name = "StreamAggregatedResources"
	}
	return &grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true},
		"/envoy.service.discovery.v3.AggregatedDiscoveryService/" + name
}

// dial prepares a connection of its own for one attempt; it is made by the
// stream that is opened on it. Its time-out is gRPC's, 20 s, as it is for
// Istio's agent. creds are nil for plaintext.
func dial(c *Config, creds credentials.TransportCredentials) (*grpc.ClientConn, error) {
	read := readBufferTLS
	if creds == nil {
		creds, read = insecure.NewCredentials(), readBuffer
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window),
		grpc.WithReadBufferSize(read),
		grpc.WithWriteBufferSize(writeBuffer),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(math.MaxInt32),
			grpc.ForceCodecV2(codec{variant: c.Variant, pool: mem.DefaultBufferPool()}),
		),
		// An attempt is one connection and one stream: nothing is retried,
		// looked up or put to sleep behind our back.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableHealthCheck(),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0),
	}
	if c.Keepalive > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: c.Keepalive}))
	}
	return grpc.NewClient("passthrough:///"+c.Address, options...)
}

// classify says how a stream ended that had a connection and on which some
// responses came.
func classify(err error, responses int, answered bool) Class {
	if errors.Is(err, errWire) {
		return Misunderstood
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return Unauthorized
	case codes.ResourceExhausted:
		if responses == 0 {
			return Refused
		}
	case codes.Unavailable:
		// A connection that broke is Unavailable too; only a server's own
		// answer has trailers.
		if responses == 0 && answered {
			return Refused
		}
	}
	return Lost
}
