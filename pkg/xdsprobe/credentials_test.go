package xdsprobe

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"scaler.mesh/scaler/pkg/proxy"
)

const identity = "spiffe://cluster.local/ns/default/sa/test"

// authority is a certificate authority, and an Issuer that fails as it is told.
type authority struct {
	root    *x509.Certificate
	rootPEM []byte
	key     *ecdsa.PrivateKey
	life    time.Duration
	forge   func(*x509.Certificate) // changes what is issued

	mu     sync.Mutex
	fails  []error // of the next requests
	csrs   [][]byte
	tokens []string
	times  []time.Time
}

func newAuthority(life time.Duration) *authority {
	a := &authority{life: life, key: newKey()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))
	a.root = must(x509.ParseCertificate(der))
	a.rootPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (a *authority) sign(template *x509.Certificate, key crypto.PublicKey) []byte {
	template.SerialNumber = big.NewInt(2)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(a.life)
	return must(x509.CreateCertificate(rand.Reader, template, a.root, key, a.key))
}

// Issue is part of Issuer.
func (a *authority) Issue(_ context.Context, token string, csrPEM []byte) (proxy.Issued, error) {
	sent := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.csrs, a.tokens, a.times = append(a.csrs, csrPEM), append(a.tokens, token), append(a.times, sent)
	if len(a.fails) > 0 {
		err := a.fails[0]
		a.fails = a.fails[1:]
		return proxy.Issued{Sent: sent}, err
	}
	block, _ := pem.Decode(csrPEM)
	csr := must(x509.ParseCertificateRequest(block.Bytes))
	if err := csr.CheckSignature(); err != nil {
		return proxy.Issued{}, err
	}
	template := &x509.Certificate{URIs: csr.URIs}
	key := csr.PublicKey
	if a.forge != nil {
		a.forge(template)
		if template.PublicKey != nil {
			key = template.PublicKey
		}
	}
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.sign(template, key)})
	return proxy.Issued{Chain: [][]byte{leaf, a.rootPEM}, Sent: sent, Received: time.Now()}, nil
}

// ticket is a TokenSource of numbered tokens.
type ticket struct {
	life time.Duration

	mu    sync.Mutex
	given int
	err   error
}

func (t *ticket) Token(context.Context) (proxy.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return proxy.Token{}, t.err
	}
	t.given++
	token := proxy.Token{Value: fmt.Sprint("token", t.given), Waited: time.Millisecond}
	if t.life > 0 {
		token.Expires = time.Now().Add(t.life)
	}
	return token, nil
}

func (t *ticket) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.given
}

// lonely returns a sidecar whose certificate can be followed without a server.
func lonely(a *authority, source proxy.TokenSource) *diary {
	d := &diary{}
	d.sidecar = New(Config{
		ID: "test", RootPEM: a.rootPEM, Issuer: a, Identity: identity, Token: source,
		Keys: func() (crypto.Signer, error) { return newKey(), nil },
	}, NewStore(), d)
	return d
}

// certify runs only the certificate part of a sidecar for a time.
func certify(d *diary, life time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), life)
	defer cancel()
	c := &d.sidecar.certificate
	c.task.after(0, func() { c.request(ctx) })
	<-ctx.Done()
	c.task.stop()
}

func TestCertificateIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		a := newAuthority(24 * time.Hour)
		tokens := &ticket{life: time.Hour}
		d := lonely(a, tokens)
		begun := time.Now()
		certify(d, 50*time.Hour)

		g.Expect(d.certificates).To(HaveLen(5)) // every 12 h
		last := begun
		for i, c := range d.certificates {
			g.Expect(c.Err).NotTo(HaveOccurred())
			g.Expect(c.Attempt).To(Equal(1))
			g.Expect(c.Expires).To(BeTemporally("~", a.times[i].Add(24*time.Hour), time.Second))
			if i > 0 { // half of its life, give or take a hundredth
				g.Expect(a.times[i].Sub(last)).To(BeNumerically("~", 12*time.Hour, 15*time.Minute))
				g.Expect(a.csrs[i]).NotTo(Equal(a.csrs[i-1]))
			}
			last = a.times[i]
		}
		g.Expect(a.tokens).To(Equal([]string{"token1", "token2", "token3", "token4", "token5"}))
		g.Expect(d.sidecar.store.Counters().Certificates.Load()).To(BeEquivalentTo(5))
	})
}

func TestCertificateIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		a := newAuthority(24 * time.Hour)
		busy := status.Error(codes.ResourceExhausted, "busy")
		a.fails = []error{busy, busy, busy, busy, busy, status.Error(codes.Unauthenticated, "who"), busy}
		d := lonely(a, nil)
		certify(d, time.Minute)

		g.Expect(d.certificates).To(HaveLen(8))
		wants := []struct {
			wait, within time.Duration
			sameRequest  bool // as the one before
		}{
			{0, 0, false},
			{100, 10, true}, {200, 20, true}, {400, 40, true}, {800, 80, true},
			{500, 250, false}, // the round is over
			{750, 375, false}, // and this one at once
			{100, 10, true},
		}
		for i, want := range wants {
			g.Expect(d.certificates[i].Attempt).To(Equal(i + 1))
			if i > 0 {
				g.Expect(a.times[i].Sub(a.times[i-1])).To(BeNumerically("~", want.wait*time.Millisecond, want.within*time.Millisecond+time.Millisecond))
				g.Expect(string(a.csrs[i]) == string(a.csrs[i-1])).To(Equal(want.sameRequest), "request %d", i+1)
			}
		}
		g.Expect(d.certificates[7].Err).NotTo(HaveOccurred())
		g.Expect(d.sidecar.store.Counters().CertificateRequests.Load()).To(BeEquivalentTo(8))
		g.Expect(d.sidecar.store.Counters().Certificates.Load()).To(BeEquivalentTo(1))
	})
}

func TestCertificateIsVerified(t *testing.T) {
	other := newAuthority(time.Hour)
	for name, test := range map[string]struct {
		forge func(*x509.Certificate)
		trust *authority
		want  string
	}{
		"another identity": {forge: func(c *x509.Certificate) { c.URIs = nil }, want: identity},
		"another key":      {forge: func(c *x509.Certificate) { c.PublicKey = newKey().Public() }, want: "another key"},
		"another root":     {trust: other, want: "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				a := newAuthority(time.Hour)
				a.forge = test.forge
				d := lonely(a, nil)
				if test.trust != nil {
					d.sidecar.trust = must(d.sidecar.store.trustOf(test.trust.rootPEM, ""))
				}
				certify(d, 10*time.Millisecond)
				g.Expect(d.certificates[0].Err).To(MatchError(ContainSubstring(test.want)))
				g.Expect(d.certificates[0].Verified).To(BeZero())
			})
		})
	}
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		source := &ticket{life: 100 * time.Second}
		var fetched []proxy.TokenFetched
		tokens := &tokens{source: source, fetched: func(e proxy.TokenFetched) { fetched = append(fetched, e) }}
		get := func(want string) {
			t.Helper()
			value, err := tokens.get(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(value).To(Equal(want))
		}
		wait := func(d time.Duration) { <-time.After(d) }

		get("token1")
		wait(79 * time.Second)
		get("token1")
		wait(time.Second) // 80 % of its life
		get("token2")
		source.err = fmt.Errorf("no")
		wait(90 * time.Second)
		get("token2") // still good
		wait(10 * time.Second)
		_, err := tokens.get(t.Context())
		g.Expect(err).To(MatchError("fetching a token: no"))
		g.Expect(fetched).To(HaveLen(4))
		g.Expect(fetched[0].Waited).To(Equal(time.Millisecond))
	})
}

var _ = Describe("credentials", func() {
	It("verify the server by name, carry the token, and bring a certificate beside the stream", func() {
		a := newAuthority(time.Hour)
		serverKey := newKey()
		leaf := a.sign(&x509.Certificate{DNSNames: []string{"istiod.istio-system.svc"}}, serverKey.Public())
		p := startPlane(grpc.Creds(credentials.NewServerTLSFromCert(&tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: serverKey})))
		p.serve("test", mesh{
			resource.ClusterType: {edsCluster("a", "", 1)}, resource.EndpointType: {assignment("a")},
		})
		store, tokens := NewStore(), &ticket{}
		c := Config{
			Address: p.address, ServerName: "istiod.istio-system.svc", RootPEM: a.rootPEM, Token: tokens,
			Issuer: a, Identity: identity, Keys: func() (crypto.Signer, error) { return newKey(), nil },
		}
		sidecar := start(store, c)
		Eventually(sidecar.Held).Should(Equal([]string{"CDS a", "EDS a"}))
		Eventually(sidecar.Certificates).Should(ConsistOf(And(HaveField("Err", BeNil()), HaveField("Attempt", 1), HaveField("Wait", BeNumerically(">=", 0)))))
		Expect(tokens.count()).To(Equal(1), "stream and certificate share one")
		sidecar.stop()
		Expect(sidecar.Ended()).To(ConsistOf(HaveField("Class", proxy.Stopped)))

		By("another name")
		c.ServerName = "other.svc"
		stranger := start(store, c)
		Eventually(stranger.Ended).ShouldNot(BeEmpty())
		Expect(stranger.Ended()[0].Class).To(Equal(proxy.Unreachable))
		Expect(stranger.Ended()[0].Err).To(MatchError(ContainSubstring("istiod.istio-system.svc, not other.svc")))
	})

	It("send a new token with the next stream when the last is old, and headers", func() {
		server := startScript()
		tokens := &ticket{life: time.Nanosecond}
		start(NewStore(), Config{Address: server.address, Token: tokens, Headers: map[string]string{"ClusterID": "one"}})
		for i := range 3 {
			t := server.next()
			Expect(t.headers.Get("authorization")).To(Equal([]string{fmt.Sprint("Bearer token", i+1)}))
			Expect(t.headers.Get("clusterid")).To(Equal([]string{"one"}))
			t.finish(nil)
		}
	})

	It("that cannot be had are asked for again", func() {
		server := startScript()
		tokens := &ticket{err: fmt.Errorf("no")}
		sidecar := start(NewStore(), Config{Address: server.address, Token: tokens})
		Eventually(func() int { return len(noted(sidecar.diary, func() []proxy.TokenFetched { return sidecar.tokens })) }).Should(BeNumerically(">", 2))
		tokens.mu.Lock()
		tokens.err = nil
		tokens.mu.Unlock()
		Expect(server.next().headers.Get("authorization")).To(Equal([]string{"Bearer token1"}))
	})
})
