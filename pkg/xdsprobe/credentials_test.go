package xdsprobe

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"scaler.mesh/scaler/pkg/proxy"

	"scaler.mesh/scaler/test/credential"
)

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		source := &credential.Tokens{Life: 100 * time.Second}
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
		source.Fail(fmt.Errorf("no"))
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
		a := credential.NewAuthority(time.Hour)
		p := startPlane(grpc.Creds(credentials.NewServerTLSFromCert(new(a.Pair("istiod.istio-system.svc")))))
		p.serve("test", mesh{
			resource.ClusterType: {edsCluster("a", "", 1)}, resource.EndpointType: {assignment("a")},
		})
		store, tokens := NewStore(), &credential.Tokens{}
		c := Config{
			Address: p.address, ServerName: "istiod.istio-system.svc", RootPEM: a.RootPEM, Token: tokens,
		}
		sidecar := start(store, c)
		Eventually(sidecar.Held).Should(Equal([]string{"CDS a", "EDS a"}))
		Expect(tokens.Given()).To(Equal(1))
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
		tokens := &credential.Tokens{Life: time.Nanosecond}
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
		tokens := &credential.Tokens{}
		tokens.Fail(fmt.Errorf("no"))
		sidecar := start(NewStore(), Config{Address: server.address, Token: tokens})
		Eventually(func() int { return len(noted(sidecar.diary, func() []proxy.TokenFetched { return sidecar.tokens })) }).Should(BeNumerically(">", 2))
		tokens.Fail(nil)
		Expect(server.next().headers.Get("authorization")).To(Equal([]string{"Bearer token1"}))
	})
})
