package authority

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	securityv1 "istio.io/api/security/v1alpha1"

	"scaler.mesh/scaler/internal/istioagent"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/proxy"

	"scaler.mesh/scaler/test/credential"
	"scaler.mesh/scaler/test/leak"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	leak.Main(m)
}

// service is a certificate authority that notes what it is asked and from where.
type service struct {
	securityv1.UnimplementedIstioCertificateServiceServer
	answer func(context.Context, *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error)

	address string
	root    []byte
	open    *listener
	secured grpc.ServerOption // with its certificate

	mu      sync.Mutex
	peers   []string
	headers metadata.MD // of the last request
	asked   *securityv1.IstioCertificateRequest
}

func (s *service) CreateCertificate(ctx context.Context, r *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
	from, _ := peer.FromContext(ctx)
	s.mu.Lock()
	s.peers = append(s.peers, from.Addr.String())
	s.headers, _ = metadata.FromIncomingContext(ctx)
	s.asked = r
	s.mu.Unlock()
	return s.answer(ctx, r)
}

// listener keeps what it accepts, so that it can be cut off.
type listener struct {
	net.Listener
	mu       sync.Mutex
	accepted []net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.accepted = append(l.accepted, conn)
	}
	return conn, err
}

func (l *listener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.accepted {
		_ = conn.Close()
	}
}

// connections returns the different connections over which requests came.
func (s *service) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.Compact(slices.Clone(s.peers)))
}

// serve starts an authority that signs everything.
func serve(t *testing.T) *service {
	t.Helper()
	s := listen(t)
	server := s.server(s)
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.open) }()
	t.Cleanup(func() {
		server.Stop()
		// The second is that of a server which is stopped before it begins.
		NewWithT(t).Expect(<-done).To(Or(Succeed(), MatchError(grpc.ErrServerStopped)))
	})
	return s
}

// listen makes an authority that signs everything and that is not served yet.
func listen(t *testing.T) *service {
	t.Helper()
	g := NewWithT(t)
	a := credential.NewAuthority(time.Hour)
	bound, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	return &service{
		open:    &listener{Listener: bound},
		address: bound.Addr().String(),
		root:    a.RootPEM,
		secured: grpc.Creds(credentials.NewServerTLSFromCert(new(a.Pair("authority")))),
		answer: func(context.Context, *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
			return &securityv1.IstioCertificateResponse{CertChain: []string{"leaf", "root"}}, nil
		},
	}
}

// server returns a gRPC server that answers with answers.
func (s *service) server(answers securityv1.IstioCertificateServiceServer) *grpc.Server {
	server := grpc.NewServer(s.secured)
	securityv1.RegisterIstioCertificateServiceServer(server, answers)
	return server
}

// refusing answers every request with an error.
func refusing(code codes.Code, why string) func(context.Context, *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
	return func(context.Context, *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
		return nil, status.Error(code, why)
	}
}

func (s *service) client(t *testing.T) *Client {
	t.Helper()
	c, err := New(proxy.Spec{
		Address: s.address, ServerName: "authority", RootPEM: s.root,
		Headers: map[string]string{"ClusterID": "one"}, CertificateLifetime: time.Hour,
	}, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestIssueOverOneConnection(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	c := s.client(t)
	for range 3 {
		before := time.Now()
		issued, err := c.Issue(t.Context(), "secret", []byte("csr"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(issued.Chain).To(Equal([][]byte{[]byte("leaf"), []byte("root")}))
		g.Expect(issued.Sent).To(BeTemporally(">=", before))
		g.Expect(issued.Received).To(And(BeTemporally(">", issued.Sent), BeTemporally("<=", time.Now())))
	}
	g.Expect(s.peers).To(HaveLen(3))
	g.Expect(s.connections()).To(Equal(1))
	g.Expect(s.headers.Get("authorization")).To(Equal([]string{"Bearer secret"}))
	g.Expect(s.headers.Get("clusterid")).To(Equal([]string{"one"}))
	g.Expect(s.asked.GetCsr()).To(Equal("csr"))
	g.Expect(s.asked.GetValidityDuration()).To(BeEquivalentTo(3600))
}

func TestFailureEndsTheConnection(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	c := s.client(t)
	signing := s.answer
	s.answer = refusing(codes.Unauthenticated, "who are you")
	issued, err := c.Issue(t.Context(), "", nil)
	g.Expect(status.Code(err)).To(Equal(codes.Unauthenticated))
	g.Expect(err).To(MatchError(ContainSubstring("who are you")))
	g.Expect(issued.Sent).NotTo(BeZero(), "it was sent")
	s.answer = signing
	_, err = c.Issue(t.Context(), "", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.connections()).To(Equal(2))
}

func TestFailuresThatMayPassKeepTheConnectionForARound(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	c := s.client(t)
	s.answer = refusing(codes.Internal, "not ready")
	for range istioagent.TriesInRound {
		_, err := c.Issue(t.Context(), "", nil)
		g.Expect(status.Code(err)).To(Equal(codes.Internal))
	}
	g.Expect(s.connections()).To(Equal(1))
	_, err := c.Issue(t.Context(), "", nil)
	g.Expect(status.Code(err)).To(Equal(codes.Internal))
	g.Expect(s.connections()).To(Equal(2))
}

// leaving is a service for one connection, which it begins to end when a request has come over it.
type leaving struct {
	*service
	server *grpc.Server
}

func (l *leaving) CreateCertificate(ctx context.Context, r *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
	go l.server.GracefulStop()
	return l.service.CreateCertificate(ctx, r)
}

// accepted is a listener of the connections in a channel.
type accepted struct {
	net.Listener
	conns <-chan net.Conn
}

func (l accepted) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l accepted) Close() error { return nil }

// serveLeaving starts an authority that ends each connection, as a server does with one of a certain age, but
// never before it has seen a request.
func serveLeaving(t *testing.T) *service {
	t.Helper()
	s := listen(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := s.open.Accept()
			if err != nil {
				return
			}
			conns := make(chan net.Conn, 1)
			conns <- conn
			close(conns)
			one := &leaving{service: s}
			one.server = s.server(one)
			serving.Go(func() {
				_ = one.server.Serve(accepted{s.open, conns}) // the error is that there is no second one
				<-t.Context().Done()
				one.server.Stop()
			})
		}
	})
	t.Cleanup(func() {
		_ = s.open.Close()
		serving.Wait()
	})
	return s
}

func TestServerThatEndsItsConnections(t *testing.T) {
	g := NewWithT(t)
	s := serveLeaving(t)
	c := s.client(t)
	sent := 0
	for s.connections() < 10 {
		issued, err := c.Issue(t.Context(), "", nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(issued.Sent).NotTo(BeZero())
		sent++
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.Expect(s.peers).To(HaveLen(sent), "each is counted where it was seen to, and once")
}

func TestAnswerWithoutChain(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	s.answer = func(context.Context, *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
		return &securityv1.IstioCertificateResponse{}, nil
	}
	_, err := s.client(t).Issue(t.Context(), "", nil)
	g.Expect(err).To(MatchError(ContainSubstring("without a chain")))
}

func TestConnectionThatEndedIsReplaced(t *testing.T) {
	g := NewWithT(t)
	first := serve(t)
	c := first.client(t)
	_, err := c.Issue(t.Context(), "", nil)
	g.Expect(err).NotTo(HaveOccurred())
	first.open.cut()
	g.Eventually(c.link.over).Should(BeTrue())
	_, err = c.Issue(t.Context(), "", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.connections()).To(Equal(2))
}

func TestIssueEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	c := s.client(t)
	asked := make(chan struct{})
	s.answer = func(ctx context.Context, _ *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-asked
		cancel()
	}()
	issued, err := c.Issue(ctx, "", nil)
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(issued.Sent).NotTo(BeZero())
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	c := s.client(t)
	asked := make(chan struct{})
	s.answer = func(ctx context.Context, _ *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	go func() {
		<-asked
		_ = c.Close()
	}()
	_, err := c.Issue(t.Context(), "", nil)
	g.Expect(err).To(HaveOccurred())
	_, err = c.Issue(t.Context(), "", nil)
	g.Expect(err).To(MatchError(errClosed))
}

func TestNobodyListens(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	var err error
	s.address, err = process.FreeAddress()
	g.Expect(err).NotTo(HaveOccurred())
	c := s.client(t)
	before := time.Now()
	issued, err := c.Issue(t.Context(), "", nil)
	g.Expect(status.Code(err)).To(Equal(codes.Unavailable))
	g.Expect(issued.Sent).To(BeZero(), "nothing was sent")
	due := c.redial.next
	g.Expect(due).To(And(BeTemporally(">", before), BeTemporally("<", time.Now().Add(1300*time.Millisecond))))
	due = due.Add(time.Hour) // or it may have passed before the next try
	c.redial.next = due
	for range istioagent.TriesInRound - 2 { // at once, and without dialling
		_, again := c.Issue(t.Context(), "", nil)
		g.Expect(again).To(MatchError(err.Error()))
		g.Expect(c.redial.next).To(Equal(due))
	}
	_, err = c.Issue(t.Context(), "", nil)
	g.Expect(err).To(HaveOccurred())
	g.Expect(c.redial.next).To(BeZero(), "the agent takes a new client for another round")
}

func TestRootsWithoutCertificate(t *testing.T) {
	_, err := New(proxy.Spec{RootPEM: []byte("none")}, nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no certificate in it")))
}
