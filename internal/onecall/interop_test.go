package onecall

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// channel makes of every call a connection of its own, so that the clients that
// gRPC generates run on this package.
type channel struct{ options Options }

func (ch channel) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	c, err := Dial(ctx, ch.options)
	if err != nil {
		return nil, status.FromContextError(errors.Join(ctx.Err(), err)).Err()
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	if err := c.Open(method, md); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &call{Conn: c, options: options}, nil
}

func (ch channel) Invoke(ctx context.Context, method string, in, out any, options ...grpc.CallOption) error {
	s, err := ch.NewStream(ctx, nil, method, options...)
	if err != nil {
		return err
	}
	_ = s.SendMsg(in) // receiving returns why
	_ = s.CloseSend()
	if err := s.RecvMsg(out); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if err := s.RecvMsg(out); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// call is a stream of gRPC's on a Conn, which is closed when the call is over.
type call struct {
	*Conn
	options []grpc.CallOption
	early   mem.Buffer // received while Header waited for what comes before it
}

func (c *call) Context() context.Context { return c.ctx }

func (c *call) SendMsg(m any) error {
	b, err := proto.Marshal(m.(proto.Message))
	if err != nil {
		return err
	}
	if err := c.Send(b); err != nil {
		return io.EOF
	}
	return nil
}

func (c *call) RecvMsg(m any) error {
	b, err := c.early, error(nil)
	if c.early = nil; b == nil {
		b, err = c.Receive()
	}
	if err != nil {
		for _, o := range c.options {
			switch o := o.(type) {
			case grpc.HeaderCallOption:
				*o.HeaderAddr = c.Conn.Header()
			case grpc.TrailerCallOption:
				*o.TrailerAddr = c.Conn.Trailer()
			}
		}
		_ = c.Close()
		return err
	}
	defer b.Free()
	return proto.Unmarshal(b.ReadOnlyData(), m.(proto.Message))
}

func (c *call) Header() (metadata.MD, error) {
	if c.Conn.Header() == nil {
		c.early, _ = c.Receive() // the error comes again
	}
	return c.Conn.Header(), nil
}

// cases are the cases of gRPC's doc/interop-test-descriptions.md that need nothing
// that package onecall leaves out. They end the test process when they fail.
var cases = map[string]func(context.Context, testgrpc.TestServiceClient, ...grpc.CallOption){
	"empty_unary":                 interop.DoEmptyUnaryCall,
	"large_unary":                 interop.DoLargeUnaryCall,
	"client_streaming":            interop.DoClientStreaming,
	"server_streaming":            interop.DoServerStreaming,
	"ping_pong":                   interop.DoPingPong,
	"empty_stream":                interop.DoEmptyStream,
	"timeout_on_sleeping_server":  interop.DoTimeoutOnSleepingServer,
	"cancel_after_begin":          interop.DoCancelAfterBegin,
	"cancel_after_first_response": interop.DoCancelAfterFirstResponse,
	"custom_metadata":             interop.DoCustomMetadata,
	"status_code_and_message":     interop.DoStatusCodeAndMessage,
	"special_status_message":      interop.DoSpecialStatusMessage,
}

func TestInterop(t *testing.T) {
	for _, secured := range []bool{false, true} {
		options := serve(t, secured)
		for name, run := range cases {
			t.Run(name, func(t *testing.T) {
				run(t.Context(), testgrpc.NewTestServiceClient(channel{options}))
			})
		}
		t.Run("unimplemented_method", func(t *testing.T) {
			_, err := testgrpc.NewTestServiceClient(channel{options}).UnimplementedCall(t.Context(), &testgrpc.Empty{})
			if status.Code(err) != codes.Unimplemented {
				t.Fatalf("got %v, want %v", err, codes.Unimplemented)
			}
		})
		t.Run("unimplemented_service", func(t *testing.T) {
			interop.DoUnimplementedService(t.Context(), testgrpc.NewUnimplementedServiceClient(channel{options}))
		})
	}
}

// serve starts gRPC's interoperability server.
func serve(t *testing.T, secured bool) Options {
	t.Helper()
	var (
		server  []grpc.ServerOption
		options Options
	)
	if secured {
		certificate, roots := selfSigned(t)
		server = append(server, grpc.Creds(credentials.NewServerTLSFromCert(certificate)))
		options.TLS = &tls.Config{RootCAs: roots, ServerName: "server", MinVersion: tls.VersionTLS12}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(server...)
	testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	options.Address = listener.Addr().String()
	return options
}

func selfSigned(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"server"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// TestCallsInTurn makes calls of all ends on one connection.
func TestCallsInTurn(t *testing.T) {
	for _, secured := range []bool{false, true} {
		c, err := Dial(t.Context(), serve(t, secured))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		md := metadata.Pairs("x-grpc-test-echo-initial", "again", "x-grpc-test-echo-trailing-bin", "\x01\x02")
		for i := range 100 {
			request := &testgrpc.SimpleRequest{ResponseSize: 100_000, Payload: &testgrpc.Payload{Body: make([]byte, 80_000)}}
			want := codes.OK
			if i%3 == 1 {
				want = codes.Code(2 + i%10)
				request.ResponseStatus = &testgrpc.EchoStatus{Code: int32(want), Message: "as asked"}
			}
			message, err := proto.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}
			const method = "/grpc.testing.TestService/UnaryCall"
			if i%2 == 0 {
				err = c.Ask(method, md, message)
			} else {
				err = errors.Join(c.Open(method, md), c.Send(message), c.CloseSend())
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := c.Receive()
			if want == codes.OK {
				if err != nil {
					t.Fatalf("call %d: %v", i, err)
				}
				var response testgrpc.SimpleResponse
				if err := proto.Unmarshal(b.ReadOnlyData(), &response); err != nil || len(response.GetPayload().GetBody()) != 100_000 {
					t.Fatalf("call %d: %d bytes, %v", i, len(response.GetPayload().GetBody()), err)
				}
				b.Free()
				if _, err = c.Receive(); errors.Is(err, io.EOF) {
					err = nil
				}
			}
			if status.Code(err) != want || !c.Answered() {
				t.Fatalf("call %d: got %v, answered %v; want %v", i, err, c.Answered(), want)
			}
			if got := c.Trailer().Get("x-grpc-test-echo-trailing-bin"); len(got) != 1 || got[0] != "\x01\x02" {
				t.Fatalf("call %d: trailer %q", i, got)
			}
			if !c.Again() {
				t.Fatalf("call %d was the last", i)
			}
		}
	}
}
