package xdsprobe

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"scaler.mesh/scaler/pkg/convergence"
)

// script is an ADS server that does what a spec says, also what no server would.
type script struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	address string
	cut     func()
	talks   chan *talk
}

// talk is one stream of a script.
type talk struct {
	headers  metadata.MD
	variant  Variant
	requests chan string
	send     func(proto.Message) error
	end      chan error
	gone     <-chan struct{}
}

func startScript(options ...grpc.ServerOption) *script {
	s := &script{talks: make(chan *talk, 64)}
	var listener net.Listener
	listener, s.cut = cuttable()
	s.address = listener.Addr().String()
	g := grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener) }()
	DeferCleanup(func() {
		g.Stop()
		Eventually(done).Should(Receive())
	})
	return s
}

// next returns the next stream that is opened.
func (s *script) next() (t *talk) {
	Eventually(s.talks).Should(Receive(&t))
	return t
}

func (s *script) DeltaAggregatedResources(stream grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	return s.talk(stream.Context(), &talk{
		variant: Delta,
		send:    func(m proto.Message) error { return stream.SendMsg(m) },
	}, func() (string, error) {
		r, err := stream.Recv()
		return deltaSays(r), err
	})
}

func (s *script) StreamAggregatedResources(stream grpc.BidiStreamingServer[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]) error {
	return s.talk(stream.Context(), &talk{
		variant: SotW,
		send:    func(m proto.Message) error { return stream.SendMsg(m) },
	}, func() (string, error) {
		r, err := stream.Recv()
		return sotwSays(r), err
	})
}

func (s *script) talk(ctx context.Context, t *talk, receive func() (string, error)) error {
	t.headers, _ = metadata.FromIncomingContext(ctx)
	t.requests, t.end, t.gone = make(chan string, 64), make(chan error, 1), ctx.Done()
	s.talks <- t
	received := make(chan struct{})
	go func() {
		defer close(received)
		for {
			r, err := receive()
			if err != nil {
				return
			}
			t.requests <- r
		}
	}()
	select {
	case err := <-t.end:
		return err
	case <-ctx.Done():
		<-received
		return ctx.Err()
	}
}

// The next two put a request into words, as "EDS +a -b nonce=1": names in order,
// + subscribed, - unsubscribed, = all (state of the world), ~ held before.

func deltaSays(r *discoveryv3.DeltaDiscoveryRequest) string {
	words := []string{typeOf([]byte(r.GetTypeUrl())).String()}
	add := func(sign string, names []string) {
		for _, n := range slices.Sorted(slices.Values(names)) {
			words = append(words, sign+n)
		}
	}
	add("+", r.GetResourceNamesSubscribe())
	add("-", r.GetResourceNamesUnsubscribe())
	var initial []string
	for name, version := range r.GetInitialResourceVersions() {
		initial = append(initial, name+":"+version)
	}
	add("~", initial)
	return says(words, r.GetResponseNonce(), r.GetNode(), r.GetErrorDetail() != nil)
}

func sotwSays(r *discoveryv3.DiscoveryRequest) string {
	words := []string{typeOf([]byte(r.GetTypeUrl())).String()}
	for _, n := range slices.Sorted(slices.Values(r.GetResourceNames())) {
		words = append(words, "="+n)
	}
	if r.GetVersionInfo() != "" {
		words = append(words, "version="+r.GetVersionInfo())
	}
	return says(words, r.GetResponseNonce(), r.GetNode(), r.GetErrorDetail() != nil)
}

func says(words []string, nonce string, node *corev3.Node, rejects bool) string {
	if nonce != "" {
		words = append(words, "nonce="+nonce)
	}
	if node != nil {
		words = append(words, "node="+node.GetId())
	}
	if rejects {
		words = append(words, "rejects")
	}
	return strings.Join(words, " ")
}

// expect waits for exactly these requests. What they acknowledge is reported only when they
// are on their way, so the diary of the sidecar may not have it yet.
func (t *talk) expect(requests ...string) {
	GinkgoHelper()
	for _, want := range requests {
		var got string
		Eventually(t.requests).Should(Receive(&got), "want %q", want)
		Expect(got).To(Equal(want))
	}
	Consistently(t.requests, "5ms").ShouldNot(Receive())
}

// named is a resource that talk.answer can send.
type named interface {
	proto.Message
	GetName() string
}

// answer sends resources of one type, each with the nonce as its version, and
// the nonce as the response's version. Names that begin with "-" are removed.
func (t *talk) answer(kind convergence.Type, nonce string, resources ...any) {
	GinkgoHelper()
	var (
		list    []*discoveryv3.Resource
		all     []*anypb.Any
		removed []string
	)
	for _, r := range resources {
		switch r := r.(type) {
		case string:
			removed = append(removed, strings.TrimPrefix(r, "-"))
		case *anypb.Any:
			list = append(list, &discoveryv3.Resource{Name: "odd", Version: nonce, Resource: r})
			all = append(all, r)
		case *discoveryv3.Resource:
			list = append(list, r)
			all = append(all, pack(r))
		case named:
			list = append(list, &discoveryv3.Resource{Name: r.GetName(), Version: nonce, Resource: pack(r)})
			all = append(all, pack(r))
		case interface {
			proto.Message
			GetClusterName() string
		}:
			list = append(list, &discoveryv3.Resource{Name: r.GetClusterName(), Version: nonce, Resource: pack(r)})
			all = append(all, pack(r))
		default:
			Fail(fmt.Sprintf("cannot send a %T", r))
		}
	}
	if t.variant == Delta {
		Expect(t.send(&discoveryv3.DeltaDiscoveryResponse{
			TypeUrl: typeURLs[kind], Nonce: nonce, SystemVersionInfo: nonce, Resources: list, RemovedResources: removed,
		})).To(Succeed())
		return
	}
	Expect(t.send(&discoveryv3.DiscoveryResponse{
		TypeUrl: typeURLs[kind], Nonce: nonce, VersionInfo: nonce, Resources: all,
	})).To(Succeed())
}

// finish ends the stream with an error, or without one.
func (t *talk) finish(err error) { t.end <- err }
