package server

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	securityv1 "istio.io/api/security/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"scaler.mesh/scaler/internal/istioagent"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// ofAll returns what a sidecar holds that is configured for all of these services.
func ofAll(services ...string) []string {
	held := []string{"CDS inbound:8080", "LDS inbound", "LDS outbound", "RDS outbound"}
	for _, s := range services {
		held = append(held, "CDS one/"+s+":http", "EDS one/"+s+":http")
	}
	return held
}

var _ = Describe("the server", func() {
	for _, variant := range []xdsprobe.Variant{xdsprobe.Delta, xdsprobe.SotW} {
		Describe("over "+string(variant), func() {
			It("serves what the cluster holds, and every change of it", func() {
				p := startPlane(Options{})
				p.serve("a")
				p.list("a", "10.0.0.1")
				store := xdsprobe.NewStore()
				s := startSidecar(store, 1, "a", xdsprobe.Config{Address: p.plain, Variant: variant})
				Eventually(s.Held).Should(ConsistOf(ofAll("a")))
				Eventually(func() []string { return s.Endpoints("a") }).Should(HaveExactElements("10.0.0.1"))

				p.list("a", "10.0.0.1", "10.0.0.2")
				Eventually(func() []string { return s.Endpoints("a") }).Should(HaveExactElements("10.0.0.1", "10.0.0.2"))
				p.list("a")
				Eventually(func() []string { return s.Endpoints("a") }).Should(BeEmpty())

				p.serve("b")
				Eventually(s.Held).Should(ConsistOf(ofAll("a", "b")))
				p.list("b", "10.0.0.3")
				Eventually(func() []string { return s.Endpoints("b") }).Should(HaveExactElements("10.0.0.3"))

				Expect(p.client.CoreV1().Services("one").Delete(context.Background(), "b", metav1.DeleteOptions{})).To(Succeed())
				Eventually(s.Held).Should(ConsistOf(ofAll("a")))
				Expect(s.Rejections()).To(BeEmpty())
			})

			It("serves a sidecar whose service it does not know yet", func() {
				p := startPlane(Options{})
				s := startSidecar(xdsprobe.NewStore(), 1, "a", xdsprobe.Config{Address: p.plain, Variant: variant})
				Eventually(s.Held).Should(ConsistOf("LDS outbound", "RDS outbound"))
				p.serve("a")
				Eventually(s.Held).Should(ConsistOf(ofAll("a")))
			})

			It("serves each workload what it declared, and changes that at run time", func() {
				p := startPlane(Options{})
				for _, s := range []string{"a", "b", "c"} {
					p.serve(s)
				}
				store := xdsprobe.NewStore()
				a := startSidecar(store, 1, "a", xdsprobe.Config{Address: p.plain, Variant: variant})
				c := startSidecar(store, 1, "c", xdsprobe.Config{Address: p.plain, Variant: variant})
				Eventually(a.Held).Should(ConsistOf(ofAll("a", "b", "c")))

				p.config(WorkloadConfig, "a", map[string]string{"account": "a", "calls": "one/b"})
				p.config(WorkloadConfig, "c", map[string]string{"account": "c"})
				p.config(MeshConfig, "mesh", map[string]string{"mtls": "strict", "scope": "declared", "authz": "declared"})
				Eventually(a.Held).Should(ConsistOf("CDS inbound:8080", "LDS inbound", "LDS outbound", "RDS outbound/one/a", "CDS one/b:http", "EDS one/b:http"))
				Eventually(c.Held).Should(ConsistOf("CDS inbound:8080", "LDS inbound", "LDS outbound", "RDS outbound/one/c"))
				Expect(a.Rejections()).To(BeEmpty())
			})

			It("counts what the sidecars count, and brings back only what a lost stream lacked", func() {
				p := startPlane(Options{})
				for i := range 10 {
					p.serve(fmt.Sprintf("s%d", i))
				}
				store := xdsprobe.NewStore()
				var all []*sidecar
				for i := range 20 {
					all = append(all, startSidecar(store, i, "s1", xdsprobe.Config{Address: p.plain, Variant: variant}))
				}
				for _, s := range all {
					Eventually(s.Held).Should(HaveLen(4 + 2*10))
				}
				for n := range 30 {
					p.list(fmt.Sprintf("s%d", n%10), fmt.Sprintf("10.0.1.%d", n))
				}
				for _, s := range all {
					Eventually(func() []string { return s.Endpoints("s9") }).Should(HaveExactElements("10.0.1.29"))
				}
				response := func(t convergence.Type) string {
					counts := store.Counters().Now().Subscribed()
					at := slices.IndexFunc(counts, func(of xdsprobe.TypeCounts) bool { return of.Type == t })
					return fmt.Sprintf(`reference_xds_responses_total{type="%s"} %d`, t, counts[at].Responses)
				}
				Eventually(func() error {
					return p.metrics(
						"# HELP reference_xds_responses_total Responses sent, by resource type.",
						"# TYPE reference_xds_responses_total counter",
						response(convergence.CDS), response(convergence.EDS), response(convergence.LDS), response(convergence.RDS))
				}).Should(Succeed())
				streams := func(n int) error {
					return p.metrics("# HELP reference_xds_streams Streams that are open.", "# TYPE reference_xds_streams gauge",
						fmt.Sprintf("reference_xds_streams %d", n))
				}
				acknowledged := func(sidecars int, timeout time.Duration) error {
					client := http.Client{Timeout: timeout}
					defer client.CloseIdleConnections()
					answer, err := client.Get(fmt.Sprintf("http://%s/acknowledged?sidecars=%d", p.monitoring, sidecars))
					if err == nil {
						err = answer.Body.Close()
					}
					return err
				}
				Expect(streams(20)).To(Succeed())
				Expect(acknowledged(20, 20*time.Second)).To(Succeed())
				Expect(acknowledged(21, 50*time.Millisecond)).NotTo(Succeed(), "there are 20")
				for _, s := range all[:5] {
					s.stop()
				}
				Eventually(func() error { return streams(15) }).Should(Succeed())
				Expect(acknowledged(15, 20*time.Second)).To(Succeed())
				Expect(acknowledged(16, 50*time.Millisecond)).NotTo(Succeed(), "15 are left")
			})
		})
	}

	It("takes nothing away from sidecars that come back while it is starting", func() {
		p := startPlane(Options{})
		for i := range 5 {
			p.serve(fmt.Sprintf("s%d", i))
			p.list(fmt.Sprintf("s%d", i), "10.0.0.1")
		}
		s := startSidecar(xdsprobe.NewStore(), 1, "s1", xdsprobe.Config{Address: p.plain})
		Eventually(func() []string { return s.Endpoints("s4") }).Should(HaveExactElements("10.0.0.1"))
		all := ofAll("s0", "s1", "s2", "s3", "s4")
		Eventually(s.Held).Should(ConsistOf(all))
		p.stop()
		Eventually(s.Ended).ShouldNot(BeEmpty())
		s.mu.Lock()
		s.updates = nil
		s.mu.Unlock()

		for _, resource := range []string{"services", "endpointslices"} {
			p.client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				<-time.After(100 * time.Millisecond) // long enough for the sidecar to be back first
				return false, nil, nil
			})
		}
		p = p.restarted(Options{})
		p.list("s2", "10.0.0.2")
		Eventually(func() []string { return s.Endpoints("s2") }).Should(HaveExactElements("10.0.0.2"))
		Expect(s.Held()).To(ConsistOf(all))
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, u := range s.updates {
			Expect(u.Removed).To(BeEmpty())
		}
	})

	It("serves over TLS and issues certificates from its root", func() {
		p := startPlane(Options{})
		p.serve("a")
		store := xdsprobe.NewStore()
		s := startAgent(proxy.Spec{
			ID: "one/a-1", NodeID: "one/a-1", NodeCluster: Workload("one", "a"),
			Address: p.secure, ServerName: ServerName, RootPEM: p.authority.RootPEM(), Identity: SPIFFE("one", "a"),
		}, func(s *sidecar) istioagent.Services {
			return istioagent.Services{Store: store, Observer: s, Issuer: agent{p}, Keys: newKey}
		})
		Eventually(s.Held).Should(ConsistOf(ofAll("a")))
		Eventually(s.Certificates).Should(HaveLen(1))
		c := s.Certificates()[0]
		Expect(c.Err).NotTo(HaveOccurred())
		Expect(c.Expires).To(BeTemporally("~", time.Now().Add(certificateLife), time.Minute))
		Expect(p.metrics(
			"# HELP reference_certificate_requests_total Certificate signing requests received.",
			"# TYPE reference_certificate_requests_total counter",
			"reference_certificate_requests_total 1",
			"# HELP reference_certificates_total Certificates issued.",
			"# TYPE reference_certificates_total counter",
			"reference_certificates_total 1")).To(Succeed())
	})

	It("refuses streams and requests without a good token, where it looks at tokens", func() {
		p := startPlane(Options{VerifyTokens: true})
		p.client.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
			review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
			Expect(review.Spec.Audiences).To(HaveExactElements(Audience))
			review.Status.Authenticated = review.Spec.Token == "good"
			review.Status.User.Username = "system:serviceaccount:one:a"
			return true, review, nil
		})
		p.serve("a")
		csr := request(SPIFFE("one", "a"))
		_, err := agent{p}.Issue(context.Background(), "good", csr)
		Expect(err).NotTo(HaveOccurred())
		_, err = agent{p}.Issue(context.Background(), "bad", csr)
		Expect(status.Code(err)).To(Equal(codes.Unauthenticated))
		_, err = agent{p}.Issue(context.Background(), "good", request(SPIFFE("one", "b")))
		Expect(status.Code(err)).To(Equal(codes.PermissionDenied))

		config := xdsprobe.Config{Address: p.secure, ServerName: ServerName, RootPEM: p.authority.RootPEM()}
		s := startSidecar(xdsprobe.NewStore(), 1, "a", config)
		Eventually(s.Ended).ShouldNot(BeEmpty())
		Expect(s.Ended()[0].Class).To(Equal(proxy.Unauthorized))
		config.Token = good{}
		s = startSidecar(xdsprobe.NewStore(), 2, "a", config)
		Eventually(s.Held).Should(ConsistOf(ofAll("a")))
	})

	It("says what is wrong with a certificate request", func() {
		p := startPlane(Options{})
		for _, csr := range [][]byte{nil, []byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"), request()} {
			_, err := agent{p}.Issue(context.Background(), "", csr)
			Expect(status.Code(err)).To(Equal(codes.InvalidArgument))
		}
	})

	It("ends streams and connections when it stops", func() {
		p := startPlane(Options{})
		p.serve("a")
		s := startSidecar(xdsprobe.NewStore(), 1, "a", xdsprobe.Config{Address: p.plain})
		Eventually(s.Held).Should(ConsistOf(ofAll("a")))
		p.stop()
		Eventually(s.Ended).ShouldNot(BeEmpty())
		Expect(p.get("ready")).NotTo(Succeed())
	})

	It("refuses faults that cannot be", func() {
		p := startPlane(Options{})
		Expect(p.call(http.MethodPut, "faults", `{"delay": -1}`)).To(MatchError(ContainSubstring("400")))
		Expect(p.call(http.MethodPut, "faults", `{"drop": 2}`)).To(MatchError(ContainSubstring("400")))
		Expect(p.call(http.MethodPut, "faults", `{`)).To(MatchError(ContainSubstring("400")))
		Expect(p.call(http.MethodPut, "faults", `{"delay": 1000, "drop": 0.5, "seed": 3}`)).To(Succeed())
	})
})

type good struct{}

func (good) Token(context.Context) (proxy.Token, error) { return proxy.Token{Value: "good"}, nil }

func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// agent has certificates signed by a plane.
type agent struct{ *plane }

func (a agent) Issue(ctx context.Context, token string, csrPEM []byte) (proxy.Issued, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.authority.RootPEM())
	conn, err := grpc.NewClient("passthrough:///"+a.secure, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: ServerName})))
	if err != nil {
		return proxy.Issued{}, err
	}
	defer conn.Close()
	sent := time.Now()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	answer, err := securityv1.NewIstioCertificateServiceClient(conn).CreateCertificate(ctx, &securityv1.IstioCertificateRequest{Csr: string(csrPEM)})
	issued := proxy.Issued{Sent: sent, Received: time.Now()}
	for _, c := range answer.GetCertChain() {
		issued.Chain = append(issued.Chain, []byte(c))
	}
	return issued, err
}
