package authority

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	securityv1 "istio.io/api/security/v1alpha1"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/proxy"

	"scaler.mesh/scaler/test/credential"
)

// Requests of one node are under way at once over one connection, which a refusal leaves open
// and the next request after a loss replaces.
func TestNodeClient(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	s := serve(t)
	sign := s.answer
	const n = 8
	arrived, proceed := make(chan struct{}, n), make(chan struct{})
	s.answer = func(ctx context.Context, r *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
		arrived <- struct{}{}
		<-proceed
		return sign(ctx, r)
	}
	client, err := NewNode(proxy.Spec{Address: s.address, ServerName: "authority", RootPEM: s.root, Headers: map[string]string{"clusterid": "here"}}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer client.Close()
	ask := func() error {
		issued, err := client.IssueFor(ctx, "token", "spiffe://cluster.local/ns/a/sa/b", []byte("csr"))
		if err == nil && (issued.Sent.IsZero() || issued.Received.Before(issued.Sent) || len(issued.Chain) != 2) {
			t.Errorf("issued %+v", issued)
		}
		return err
	}
	done := make(chan error, n)
	for range n {
		go func() { done <- ask() }()
	}
	for range n {
		<-arrived
	}
	close(proceed)
	for range n {
		g.Expect(<-done).To(Succeed())
	}
	g.Expect(s.connections()).To(Equal(1))
	s.mu.Lock()
	g.Expect(s.headers.Get("authorization")).To(Equal([]string{"Bearer token"}))
	g.Expect(s.headers.Get("clusterid")).To(Equal([]string{"here"}))
	g.Expect(s.asked.GetMetadata().GetFields()[impersonated].GetStringValue()).To(Equal("spiffe://cluster.local/ns/a/sa/b"))
	g.Expect(s.asked.GetValidityDuration()).To(BeEquivalentTo(DefaultLifetime.Seconds()))
	s.mu.Unlock()

	s.answer = refusing(codes.Unauthenticated, "not on the node")
	issued, err := client.IssueFor(ctx, "token", "spiffe://cluster.local/ns/a/sa/c", []byte("csr"))
	g.Expect(status.Code(err)).To(Equal(codes.Unauthenticated))
	g.Expect(issued.Sent).NotTo(BeZero(), "it was sent")
	s.answer = sign
	g.Expect(ask()).To(Succeed())
	g.Expect(s.connections()).To(Equal(1))

	s.open.cut()
	g.Eventually(ask).Should(Succeed())
	g.Expect(s.connections()).To(Equal(2))

	g.Expect(client.Close()).To(Succeed())
	g.Expect(ask()).To(MatchError(errClosed))
}

func TestNodeClientWithoutAuthority(t *testing.T) {
	g := NewWithT(t)
	address, err := process.FreeAddress()
	g.Expect(err).NotTo(HaveOccurred())
	client, err := NewNode(proxy.Spec{Address: address, ServerName: "authority", RootPEM: credential.NewAuthority(time.Hour).RootPEM}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer client.Close()
	issued, err := client.IssueFor(t.Context(), "token", "spiffe://cluster.local/ns/a/sa/b", []byte("csr"))
	g.Expect(status.Code(err)).To(Equal(codes.Unavailable))
	g.Expect(issued.Sent).To(BeZero(), "nothing could be sent")
}

func TestNodeClientNeedsRoots(t *testing.T) {
	if _, err := NewNode(proxy.Spec{RootPEM: []byte("none")}, nil); err == nil {
		t.Error("made without roots")
	}
}
