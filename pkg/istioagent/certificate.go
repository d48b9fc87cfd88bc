package istioagent

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
)

// Istio's agent renews a certificate when this share of its life is left, give or
// take the jitter (SECRET_GRACE_PERIOD_RATIO and its _JITTER).
const (
	graceRatio  = 0.5
	graceJitter = 0.01
)

// certificate obtains and renews an agent's certificate in parallel to its stream.
type certificate struct {
	agent *Agent
	task  task.Task

	again atomic.Pointer[func()] // makes a request; nil before Run

	mu      sync.Mutex // held by a request: Renew may begin one while another is under way
	pending *signing   // what a retry sends again; nil for a new request
	attempt int        // since the last certificate
	backoff certificateBackoff
}

// signing is a request for a certificate and the key that it is for.
type signing struct {
	public crypto.PublicKey
	csrPEM []byte
	took   time.Duration
}

// request requests a certificate once and schedules what comes next: the renewal
// or the retry.
func (c *certificate) request(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.agent
	c.attempt++
	event := proxy.Certificate{Attempt: c.attempt}
	lifetime, err := c.obtain(ctx, &event)
	if ctx.Err() != nil {
		return
	}
	var wait time.Duration
	if err == nil {
		wait = renewal(lifetime)
		c.pending, c.attempt, c.backoff = nil, 0, certificateBackoff{}
		a.services.Store.Counters().Certificates.Add(1)
	} else {
		var fresh bool
		if wait, fresh = c.backoff.next(err); fresh {
			c.pending = nil
		}
		wait = a.slowdown.Of(wait)
		event.Err, event.Backoff = err, wait
	}
	a.services.Observer.Certified(a.id, event)
	if err == nil {
		a.client.Certified()
	}
	c.task.After(wait, func() { c.request(ctx) })
}

// obtain sends one request, verifies what comes and returns how long it is good
// for.
func (c *certificate) obtain(ctx context.Context, event *proxy.Certificate) (time.Duration, error) {
	a := c.agent
	if c.pending == nil {
		pending, err := sign(a.services.Keys, a.identity)
		if err != nil {
			return 0, err
		}
		c.pending, event.Key = pending, pending.took
	}
	token, err := a.client.Token(ctx)
	if err != nil {
		return 0, err
	}
	called := time.Now()
	issued, err := a.services.Issuer.Issue(ctx, token, c.pending.csrPEM)
	if !issued.Sent.IsZero() {
		a.services.Store.Counters().CertificateRequests.Add(1)
	}
	if err != nil {
		return 0, fmt.Errorf("requesting a certificate: %w", err)
	}
	leaf, err := a.verify(issued.Chain, c.pending.public)
	if err != nil {
		return 0, fmt.Errorf("verifying a certificate: %w", err)
	}
	event.Sent, event.Wait = issued.Sent, issued.Sent.Sub(called)
	event.Verified, event.Expires = time.Now(), leaf.NotAfter
	return leaf.NotAfter.Sub(event.Verified), nil
}

// renewal returns when to renew a certificate, as the agent's rotateTime does.
func renewal(lifetime time.Duration) time.Duration {
	ratio := graceRatio + graceJitter*(2*mathrand.Float64()-1)
	return max(lifetime-time.Duration(ratio*float64(lifetime)), 0)
}

// sign makes a certificate signing request for a SPIFFE identity, as Istio's
// agent does: the identity as URI, no subject.
func sign(keys func() (crypto.Signer, error), identity string) (*signing, error) {
	begun := time.Now()
	key, err := keys()
	if err != nil {
		return nil, fmt.Errorf("getting a private key: %w", err)
	}
	uri, err := url.Parse(identity)
	if err != nil {
		return nil, fmt.Errorf("parsing identity %q: %w", identity, err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{""}},
		URIs:    []*url.URL{uri},
	}, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	block := &pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}
	return &signing{key.Public(), pem.EncodeToMemory(block), time.Since(begun)}, nil
}

// verify returns the leaf of a chain that leads to the agent's roots and is for its
// identity, and for a public key unless that is nil.
func (a *Agent) verify(chain [][]byte, public crypto.PublicKey) (*x509.Certificate, error) {
	certificates, err := parseChain(chain...)
	if err != nil {
		return nil, err
	}
	leaf := certificates[0]
	if a.roots != nil {
		intermediates := x509.NewCertPool()
		for _, c := range certificates[1:] {
			intermediates.AddCert(c)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{
			Roots:         a.roots,
			Intermediates: intermediates,
			KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}); err != nil {
			return nil, err
		}
	}
	if a.identity != "" && (len(leaf.URIs) != 1 || leaf.URIs[0].String() != a.identity) {
		return nil, fmt.Errorf("it is for %v, want %s", leaf.URIs, a.identity)
	}
	if public == nil {
		return leaf, nil
	}
	if key, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !key.Equal(public) {
		return nil, errors.New("it is for another key")
	}
	return leaf, nil
}

// parseChain parses certificates in PEM, of which there must be one at least.
func parseChain(chain ...[]byte) (certificates []*x509.Certificate, err error) {
	rest := bytes.Join(chain, []byte("\n"))
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, c)
	}
	if len(certificates) == 0 {
		return nil, errors.New("no certificate in the answer")
	}
	return certificates, nil
}
