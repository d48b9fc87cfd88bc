package istioagent

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
)

// Istio's agent renews a certificate when this share of its life is left, with the jitter
// as tolerance (SECRET_GRACE_PERIOD_RATIO and its _JITTER).
const (
	graceRatio  = 0.5
	graceJitter = 0.01
)

// certificate obtains and renews an agent's certificate in parallel to its stream.
type certificate struct {
	agent *Agent
	task  task.Task

	again atomic.Pointer[func()] // makes a request; nil before Run

	mu      sync.Mutex    // held by a request: Renew may begin one while another is under way
	pending *svid.Request // what a retry sends again; nil for a new request
	attempt int           // since the last certificate
	backoff certificateBackoff
}

// request requests a certificate once and schedules the renewal or the retry.
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

// obtain sends one request, verifies the answer and returns the remaining lifetime of the
// certificate.
func (c *certificate) obtain(ctx context.Context, event *proxy.Certificate) (time.Duration, error) {
	a := c.agent
	if c.pending == nil {
		pending, err := svid.NewRequest(a.services.Keys, a.identity)
		if err != nil {
			return 0, err
		}
		c.pending, event.Key = pending, pending.Took
	}
	token, err := a.client.Token(ctx)
	if err != nil {
		return 0, err
	}
	issued, err := a.services.Issuer.Issue(ctx, token, c.pending.PEM)
	if !issued.Sent.IsZero() {
		a.services.Store.Counters().CertificateRequests.Add(1)
	}
	if err != nil {
		return 0, fmt.Errorf("requesting a certificate: %w", err)
	}
	leaf, err := svid.Verify(issued.Chain, a.roots, a.identity, c.pending.Public)
	if err != nil {
		return 0, fmt.Errorf("verifying a certificate: %w", err)
	}
	event.Sent, event.Verified, event.Expires = issued.Sent, time.Now(), leaf.NotAfter
	return leaf.NotAfter.Sub(event.Verified), nil
}

// renewal returns when to renew a certificate, as the agent's rotateTime does.
func renewal(lifetime time.Duration) time.Duration {
	ratio := graceRatio + graceJitter*(2*mathrand.Float64()-1)
	return max(lifetime-time.Duration(ratio*float64(lifetime)), 0)
}
