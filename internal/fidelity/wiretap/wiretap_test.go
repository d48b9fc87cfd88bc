package wiretap

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	securityv1 "istio.io/api/security/v1alpha1"

	"scaler.mesh/scaler/test/credential"
)

func TestWiretap(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second) // each waits for what must come
	RunSpecs(t, "wiretap")
}

// plane answers each request of the delta variant with one resource, and all
// others with an error.
type plane struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	headers chan metadata.MD
}

func (p plane) DeltaAggregatedResources(s grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	headers, _ := metadata.FromIncomingContext(s.Context())
	p.headers <- headers
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		if r.GetResponseNonce() == "end" {
			return status.Error(codes.ResourceExhausted, "enough")
		}
		err = s.Send(&discoveryv3.DeltaDiscoveryResponse{
			TypeUrl: r.GetTypeUrl(), Nonce: "1",
			Resources: []*discoveryv3.Resource{{Name: "a", Version: "v", Resource: &anypb.Any{TypeUrl: r.GetTypeUrl(), Value: []byte("12345")}}},
		})
		if err != nil {
			return err
		}
	}
}

// signer refuses every request for a certificate.
type signer struct {
	securityv1.UnimplementedIstioCertificateServiceServer
}

func (signer) CreateCertificate(context.Context, *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
	return nil, status.Error(codes.PermissionDenied, "no")
}

var _ = Describe("a wiretap", func() {
	var (
		also   net.Listener
		signs  securityv1.IstioCertificateServiceClient
		served plane
		tap    *Wiretap
		client discoveryv3.AggregatedDiscoveryServiceClient
	)
	BeforeEach(func() {
		before := goleak.IgnoreCurrent()
		DeferCleanup(func() { Eventually(func() error { return goleak.Find(before) }).Should(Succeed()) })
		authority := credential.NewAuthority(time.Hour)
		shown := authority.Pair("localhost")
		served = plane{headers: make(chan metadata.MD, 8)}
		server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&shown)))
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, served)
		securityv1.RegisterIstioCertificateServiceServer(server, signer{})
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		go func() { _ = server.Serve(listener) }()
		DeferCleanup(server.Stop)

		also, err = net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		tap, err = Listen(Options{Upstream: listener.Addr().String(), ServerName: "localhost", RootPEM: authority.RootPEM, Certificate: shown, Also: also})
		Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- tap.Run(ctx) }()
		DeferCleanup(func() {
			cancel()
			Eventually(done).Should(Receive(BeNil()))
		})
		connect := func(address string) *grpc.ClientConn {
			conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"})))
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(conn.Close)
			return conn
		}
		client = discoveryv3.NewAggregatedDiscoveryServiceClient(connect(tap.Address()))
		signs = securityv1.NewIstioCertificateServiceClient(connect(also.Addr().String()))
	})

	It("passes a stream on and writes it down", func(ctx SpecContext) {
		stream, err := client.DeltaAggregatedResources(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer t", "clusterid", "c"))
		Expect(err).NotTo(HaveOccurred())
		Expect(stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cdsURL, Node: &corev3.Node{
			Id: "one", Cluster: "mesh", UserAgentName: "envoy",
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"NAME": structpb.NewStringValue("one")}},
		}})).To(Succeed())
		answer, err := stream.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.GetResources()).To(HaveLen(1))
		var headers metadata.MD
		Expect(served.headers).To(Receive(&headers))
		Expect(headers.Get("authorization")).To(Equal([]string{"Bearer t"}))
		Expect(headers.Get("clusterid")).To(Equal([]string{"c"}))

		changed := tap.Changed()
		Expect(stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cdsURL, ResponseNonce: "end"})).To(Succeed())
		_, err = stream.Recv()
		Expect(status.Code(err)).To(Equal(codes.ResourceExhausted))
		Expect(status.Convert(err).Message()).To(Equal("enough"))
		Eventually(changed).Should(BeClosed())

		Eventually(func() bool { return tap.Streams("one")[0].Ended }).Should(BeTrue())
		Expect(tap.Streams("other")).To(BeEmpty())
		s := tap.Streams("one")[0]
		Expect(s.Node).To(Equal(&Node{ID: "one", Cluster: "mesh", Metadata: map[string]any{"NAME": "one"}, Others: []string{"user_agent_name"}}))
		Expect(s.Nodes).To(Equal(1))
		Expect(s.Messages).To(HaveLen(3))
		Expect(s.Messages[1].Resources[0].Bytes).To(Equal(5))
		Expect(s.Messages[1].Resources[0].Digest).To(Equal(xxhash.Sum64String("12345")))
		Expect(s.Headers).To(Equal(map[string]string{"authorization": "Bearer", "clusterid": "c"}))
		Expect(Held([]Stream{s})).To(HaveKey(Key{"CDS", "a"}))
		Expect(tap.Cut("one")).To(BeFalse(), "it has ended")
	})

	It("breaks the streams of one proxy", func(ctx SpecContext) {
		open := func(id string) discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient {
			stream, err := client.DeltaAggregatedResources(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cdsURL, Node: &corev3.Node{Id: id}})).To(Succeed())
			_, err = stream.Recv()
			Expect(err).NotTo(HaveOccurred())
			return stream
		}
		one, two := open("one"), open("two")
		Expect(tap.Cut("one")).To(BeTrue())
		_, err := one.Recv()
		Expect(status.Code(err)).To(Equal(codes.Unavailable), "as where a control plane restarts")
		Expect(two.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cdsURL})).To(Succeed())
		_, err = two.Recv()
		Expect(err).NotTo(HaveOccurred())
	})

	It("writes down what certificates are requested", func(ctx SpecContext) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{{Scheme: "spiffe", Host: "x", Path: "/ns/a/sa/b"}}}, key)
		Expect(err).NotTo(HaveOccurred())
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"kubernetes.io":{"namespace":"istio-system","pod":{"name":"ztunnel-0"}}}`))
		_, err = signs.CreateCertificate(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer h."+claims+".s", "clusterid", "c"), &securityv1.IstioCertificateRequest{
			Csr: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), ValidityDuration: 3600,
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"ImpersonatedIdentity": structpb.NewStringValue("spiffe://x/ns/a/sa/b")}},
		})
		Expect(status.Code(err)).To(Equal(codes.PermissionDenied))
		Expect(tap.Certificates("istio-system/other")).To(BeEmpty())
		Eventually(func() string { return tap.Certificates("istio-system/ztunnel-0")[0].Text() }).Should(Equal("ECDSA P-256 ECDSA-SHA256 spiffe://x/ns/a/sa/b, " +
			"for 1h0m0s, ImpersonatedIdentity=spiffe://x/ns/a/sa/b, authorization: Bearer, clusterid: c, answered PermissionDenied"))
	})

	It("passes other calls on", func(ctx SpecContext) {
		stream, err := client.StreamAggregatedResources(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = stream.Recv()
		Expect(status.Code(err)).To(Equal(codes.Unimplemented))
	})

	It("needs roots", func() {
		_, err := Listen(Options{RootPEM: []byte("none")})
		Expect(err).To(MatchError(ContainSubstring("no certificate")))
	})
})
