package xdsprobe

import (
	"context"
	"errors"
	"fmt"
	"math"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"scaler.mesh/scaler/pkg/convergence"
)

// bare is the least that a client on grpc-go can do: one connection and one
// stream on which it subscribes to all of a mesh that it knows beforehand,
// receives, and acknowledges. It reads no more of a response than an
// acknowledgement needs and holds nothing: what it costs is the transport. Or it
// unmarshals every response and holds what came of it, as a client does that is
// written without regard to its cost.
type bare struct {
	config    Config
	mesh      mesh
	pushed    func()
	unmarshal bool
}

func (c *bare) run(ctx context.Context) error {
	// Options as frugal as grpc-go has them: buffers are lent while they are
	// used, the windows are fixed, nothing is looked up, retried or put to sleep.
	// crypto/tls reads ahead by itself.
	creds, read := insecure.NewCredentials(), 16<<10
	if c.config.RootPEM != nil {
		t, err := NewStore().trustOf(c.config.RootPEM, c.config.ServerName)
		if err != nil {
			return err
		}
		creds, read = credentials.NewTLS(t.tls), 1<<10
	}
	conn, err := grpc.NewClient("passthrough:///"+c.config.Address,
		grpc.WithTransportCredentials(creds),
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window),
		grpc.WithReadBufferSize(read),
		grpc.WithWriteBufferSize(16<<10),
		grpc.WithSharedWriteBuffer(true),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.ForceCodecV2(codec{})),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableHealthCheck(),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0),
	)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, SotW.method())
	if err != nil {
		return err
	}
	return c.serve(stream)
}

// codec hands requests and responses to grpc-go as the bytes they are.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*request).append(nil, SotW))}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*response).buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

func (c *bare) serve(stream grpc.ClientStream) error {
	node, err := c.config.encodeNode()
	if err != nil {
		return err
	}
	requests := map[convergence.Type]request{}
	for t, url := range map[convergence.Type]string{
		convergence.CDS: resource.ClusterType, convergence.EDS: resource.EndpointType, convergence.LDS: resource.ListenerType,
		convergence.RDS: resource.RouteType, convergence.ECDS: resource.ExtensionConfigType,
	} {
		r := request{url: url}
		if t != convergence.CDS && t != convergence.LDS {
			r.names = c.mesh.names(url)
		}
		requests[t] = r
	}
	for _, t := range []convergence.Type{convergence.CDS, convergence.EDS, convergence.LDS, convergence.RDS, convergence.ECDS} {
		first := requests[t]
		first.node = node
		if err := stream.SendMsg(&first); err != nil {
			return err
		}
	}
	held := make(map[convergence.Type][]proto.Message)
	for {
		r := response{}
		if err := stream.RecvMsg(&r); err != nil {
			return err
		}
		if c.unmarshal {
			var whole discoveryv3.DiscoveryResponse
			if err := proto.Unmarshal(r.buffer.ReadOnlyData(), &whole); err != nil {
				return err
			}
			objects := make([]proto.Message, 0, len(whole.GetResources()))
			for _, a := range whole.GetResources() {
				one, err := a.UnmarshalNew()
				if err != nil {
					return err
				}
				objects = append(objects, one)
			}
			held[typeOf([]byte(whole.GetTypeUrl()))] = objects
		}
		var t convergence.Type
		m := read(r.buffer.ReadOnlyData())
		for m.next() {
			switch m.number {
			case 1:
				r.version = string(m.bytes)
			case 4:
				t = typeOf(m.bytes)
			case 5:
				r.nonce = string(m.bytes)
			}
		}
		r.buffer.Free()
		if m.err != nil || t == (convergence.Type{}) {
			return fmt.Errorf("reading a response: %w", errors.Join(m.err, errWire))
		}
		ack := requests[t]
		ack.version, ack.nonce = r.version, r.nonce
		if err := stream.SendMsg(&ack); err != nil {
			return err
		}
		if t == convergence.ECDS {
			c.pushed()
		}
	}
}

// names lists the resources of a type.
func (m mesh) names(kind resource.Type) (names []string) {
	for _, r := range m[kind] {
		names = append(names, cache.GetResourceName(r))
	}
	return names
}
