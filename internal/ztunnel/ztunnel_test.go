package ztunnel

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"

	"scaler.mesh/scaler/test/credential"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	os.Exit(m.Run())
}

// message is an encoded message to be.
type message []byte

func (m message) text(number protowire.Number, s string) message {
	return protowire.AppendString(protowire.AppendTag(m, number, protowire.BytesType), s)
}

func (m message) bytes(number protowire.Number, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, number, protowire.BytesType), b)
}

func (m message) number(number protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, number, protowire.VarintType), v)
}

const unhealthy = 1

// aPod returns the Address of a pod of namespace ns, which is a member of the service s.
func aPod(name, account, node, ip string, health uint64) message {
	port := message{}.number(1, 80).number(2, 8080)
	w := message{}.text(20, "Kubernetes//Pod/ns/"+name).text(1, name).text(2, "ns").
		bytes(3, netip.MustParseAddr(ip).AsSlice()).number(5, 1).text(7, account).text(9, node).
		bytes(22, message{}.text(1, "ns/s.ns.svc.cluster.local").bytes(2, message{}.bytes(1, port))).number(17, health)
	return message{}.bytes(1, w)
}

// aService returns the Address of the service s.
func aService() message {
	return message{}.bytes(2, message{}.text(1, "s").text(2, "ns").text(3, "s.ns.svc.cluster.local").bytes(5, message{}.number(1, 80).number(2, 8080)))
}

// server is a delta ADS server whose answers the test states.
type server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	address string
	streams chan *talk
}

// talk is one stream of a server.
type talk struct {
	requests chan *discoveryv3.DeltaDiscoveryRequest
	answers  chan *discoveryv3.DeltaDiscoveryResponse
	end      chan error
}

func startServer(t *testing.T) *server {
	listener := credential.Must(net.Listen("tcp", "127.0.0.1:0"))
	s := &server{address: listener.Addr().String(), streams: make(chan *talk, 10)}
	g := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s)
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener) }()
	t.Cleanup(func() {
		g.Stop()
		<-done
	})
	return s
}

func (s *server) DeltaAggregatedResources(stream grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	one := &talk{
		requests: make(chan *discoveryv3.DeltaDiscoveryRequest, 100),
		answers:  make(chan *discoveryv3.DeltaDiscoveryResponse), end: make(chan error),
	}
	s.streams <- one
	go func() {
		for {
			request, err := stream.Recv()
			if err != nil {
				return
			}
			one.requests <- request
		}
	}()
	for {
		select {
		case answer := <-one.answers:
			if err := stream.Send(answer); err != nil {
				return err
			}
		case err := <-one.end:
			return err
		case <-stream.Context().Done():
			return nil
		}
	}
}

const (
	addressURL       = "type.googleapis.com/istio.workload.Address"
	authorizationURL = "type.googleapis.com/istio.security.Authorization"
)

// answer sends resources by name, and names that are gone.
func (o *talk) answer(url, nonce string, resources map[string]message, gone ...string) {
	response := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: url, Nonce: nonce, RemovedResources: gone}
	for name, m := range resources {
		response.Resources = append(response.Resources, &discoveryv3.Resource{
			Name: name, Version: "v" + nonce, Resource: &anypb.Any{TypeUrl: url, Value: m},
		})
	}
	o.answers <- response
}

// diary is an Observer that keeps what it is told.
type diary struct {
	mu           sync.Mutex
	updates      []proxy.Update
	certificates []proxy.Certificate
	ended        []proxy.StreamEnded
}

func (d *diary) TokenFetched(string, proxy.TokenFetched) {}
func (d *diary) StreamOpened(string, proxy.StreamOpened) {}
func (d *diary) Updated(_ string, u proxy.Update) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.updates = append(d.updates, u)
}

func (d *diary) StreamEnded(_ string, e proxy.StreamEnded) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = append(d.ended, e)
}

func (d *diary) Certified(_ string, c proxy.Certificate) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.certificates = append(d.certificates, c)
}

// update returns the n-th update, empty before it came.
func (d *diary) update(n int) func() proxy.Update {
	return func() proxy.Update {
		d.mu.Lock()
		defer d.mu.Unlock()
		if n >= len(d.updates) {
			return proxy.Update{}
		}
		return d.updates[n]
	}
}

// certified returns the identities of certificate events, in order, with a "!" where one failed.
func (d *diary) certified() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, c := range d.certificates {
		mark := ""
		if c.Err != nil {
			mark = "!"
		}
		all = append(all, c.Identity+mark)
	}
	return all
}

// issuer signs what it is asked for, but for the identities that it refuses.
type issuer struct {
	*credential.Authority
	refused map[string]bool

	mu     sync.Mutex
	asked  []string
	tokens []string
}

func (i *issuer) IssueFor(_ context.Context, token, identity string, csrPEM []byte) (proxy.Issued, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked, i.tokens = append(i.asked, identity), append(i.tokens, token)
	sent := time.Now()
	if i.refused[identity] {
		return proxy.Issued{Sent: sent}, status.Error(codes.Unauthenticated, "no pod of it on the node")
	}
	block, _ := pem.Decode(csrPEM)
	csr := credential.Must(x509.ParseCertificateRequest(block.Bytes))
	leaf := credential.EncodeCertificate(i.Sign(&x509.Certificate{URIs: csr.URIs}, csr.PublicKey))
	return proxy.Issued{Chain: [][]byte{leaf, i.RootPEM}, Sent: sent, Received: time.Now()}, nil
}

func (i *issuer) Close() error { return nil }

const (
	identityA = "spiffe://cluster.local/ns/ns/sa/a"
	identityB = "spiffe://cluster.local/ns/ns/sa/b"
	service80 = "ns/s.ns.svc.cluster.local"
)

// patient is the factor by which a ztunnel waits longer than usual before it tries again: no second
// try comes while a test examines the first.
const patient = 30

func start(t *testing.T, address string, certificates Issuer) (*Ztunnel, *diary, *xdsprobe.Store) {
	d := &diary{}
	store := xdsprobe.NewStoreOf(credential.Must(xdsprobe.NewTypes(Types())))
	z := credential.Must(New(proxy.Spec{
		ID: "istio-system/ztunnel-1", Address: address, NodeID: "ztunnel~10.0.0.9~ztunnel-1.istio-system~istio-system.svc.cluster.local", Node: "one",
		Metadata: map[string]any{"NODE_NAME": "one"}, Slowdown: patient,
	}, Services{Store: store, Observer: d, Issuer: certificates, Token: &credential.Tokens{}}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- z.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return z, d, store
}

func TestConversation(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t)
	i := &issuer{Authority: credential.NewAuthority(time.Hour), refused: map[string]bool{identityB: true}}
	z, d, store := start(t, s.address, i)
	one := <-s.streams

	// Two wildcards, each with the node.
	for _, url := range []string{addressURL, authorizationURL} {
		request := <-one.requests
		g.Expect(request.GetTypeUrl()).To(Equal(url))
		g.Expect(request.GetNode().GetId()).To(HavePrefix("ztunnel~10.0.0.9~"))
		g.Expect(request.GetNode().GetMetadata().GetFields()).To(HaveKey("NODE_NAME"))
		g.Expect(request.GetNode().GetUserAgentName()).To(BeEmpty())
		g.Expect(request.GetResourceNamesSubscribe()).To(BeEmpty())
		g.Expect(request.GetInitialResourceVersions()).To(BeEmpty())
	}
	one.answer(addressURL, "1", map[string]message{
		service80: aService(), "Kubernetes//Pod/ns/p1": aPod("p1", "a", "one", "10.0.0.1", unhealthy), "Kubernetes//Pod/ns/p2": aPod("p2", "b", "two", "10.0.0.2", 0),
	})
	g.Expect((<-one.requests).GetResponseNonce()).To(Equal("1"))
	g.Eventually(d.update(0)).Should(HaveField("Complete", false)) // the other type has not come
	one.answer(authorizationURL, "2", nil)
	g.Expect((<-one.requests).GetResponseNonce()).To(Equal("2"))
	g.Eventually(d.update(1)).Should(HaveField("Complete", true))

	first := d.update(0)()
	g.Expect(first.Node).To(Equal(&proxy.NodeUpdate{Held: []proxy.NodePod{{ID: "ns/p1", Identity: identityA}}})) // p2 is on another node
	g.Expect(endpointsIn(first.Update)).To(Equal(convergence.Endpoints{
		netip.MustParseAddrPort("10.0.0.1:8080"): convergence.Unhealthy, netip.MustParseAddrPort("10.0.0.2:8080"): convergence.Healthy,
	}))
	g.Eventually(d.certified).Should(Equal([]string{identityA}))

	// A change, a pod more whose identity is refused, and one that goes.
	one.answer(addressURL, "3", map[string]message{
		"Kubernetes//Pod/ns/p1": aPod("p1", "a", "one", "10.0.0.1", 0), "Kubernetes//Pod/ns/p3": aPod("p3", "b", "one", "10.0.0.3", unhealthy),
	}, "Kubernetes//Pod/ns/p2")
	g.Expect((<-one.requests).GetResponseNonce()).To(Equal("3"))
	g.Eventually(d.certified).Should(Equal([]string{identityA, identityB + "!"}))
	g.Expect(endpointsIn(d.update(2)().Update)).To(Equal(convergence.Endpoints{
		netip.MustParseAddrPort("10.0.0.1:8080"): convergence.Healthy, netip.MustParseAddrPort("10.0.0.3:8080"): convergence.Unhealthy,
	}))
	g.Expect(store.Counters().CertificateRequests.Load()).To(BeEquivalentTo(2))
	g.Expect(store.Counters().Certificates.Load()).To(BeEquivalentTo(1))

	// All certificates are renewed.
	z.Renew()
	g.Eventually(func() (n int) {
		for _, identity := range d.certified() {
			if identity == identityA {
				n++
			}
		}
		return n
	}).Should(Equal(2))

	// The last pod of an identity takes its certificate along; another of it that came with
	// the same response would keep it.
	one.answer(addressURL, "4", nil, "Kubernetes//Pod/ns/p1")
	g.Expect((<-one.requests).GetResponseNonce()).To(Equal("4"))
	g.Eventually(d.update(3)).Should(HaveField("Node", Equal(&proxy.NodeUpdate{Removed: []string{"ns/p1"}, Dropped: []string{identityA}})))

	// After a loss, what is held is said with its versions, and the node again.
	one.end <- status.Error(codes.Unknown, "lost")
	two := <-s.streams
	request := <-two.requests
	g.Expect(request.GetTypeUrl()).To(Equal(addressURL))
	g.Expect(request.GetNode().GetId()).NotTo(BeEmpty())
	g.Expect(request.GetInitialResourceVersions()).To(Equal(map[string]string{service80: "v1", "Kubernetes//Pod/ns/p3": "v3"}))
	g.Expect((<-two.requests).GetTypeUrl()).To(Equal(authorizationURL))
	g.Eventually(func() int64 { return store.Counters().Reconnects.Load() }).Should(BeEquivalentTo(1))
	g.Expect(d.ended[0].Backoff).To(Equal(patient * initialBackoff))
}

// endpointsIn returns the endpoints of port 80 of the service s.
func endpointsIn(u convergence.Update) convergence.Endpoints {
	for _, r := range u.Set {
		if r.Key == Endpoints("ns", "s.ns.svc.cluster.local", 80) {
			return r.Content.Endpoints
		}
	}
	return nil
}

func TestBackoff(t *testing.T) {
	type ended struct {
		end      proxy.StreamEnded
		answered bool
	}
	broken := status.Error(codes.Unavailable, "connection reset")
	// once returns the ends of two streams: an attempt that failed, after which the proxy waits 20 ms, and a
	// stream that was served and ended with a status. The wait after it is twice as long, or the least.
	once := func(code codes.Code, message string) []ended {
		return []ended{{end: proxy.StreamEnded{Err: broken}}, {end: proxy.StreamEnded{Err: status.Error(code, message), Responses: 3}, answered: true}}
	}
	least, twice := []time.Duration{20 * time.Millisecond, 10 * time.Millisecond}, []time.Duration{20 * time.Millisecond, 40 * time.Millisecond}
	for name, c := range map[string]struct {
		ends []ended
		want []time.Duration
	}{
		"no connection": {
			[]ended{{end: proxy.StreamEnded{Err: broken}}, {end: proxy.StreamEnded{Err: broken}}, {end: proxy.StreamEnded{Err: broken}}},
			[]time.Duration{20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond},
		},
		"refused before any response": {
			[]ended{{proxy.StreamEnded{Err: status.Error(codes.Unknown, "too many")}, true}, {proxy.StreamEnded{Err: status.Error(codes.Unavailable, "transport is closing")}, true}},
			twice,
		},
		"a connection that broke": {
			[]ended{{end: proxy.StreamEnded{Err: broken}}, {end: proxy.StreamEnded{Err: broken, Responses: 1}}, {end: proxy.StreamEnded{Err: broken}}},
			[]time.Duration{20 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond},
		},
		"ended by the server without an error": {
			[]ended{{proxy.StreamEnded{Responses: 3}, true}, {end: proxy.StreamEnded{Err: broken}}},
			[]time.Duration{0, 20 * time.Millisecond},
		},
		"ended by the server without an error or a response": {
			[]ended{{end: proxy.StreamEnded{Err: broken}}, {proxy.StreamEnded{}, true}, {end: proxy.StreamEnded{Err: broken}}},
			[]time.Duration{20 * time.Millisecond, 0, 20 * time.Millisecond},
		},
		"unknown":             {once(codes.Unknown, "x"), least},
		"canceled":            {once(codes.Canceled, "x"), least},
		"deadline exceeded":   {once(codes.DeadlineExceeded, "x"), least},
		"transport closing":   {once(codes.Unavailable, "the transport is closing"), least},
		"going away":          {once(codes.Unavailable, "error reading, received prior goaway: NO_ERROR"), least},
		"unavailable":         {once(codes.Unavailable, "overloaded"), twice},
		"unauthenticated":     {once(codes.Unauthenticated, "expired"), twice},
		"resource exhausted":  {once(codes.ResourceExhausted, "x"), twice},
		"internal":            {once(codes.Internal, "transport is closing"), twice},
		"of another protocol": {[]ended{{end: proxy.StreamEnded{Err: broken}}, {end: proxy.StreamEnded{Err: status.Error(codes.Internal, "x"), Responses: 1}}}, twice},
	} {
		t.Run(name, func(t *testing.T) {
			var b backoff
			var waits []time.Duration
			for _, one := range c.ends {
				waits = append(waits, b.next(one.end, one.answered))
			}
			NewWithT(t).Expect(waits).To(Equal(c.want))
		})
	}
	t.Run("at most", func(t *testing.T) {
		var b backoff
		for range 20 {
			b.next(proxy.StreamEnded{Err: broken}, false)
		}
		NewWithT(t).Expect(b.next(proxy.StreamEnded{Err: broken}, false)).To(Equal(maxBackoff))
	})
}

func TestRetries(t *testing.T) {
	g := NewWithT(t)
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 8: 128 * time.Second, 9: longestWait, 100: longestWait} {
		g.Expect(retryAfter(failures)).To(BeNumerically("~", want, want/5), "after %d failures", failures)
	}
}

// A certificate whose middle has passed when it is issued is renewed without end, and keeps
// no other one waiting.
func TestShortLivedCertificates(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t)
	z, d, _ := start(t, s.address, &issuer{Authority: credential.NewAuthority(10 * time.Second)})
	one := <-s.streams
	one.answer(addressURL, "1", map[string]message{
		"Kubernetes//Pod/ns/p1": aPod("p1", "a", "one", "10.0.0.1", 0), "Kubernetes//Pod/ns/p2": aPod("p2", "b", "one", "10.0.0.2", 0),
	})
	times := func(identity string) func() int {
		return func() (n int) {
			for _, one := range d.certified() {
				if one == identity {
					n++
				}
			}
			return n
		}
	}
	g.Eventually(times(identityA)).Should(BeNumerically(">", 2))
	z.Renew()
	a, b := times(identityA)(), times(identityB)()
	g.Eventually(times(identityA)).Should(BeNumerically(">", a+2))
	g.Eventually(times(identityB)).Should(BeNumerically(">", b+2))
}

// A service and what it loses.
func TestHeld(t *testing.T) {
	g := NewWithT(t)
	h := newHeld("one")
	set := func(name string, m message) convergence.Resource {
		s := credential.Must(scanAddress(m))
		if s.Name != "" {
			g.Expect(s.Name).To(Equal(name))
		}
		return convergence.Resource{Key: convergence.Key{Type: Address, Name: name}, Content: s.Content}
	}
	take := func(u convergence.Update) (convergence.Update, *proxy.NodeUpdate) {
		n := h.take(&u)
		return u, n
	}

	// A workload may come before its service.
	u, node := take(convergence.Update{Set: []convergence.Resource{set("Kubernetes//Pod/ns/p", aPod("p", "a", "one", "10.0.0.1", 0))}})
	g.Expect(u.Set).To(HaveLen(1))
	g.Expect(node.Held).To(HaveLen(1))
	u, _ = take(convergence.Update{Set: []convergence.Resource{set(service80, aService())}})
	g.Expect(endpointsIn(u)).To(HaveLen(1))

	// One that replaces another of its identity in the same response keeps the certificate.
	u, node = take(convergence.Update{
		Set:     []convergence.Resource{set("Kubernetes//Pod/ns/q", aPod("q", "a", "one", "10.0.0.2", 0))},
		Removed: []convergence.Key{{Type: Address, Name: "Kubernetes//Pod/ns/p"}},
	})
	g.Expect(node.Dropped).To(BeEmpty())
	g.Expect(node.Removed).To(Equal([]string{"ns/p"}))
	g.Expect(endpointsIn(u)).To(HaveKey(netip.MustParseAddrPort("10.0.0.2:8080")))

	// The endpoints go with the service.
	u, node = take(convergence.Update{Removed: []convergence.Key{{Type: Address, Name: service80}}})
	g.Expect(u.Removed).To(ContainElement(Endpoints("ns", "s.ns.svc.cluster.local", 80)))
	g.Expect(node).To(BeNil())

	// A workload without a service.
	w := message{}.bytes(1, message{}.text(20, "Kubernetes//Pod/istio-system/z").text(1, "z").text(2, "istio-system").bytes(3, []byte{10, 0, 0, 9}))
	u, _ = take(convergence.Update{Set: []convergence.Resource{set("Kubernetes//Pod/istio-system/z", w)}})
	g.Expect(u.Set[1].Key).To(Equal(Serviceless))
	g.Expect(u.Set[1].Content.Endpoints).To(Equal(convergence.Endpoints{netip.MustParseAddrPort("10.0.0.9:0"): convergence.Healthy}))
}

func TestScanRefusesWhatIsNoMessage(t *testing.T) {
	for _, b := range [][]byte{{0xff}, message{}.bytes(1, []byte{0xff}), message{}.bytes(1, message{}.bytes(3, []byte{1, 2, 3})), message{}.bytes(2, []byte{0x2a, 5})} {
		if _, err := scanAddress(b); err == nil {
			t.Errorf("%x was read", b)
		}
	}
	if _, err := scanAuthorization([]byte{0x0a, 9}); !errors.Is(err, errWire) {
		t.Errorf("reading a broken Authorization: %v", err)
	}
}

func FuzzScanAddress(f *testing.F) {
	f.Add([]byte(aService()))
	f.Add([]byte(aPod("p", "a", "one", "10.0.0.1", 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := scanAddress(b)
		if err == nil && len(b) > 0 && s.Content != nil && s.Content.Detail == nil {
			t.Errorf("%x was read as nothing", b)
		}
	})
}

// First requests are made one after the other, and before others. All that are under way are
// no more than atOnce.
func TestRequestsAtOnce(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	var c certificates
	c.prepare(&Ztunnel{})
	for _, identity := range []string{"new 1", "new 2", "forgotten"} {
		c.queue = append(c.queue, &certificate{identity: identity, forgotten: identity == "forgotten"})
	}
	for i := range 10 {
		c.of[string(rune('a'+i))] = &certificate{identity: string(rune('a' + i)), requested: true, due: now.Add(time.Duration(i) * time.Second)}
	}
	next := func(at time.Time) string {
		one, _ := c.next(at)
		if one == nil {
			return ""
		}
		return one.identity
	}
	g.Expect(next(now)).To(Equal("new 1"))
	g.Expect(next(now)).To(Equal("a"), "the next new one waits")
	_, wait := c.next(now)
	g.Expect(wait).To(Equal(time.Second), "until b is due")
	for _, identity := range []string{"b", "c", "d", "e", "f", "g"} {
		g.Expect(next(now.Add(time.Minute))).To(Equal(identity))
	}
	g.Expect(next(now.Add(time.Minute))).To(BeEmpty(), "so many are under way")
	c.first, c.running = nil, c.running-1
	g.Expect(next(now.Add(time.Minute))).To(Equal("new 2"))
	c.first, c.running = nil, c.running-1
	g.Expect(next(now.Add(time.Minute))).To(Equal("h"))
}
