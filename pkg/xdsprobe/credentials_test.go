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
	"google.golang.org/grpc/credentials"

	"scaler.mesh/scaler/pkg/proxy"
)

// authority is a certificate authority.
type authority struct {
	root    *x509.Certificate
	rootPEM []byte
	key     *ecdsa.PrivateKey
	life    time.Duration
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
	It("verify the server by name, and carry the token", func() {
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
		}
		sidecar := start(store, c)
		Eventually(sidecar.Held).Should(Equal([]string{"CDS a", "EDS a"}))
		Expect(tokens.count()).To(Equal(1))
		token, err := sidecar.sidecar.Token(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(token).To(Equal("token1"), "an agent's certificate request shares it")
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
