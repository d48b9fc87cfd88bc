package istioagent

import (
	"context"
	"crypto"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"

	"scaler.mesh/scaler/test/credential"
)

// standalone returns an agent whose certificate can be followed without a server.
func standalone(a *authority, source proxy.TokenSource) *diary {
	d := &diary{store: xdsprobe.NewStore()}
	d.agent = credential.Must(New(proxy.Spec{ID: "test", RootPEM: a.RootPEM, Identity: identity}, Services{
		Store: d.store, Observer: d, Token: source, Issuer: a,
		Keys: func() (crypto.Signer, error) { return credential.NewKey(), nil },
	}))
	return d
}

// certify runs only the certificate part of an agent for a time.
func certify(d *diary, life time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), life)
	defer cancel()
	c := &d.agent.certificate
	c.task.After(0, func() { c.request(ctx) })
	<-ctx.Done()
	c.task.Stop()
}

func TestCertificateIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		a := newAuthority(24 * time.Hour)
		tokens := &credential.Tokens{Life: time.Hour}
		d := standalone(a, tokens)
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
		g.Expect(d.store.Counters().Certificates.Load()).To(BeEquivalentTo(5))
	})
}

func TestCertificateIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		a := newAuthority(24 * time.Hour)
		busy := status.Error(codes.ResourceExhausted, "busy")
		a.fails = []error{busy, busy, busy, busy, busy, status.Error(codes.Unauthenticated, "who"), busy}
		d := standalone(a, nil)
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
		g.Expect(d.store.Counters().CertificateRequests.Load()).To(BeEquivalentTo(8))
		g.Expect(d.store.Counters().Certificates.Load()).To(BeEquivalentTo(1))
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
		"another key":      {forge: func(c *x509.Certificate) { c.PublicKey = credential.NewKey().Public() }, want: "another key"},
		"another root":     {trust: other, want: "unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				a := newAuthority(time.Hour)
				a.forge = test.forge
				d := standalone(a, nil)
				if test.trust != nil {
					d.agent.roots = standalone(test.trust, nil).agent.roots
				}
				certify(d, 10*time.Millisecond)
				g.Expect(d.certificates[0].Err).To(MatchError(ContainSubstring(test.want)))
				g.Expect(d.certificates[0].Verified).To(BeZero())
			})
		})
	}
}

func TestRenewal(t *testing.T) {
	for range 1000 {
		if got := renewal(100 * time.Hour); got < 49*time.Hour || got > 51*time.Hour {
			t.Fatalf("renewal after %v, want 49 h to 51 h", got)
		}
	}
	if got := renewal(-time.Hour); got != 0 {
		t.Errorf("renewal of an expired certificate after %v, want at once", got)
	}
}
