package linkerdproxy

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/linkerd/linkerd2-proxy-api/go/identity"

	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/pkg/proxy"
)

// When the proxy requests a certificate again: at 70 % of what is left of the life of the one that it
// has, within these, also after a failure (refresh in linkerd/proxy/identity/src/certify.rs).
const (
	minRefresh = 10 * time.Second
	maxRefresh = 24 * time.Hour
)

// refresh returns the wait before the next request, where the present certificate has so long to live.
func refresh(left time.Duration) time.Duration {
	return min(max(minRefresh, left*7/10), maxRefresh)
}

// certify keeps the proxy certified until ctx ends. It makes one key and one request, which it sends
// each time. It connects as often as it takes, with the backoff of connections.
func (p *Proxy) certify(ctx context.Context) {
	var request *svid.Request
	var expires time.Time
	unconnected := 0 // dials that failed, one after the other
	for attempt := 1; ctx.Err() == nil; attempt++ {
		event := proxy.Certificate{Attempt: attempt}
		var err error
		if request == nil {
			if request, err = svid.NewRequest(svid.NewKey, p.spec.Identity); err == nil {
				event.Key = request.Took
			}
		}
		var failed *dialError
		if err == nil {
			err = p.obtain(ctx, request, &event)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			attempt, expires = 0, event.Expires
			p.services.Counters.Certificates.Add(1)
		}
		wait := p.spec.Slowdown.Of(refresh(time.Until(expires)))
		if errors.As(err, &failed) {
			unconnected++
			wait = p.backoff(unconnected)
		} else {
			unconnected = 0
		}
		if err != nil {
			event.Err, event.Backoff = err, wait
		}
		p.services.Observer.Certified(p.spec.ID, event)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-p.renewals:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// dialError is the error of a connection that was not established.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// obtain sends the request on a connection of its own, and verifies what comes.
func (p *Proxy) obtain(ctx context.Context, request *svid.Request, event *proxy.Certificate) error {
	token, err := p.token.get(ctx, p)
	if err != nil {
		return fmt.Errorf("getting a token: %w", err)
	}
	conn, err := p.dial(ctx, p.spec.Authority)
	if err != nil {
		return &dialError{err}
	}
	defer conn.Close()
	event.Sent = time.Now()
	p.services.Counters.CertificateRequests.Add(1)
	answer, err := identity.NewIdentityClient(conn).Certify(ctx, &identity.CertifyRequest{
		Identity: p.spec.Identity, Token: []byte(token), CertificateSigningRequest: request.DER,
	})
	if err != nil {
		return fmt.Errorf("requesting a certificate: %w", err)
	}
	chain := [][]byte{encode(answer.GetLeafCertificate())}
	for _, c := range answer.GetIntermediateCertificates() {
		chain = append(chain, encode(c))
	}
	leaf, err := svid.Verify(chain, p.roots, p.spec.Identity, request.Public)
	if err != nil {
		return fmt.Errorf("verifying a certificate: %w", err)
	}
	event.Verified, event.Expires = time.Now(), leaf.NotAfter
	return nil
}

// token is the token of the pod, which the kubelet keeps in a file.
type token struct {
	value string
	renew time.Time // when the kubelet renews it; zero = never
}

// get returns the token that the file has.
func (t *token) get(ctx context.Context, p *Proxy) (string, error) {
	asked := time.Now()
	if t.value != "" && (t.renew.IsZero() || asked.Before(t.renew)) {
		return t.value, nil
	}
	got, err := p.services.Token.Token(ctx)
	received := time.Now()
	p.services.Observer.TokenFetched(p.spec.ID, proxy.TokenFetched{Asked: asked, Received: received, Waited: got.Waited, Err: err})
	if err != nil {
		return "", err
	}
	t.value, t.renew = got.Value, time.Time{}
	if !got.Expires.IsZero() {
		t.renew = received.Add(got.Expires.Sub(received) * 8 / 10)
	}
	return t.value, nil
}

func encode(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}
