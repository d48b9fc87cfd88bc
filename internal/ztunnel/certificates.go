package ztunnel

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
)

// Waits after a failed certificate request, separately for each identity: 1 s first, then
// twice the last, each up to a fifth more or less (src/identity/manager.rs).
const (
	firstRetry  = time.Second
	longestWait = 150 * time.Second
	retryJitter = 0.2
)

// atOnce limits the requests in progress (concurrency in src/identity/manager.rs).
const atOnce = 8

// certificates requests and renews the certificates of the identities of a node. The
// first certificate of each identity is requested in the order in which their workloads
// arrived, one at a time (the prefetch of src/cert_fetcher.rs). Renewals and retries are
// requested when they are due, with at most atOnce requests in progress altogether.
type certificates struct {
	z    *Ztunnel
	wake chan struct{} // holds a notice when something is due, or will be

	// mu is held while events are reported, so that they are reported in the order in
	// which they happened.
	mu      sync.Mutex
	of      map[string]*certificate
	queue   []*certificate // not requested yet, in order
	first   *certificate   // the first request of it is under way; nil = of none is
	running int            // requests that are under way

	renewing sync.Mutex // guards all; Renew must not wait for mu, as observers may call it
	all      bool       // all are to be renewed now
}

// certificate is the state of the certificate of one identity.
type certificate struct {
	identity  string
	requested bool      // once at least
	running   bool      // a request is under way
	due       time.Time // of the next request; zero = now
	expires   time.Time // of the one that is held; zero = none is
	failed    int       // one after the other
	forgotten bool
}

func (c *certificates) prepare(z *Ztunnel) {
	c.z, c.wake, c.of = z, make(chan struct{}, 1), map[string]*certificate{}
}

// take processes the change of the node's pods; nil = none. It first calls report, under
// the same lock.
func (c *certificates) take(u *proxy.NodeUpdate, report func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	report()
	if u == nil || c.z.services.Issuer == nil {
		return
	}
	for _, identity := range u.Dropped {
		if one := c.of[identity]; one != nil {
			one.forgotten = true
			delete(c.of, identity)
		}
	}
	for _, p := range u.Held {
		if p.Identity == "" || c.of[p.Identity] != nil {
			continue
		}
		one := &certificate{identity: p.Identity}
		c.of[p.Identity] = one
		c.queue = append(c.queue, one)
	}
	task.Notify(c.wake)
}

// renew requests all certificates anew, now.
func (c *certificates) renew() {
	c.renewing.Lock()
	c.all = true
	c.renewing.Unlock()
	task.Notify(c.wake)
}

// run requests certificates until ctx ends, and returns when no request is in progress.
func (c *certificates) run(ctx context.Context) {
	var requests sync.WaitGroup
	defer requests.Wait()
	for ctx.Err() == nil {
		one, wait := c.next(time.Now())
		if one != nil {
			requests.Go(func() { c.request(ctx, one) })
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// idle is the wait where nothing is due.
const idle = time.Hour

// next returns the certificate to request now and counts it as in progress. If nothing is
// due it returns nil and the time to wait, unless a notice comes before.
func (c *certificates) next(now time.Time) (*certificate, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewing.Lock()
	if c.all {
		for _, one := range c.of {
			one.due = now
		}
	}
	c.all = false
	c.renewing.Unlock()
	if c.running == atOnce {
		return nil, idle
	}
	for c.first == nil && len(c.queue) > 0 {
		one := c.queue[0]
		c.queue = c.queue[1:]
		if !one.forgotten {
			one.requested, c.first = true, one
			return c.begin(one), 0
		}
	}
	var first *certificate
	for _, one := range c.of {
		if one.requested && !one.running && (first == nil || one.due.Before(first.due)) {
			first = one
		}
	}
	switch {
	case first == nil:
		return nil, idle
	case first.due.After(now):
		return nil, first.due.Sub(now)
	}
	return c.begin(first), 0
}

// begin records that a certificate request is in progress. The caller holds mu.
func (c *certificates) begin(one *certificate) *certificate {
	one.running = true
	c.running++
	return one
}

// request requests a certificate once, and decides when the next request is due.
func (c *certificates) request(ctx context.Context, one *certificate) {
	event := proxy.Certificate{Identity: one.identity, Attempt: one.failed + 1}
	began := time.Now()
	renewal, err := c.obtain(ctx, one, &event)
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer task.Notify(c.wake)
	one.running = false
	c.running--
	if c.first == one {
		c.first = nil
	}
	again := one.due.After(began) // a renewal of all was ordered meanwhile
	if err == nil {
		one.failed, one.expires = 0, event.Expires
		if one.due = renewal; again || renewal.Before(time.Now()) { // those that are due already come first
			one.due = time.Now()
		}
		c.z.services.Store.Counters().Certificates.Add(1)
	} else {
		one.failed++
		event.Err, event.Backoff = err, c.z.slowdown.Of(retryAfter(one.failed))
		one.due = time.Now().Add(event.Backoff)
		if now := time.Now(); one.expires.After(now) && one.expires.Before(one.due) {
			one.due = one.expires
		}
	}
	if !one.forgotten { // else nobody has use for it
		c.z.services.Observer.Certified(c.z.id, event)
	}
}

// retryAfter returns the wait after this number of failures, at least one.
func retryAfter(failures int) time.Duration {
	wait := min(longestWait, firstRetry<<min(failures-1, 8))
	return time.Duration(float64(wait) * (1 + retryJitter*(2*mathrand.Float64()-1)))
}

// obtain sends one request, verifies the answer, and returns when to renew the
// certificate: at half of its lifetime.
func (c *certificates) obtain(ctx context.Context, one *certificate, event *proxy.Certificate) (renewal time.Time, err error) {
	request, err := svid.NewRequest(svid.NewKey, one.identity)
	if err != nil {
		return renewal, err
	}
	event.Key = request.Took
	token, err := c.z.client.Token(ctx)
	if err != nil {
		return renewal, err
	}
	issued, err := c.z.services.Issuer.IssueFor(ctx, token, one.identity, request.PEM)
	if !issued.Sent.IsZero() {
		c.z.services.Store.Counters().CertificateRequests.Add(1)
	}
	if err != nil {
		return renewal, fmt.Errorf("requesting a certificate of %s: %w", one.identity, err)
	}
	leaf, err := svid.Verify(issued.Chain, c.z.roots, one.identity, request.Public)
	if err != nil {
		return renewal, fmt.Errorf("verifying a certificate of %s: %w", one.identity, err)
	}
	event.Sent, event.Verified, event.Expires = issued.Sent, time.Now(), leaf.NotAfter
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2), nil
}
