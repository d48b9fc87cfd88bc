package linkerdproxy

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/linkerd/linkerd2-proxy-api/go/destination"
	"github.com/linkerd/linkerd2-proxy-api/go/identity"
	apinet "github.com/linkerd/linkerd2-proxy-api/go/net"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
	"scaler.mesh/scaler/test/credential"
	"scaler.mesh/scaler/test/leak"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	leak.Main(m)
}

// patient makes a proxy wait so long for a connection that only an error of its own ends a dial.
const patient = 30

const (
	contextToken = `{"nodeName":"node-1","ns":"m"}`
	account      = "a.m.serviceaccount.identity.linkerd.cluster.local"
)

// server is a Destination and an Identity whose answers the test states.
type server struct {
	destination.UnimplementedDestinationServer
	identity.UnimplementedIdentityServer
	*credential.Authority
	address string

	mu       sync.Mutex
	lookups  []string                         // method and path of each
	services map[string]string                // names by the addresses that are Services'
	updates  map[string][]*destination.Update // by path, sent to each stream that there will be
	streams  map[string][]grpc.ServerStream   // that are open, by path
	stop     chan struct{}                    // closed to end all streams
	refuse   bool                             // the next certificate
	token    string
}

func startServer(t *testing.T) *server {
	listener := credential.Must(net.Listen("tcp", "127.0.0.1:0"))
	s := &server{
		Authority: credential.NewAuthority(time.Hour), address: listener.Addr().String(),
		services: map[string]string{}, updates: map[string][]*destination.Update{}, streams: map[string][]grpc.ServerStream{}, stop: make(chan struct{}),
	}
	g := grpc.NewServer()
	destination.RegisterDestinationServer(g, s)
	identity.RegisterIdentityServer(g, s)
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return s
}

func (s *server) GetProfile(q *destination.GetDestination, stream destination.Destination_GetProfileServer) error {
	if q.GetContextToken() != contextToken {
		return status.Errorf(codes.InvalidArgument, "context %s", q.GetContextToken())
	}
	host, _, _ := net.SplitHostPort(q.GetPath())
	s.mu.Lock()
	s.lookups = append(s.lookups, "GetProfile "+q.GetPath())
	name := s.services[host]
	if _, err := netip.ParseAddr(host); err != nil {
		name = host
	}
	err := stream.Send(&destination.DestinationProfile{FullyQualifiedName: name})
	s.streams[q.GetPath()] = append(s.streams[q.GetPath()], stream)
	stop := s.stop
	s.mu.Unlock()
	return wait(stream.Context(), stop, err)
}

func (s *server) Get(q *destination.GetDestination, stream destination.Destination_GetServer) error {
	s.mu.Lock()
	s.lookups = append(s.lookups, "Get "+q.GetPath())
	var errs []error
	for _, u := range s.updates[q.GetPath()] {
		errs = append(errs, stream.Send(u))
	}
	s.streams[q.GetPath()] = append(s.streams[q.GetPath()], stream)
	stop := s.stop
	s.mu.Unlock()
	return wait(stream.Context(), stop, errors.Join(errs...))
}

func wait(ctx context.Context, stop chan struct{}, err error) error {
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-stop:
	}
	return nil
}

// Certify signs what Identity would sign.
func (s *server) Certify(_ context.Context, q *identity.CertifyRequest) (*identity.CertifyResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse {
		s.refuse = false
		return nil, status.Error(codes.Internal, "not now")
	}
	csr, err := x509.ParseCertificateRequest(q.GetCertificateSigningRequest())
	if err != nil {
		return nil, err
	}
	if !slices.Equal(csr.DNSNames, []string{q.GetIdentity()}) || csr.Subject.CommonName != q.GetIdentity() || len(csr.URIs) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "a request of %v, %s", csr.DNSNames, csr.Subject)
	}
	s.token = string(q.GetToken())
	return &identity.CertifyResponse{LeafCertificate: s.Sign(&x509.Certificate{DNSNames: csr.DNSNames}, csr.PublicKey)}, nil
}

// endStreams ends all streams that are open.
func (s *server) endStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.stop)
	s.stop = make(chan struct{})
}

// send sends a message to the last stream of a path, once there is one.
func send(g *WithT, s *server, path string, m any) {
	g.Eventually(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		open := s.streams[path]
		return len(open) > 0 && open[len(open)-1].SendMsg(m) == nil
	}).Should(BeTrue())
}

func (s *server) looked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.lookups))
}

func addr(ip string, port uint32) *apinet.TcpAddress {
	four := netip.MustParseAddr(ip).As4()
	n := uint32(four[0])<<24 | uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
	return &apinet.TcpAddress{Ip: &apinet.IPAddress{Ip: &apinet.IPAddress_Ipv4{Ipv4: n}}, Port: port}
}

func add(ips ...string) *destination.Update {
	var set destination.WeightedAddrSet
	for _, ip := range ips {
		set.Addrs = append(set.Addrs, &destination.WeightedAddr{Addr: addr(ip, 8080), Weight: 10000})
	}
	return &destination.Update{Update: &destination.Update_Add{Add: &set}}
}

func remove(ip string) *destination.Update {
	return &destination.Update{Update: &destination.Update_Remove{Remove: &destination.AddrSet{Addrs: []*apinet.TcpAddress{addr(ip, 8080)}}}}
}

func none() *destination.Update {
	return &destination.Update{Update: &destination.Update_NoEndpoints{NoEndpoints: &destination.NoEndpoints{Exists: true}}}
}

// events are the events that a proxy reported.
type events struct {
	mu           sync.Mutex
	opened       []proxy.StreamOpened
	updates      []proxy.Update
	ended        []proxy.StreamEnded
	certificates []proxy.Certificate
	tokens       int
}

func note[E any](e *events, all *[]E, one E) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*all = append(*all, one)
}

func (e *events) TokenFetched(string, proxy.TokenFetched) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tokens++
}
func (e *events) StreamOpened(_ string, o proxy.StreamOpened) { note(e, &e.opened, o) }
func (e *events) Updated(_ string, u proxy.Update)            { note(e, &e.updates, u) }
func (e *events) StreamEnded(_ string, x proxy.StreamEnded)   { note(e, &e.ended, x) }
func (e *events) Certified(_ string, c proxy.Certificate)     { note(e, &e.certificates, c) }

func of[E any](e *events, all *[]E) []E {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(*all)
}

// complete reports whether everything is answered.
func (e *events) complete() bool {
	all := of(e, &e.updates)
	return len(all) > 0 && all[len(all)-1].Complete
}

func start(t *testing.T, s *server, change func(*proxy.Spec, *Services)) (*Proxy, *events, *xdsprobe.Store) {
	e, store := &events{}, xdsprobe.NewStoreOf(credential.Must(xdsprobe.NewTypes(Types())))
	spec := proxy.Spec{
		ID: "m/a-1", Address: s.address, Authority: s.address, RootPEM: s.RootPEM, Identity: account,
		Metadata: map[string]any{"ns": "m", "nodeName": "node-1"},
		Targets:  []string{"10.96.0.1:80"}, Inbound: []string{"a.m.svc.cluster.local:80"},
	}
	services := Services{Counters: store.Counters(), Observer: e}
	change(&spec, &services)
	p := credential.Must(New(spec, services))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p, e, store
}

// heldBy returns the endpoints that a proxy holds of b.
func heldBy(p *Proxy) func() convergence.Endpoints {
	return func() convergence.Endpoints {
		for _, r := range p.Held() {
			if r.Key == (convergence.Key{Type: Addresses, Name: "b.n.svc.cluster.local:80"}) {
				return r.Content.Endpoints
			}
		}
		return nil
	}
}

func endpoints(ips ...string) convergence.Endpoints {
	all := convergence.Endpoints{}
	for _, ip := range ips {
		all[netip.AddrPortFrom(netip.MustParseAddr(ip), 8080)] = convergence.Healthy
	}
	return all
}

const path = "b.n.svc.cluster.local:80"

func TestLookups(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t)
	s.services["10.96.0.1"] = "b.n.svc.cluster.local"
	s.updates[path] = []*destination.Update{add("10.0.0.1", "10.0.0.2")}
	p, e, store := start(t, s, func(spec *proxy.Spec, _ *Services) { spec.Slowdown = patient })
	g.Eventually(e.complete).Should(BeTrue())
	g.Expect(s.looked()).To(Equal([]string{"Get " + path, "GetProfile 10.96.0.1:80", "GetProfile a.m.svc.cluster.local:80"}))
	var keys []string
	for _, r := range p.Held() {
		keys = append(keys, r.String())
	}
	g.Expect(keys).To(Equal([]string{"Addresses " + path, "Profile a.m.svc.cluster.local:80", "Profile " + path}))
	g.Expect(heldBy(p)()).To(Equal(endpoints("10.0.0.1", "10.0.0.2")))

	send(g, s, path, add("10.0.0.3"))
	send(g, s, path, remove("10.0.0.1"))
	g.Eventually(heldBy(p)).Should(Equal(endpoints("10.0.0.2", "10.0.0.3")))
	wasted := store.Counters().Now().Wasted
	send(g, s, path, remove("10.0.0.9"))
	g.Eventually(func() int64 { return store.Counters().Now().Wasted }).Should(Equal(wasted + 1))
	send(g, s, path, none())
	g.Eventually(heldBy(p)).Should(BeEmpty())

	routes := []*destination.Route{{MetricsLabels: map[string]string{"route": xdsprobe.Marker("x1")}}}
	send(g, s, "10.96.0.1:80", &destination.DestinationProfile{FullyQualifiedName: "b.n.svc.cluster.local", Routes: routes})
	g.Eventually(func() []string {
		all := of(e, &e.updates)
		return all[len(all)-1].Set[0].Content.Markers
	}).Should(Equal([]string{xdsprobe.Marker("x1")}))

	counts := store.Counters().Now()
	g.Expect(counts.Subscribed()[0].Responses).To(BeNumerically("==", 3), "profiles")
	g.Expect(counts.Subscribed()[1].Responses).To(BeNumerically("==", 5), "addresses")
	g.Expect(counts.Connected).To(BeNumerically("==", 1))
	var bytes int64
	for _, u := range of(e, &e.updates) {
		bytes += int64(u.Bytes)
	}
	_, received := counts.AllResponses()
	g.Expect(received).To(Equal(bytes))
	g.Expect(p.Holdings()[Profile].Resources).To(Equal(2))
	opened := of(e, &e.opened)
	g.Expect(opened).To(HaveLen(1))
	g.Expect(opened[0].Server).To(Equal(s.address))
}

// A stream that ends, a connection that is reset and a server that is not there yet are followed by another
// attempt, which resets what a stream stated.
func TestReconnects(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t)
	s.services["10.96.0.1"] = "b.n.svc.cluster.local"
	s.updates[path] = []*destination.Update{add("10.0.0.1")}
	p, e, store := start(t, s, func(*proxy.Spec, *Services) {})
	g.Eventually(e.complete).Should(BeTrue())
	s.mu.Lock()
	s.updates[path] = []*destination.Update{add("10.0.0.2")}
	s.mu.Unlock()
	for n, cut := range []func(){s.endStreams, p.Reset} {
		before := len(of(e, &e.updates)) // the last of which is that of a proxy that is complete
		cut()
		g.Eventually(func() int { return len(of(e, &e.opened)) }).Should(Equal(n + 2))
		g.Eventually(func() bool { return len(of(e, &e.updates)) > before && e.complete() }).Should(BeTrue())
		g.Expect(heldBy(p)()).To(Equal(endpoints("10.0.0.2")))
	}
	ended := slices.DeleteFunc(of(e, &e.ended), func(one proxy.StreamEnded) bool { return one.Class == proxy.Unreachable })
	g.Expect(ended).To(HaveLen(2))
	for _, one := range ended {
		g.Expect(one.Class).To(Equal(proxy.Lost))
		g.Expect(one.Backoff).To(And(BeNumerically(">=", firstBackoff), BeNumerically("<=", longestBackoff)))
	}
	g.Expect(ended[1].Err).To(MatchError(errReset))
	g.Expect(store.Counters().Now().Reconnects).To(BeNumerically("==", 2))
}

func TestUnreachable(t *testing.T) {
	g := NewWithT(t)
	address := credential.Must(process.FreeAddress())
	_, e, _ := start(t, startServer(t), func(spec *proxy.Spec, _ *Services) { spec.Address = address })
	g.Eventually(func() int { return len(of(e, &e.ended)) }).Should(BeNumerically(">", 1))
	first := of(e, &e.ended)[0]
	g.Expect(first.Class).To(Equal(proxy.Unreachable))
	g.Expect(first.Err).To(MatchError(ContainSubstring("connecting to " + address)))
}

// An address that is no Service's yet is looked up again.
func TestUnknownAddress(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t)
	_, e, _ := start(t, s, func(spec *proxy.Spec, _ *Services) { spec.Inbound = nil })
	// More than once where the test stands still for idleAge.
	g.Eventually(s.looked).Should(And(Not(BeEmpty()), HaveEach("GetProfile 10.96.0.1:80")))
	s.mu.Lock()
	s.services["10.96.0.1"] = "b.n.svc.cluster.local"
	s.updates[path] = []*destination.Update{none()}
	s.mu.Unlock()
	g.Eventually(e.complete).Should(BeTrue())
}

func TestCertificates(t *testing.T) {
	g := NewWithT(t)
	s := startServer(t)
	tokens := &credential.Tokens{}
	p, e, store := start(t, s, func(spec *proxy.Spec, services *Services) { spec.Slowdown, services.Token = patient, tokens })
	certificates := func() []proxy.Certificate { return of(e, &e.certificates) }
	g.Eventually(certificates).Should(HaveLen(1))
	first := certificates()[0]
	g.Expect(first.Err).NotTo(HaveOccurred())
	g.Expect(first.Key).To(BeNumerically(">", 0))
	g.Expect(first.Verified).To(BeTemporally(">=", first.Sent))
	g.Expect(first.Expires).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))

	s.mu.Lock()
	s.refuse = true
	s.mu.Unlock()
	p.Renew()
	g.Eventually(certificates).Should(HaveLen(2))
	g.Expect(certificates()[1].Err).To(MatchError(ContainSubstring("not now")))
	p.Renew()
	g.Eventually(certificates).Should(HaveLen(3))
	g.Expect(certificates()[2].Err).NotTo(HaveOccurred())
	g.Expect(certificates()[2].Attempt).To(Equal(2))
	counts := store.Counters().Now()
	g.Expect([]int64{counts.CertificateRequests, counts.Certificates}).To(Equal([]int64{3, 2}))
	e.mu.Lock()
	defer e.mu.Unlock()
	g.Expect(e.tokens).To(Equal(1), "the kubelet's file has the token")
}

func TestRefresh(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		-time.Hour: minRefresh, 0: minRefresh, time.Second: minRefresh, 24 * time.Hour: 24 * time.Hour * 7 / 10, 48 * 24 * time.Hour: maxRefresh,
	} {
		if got := refresh(left); got != want {
			t.Errorf("with %v left the next request is after %v, want %v", left, got, want)
		}
	}
}

func TestNew(t *testing.T) {
	tokens := Services{Token: &credential.Tokens{}}
	for name, tc := range map[string]struct {
		spec     proxy.Spec
		services Services
	}{
		"no address":   {proxy.Spec{ID: "x"}, Services{}},
		"no roots":     {proxy.Spec{ID: "x", Address: "a:1", Authority: "a:1"}, tokens},
		"no authority": {proxy.Spec{ID: "x", Address: "a:1", RootPEM: credential.NewAuthority(time.Hour).RootPEM}, tokens},
	} {
		if _, err := New(tc.spec, tc.services); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(proxy.Spec{ID: "x", Address: "a:1"}, Services{}); err != nil {
		t.Errorf("without certificates: %v", err)
	}
	if block, _ := pem.Decode(encode([]byte{1})); block == nil || block.Type != "CERTIFICATE" {
		t.Error("a certificate is not encoded as one")
	}
}
