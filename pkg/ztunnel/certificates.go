package ztunnel

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/pkg/proxy"
)

// Waits after a certificate could not be had, for each identity by itself: 1 s first, then
// twice the last, each up to a fifth more or less (src/identity/manager.rs).
const (
	firstRetry  = time.Second
	longestWait = 150 * time.Second
	retryJitter = 0.2
)

// certificates are those of the identities of a node. One is requested after the other:
// first those that were never requested, in the order in which their workloads came.
type certificates struct {
	z    *Ztunnel
	wake chan struct{} // holds a notice when something is due, or will be

	// mu is held while events are reported, so that they have the order of what happened.
	mu    sync.Mutex
	of    map[string]*certificate
	queue []*certificate // not requested yet, in order

	renewing sync.Mutex // guards all; Renew must not wait for mu, as observers may call it
	all      bool       // all are to be renewed now
}

// certificate is that of one identity.
type certificate struct {
	identity  string
	requested bool      // once at least
	due       time.Time // of the next request; zero = now
	failed    int       // one after the other
	forgotten bool
}

func (c *certificates) prepare(z *Ztunnel) {
	c.z, c.wake, c.of = z, make(chan struct{}, 1), map[string]*certificate{}
}

// take takes what changed of the node's pods; nil = nothing. Meanwhile it calls report.
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
	c.notify()
}

// renew has all certificates renewed now.
func (c *certificates) renew() {
	c.renewing.Lock()
	c.all = true
	c.renewing.Unlock()
	c.notify()
}

func (c *certificates) notify() {
	select {
	case c.wake <- struct{}{}:
	default: // there is a notice already
	}
}

// run requests certificates until ctx ends.
func (c *certificates) run(ctx context.Context) {
	for ctx.Err() == nil {
		one, wait := c.next(time.Now())
		if one != nil {
			c.request(ctx, one)
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

// idle is how long nothing is looked for where nothing will be due.
const idle = time.Hour

// next is the certificate to be requested now; nil if there is none for so long.
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
	for len(c.queue) > 0 {
		one := c.queue[0]
		c.queue = c.queue[1:]
		if !one.forgotten {
			one.requested = true
			return one, 0
		}
	}
	var first *certificate
	for _, one := range c.of {
		if one.requested && (first == nil || one.due.Before(first.due)) {
			first = one
		}
	}
	switch {
	case first == nil:
		return nil, idle
	case first.due.After(now):
		return nil, first.due.Sub(now)
	}
	return first, 0
}

// request requests a certificate once, and decides when to request it again.
func (c *certificates) request(ctx context.Context, one *certificate) {
	event := proxy.Certificate{Identity: one.identity, Attempt: one.failed + 1}
	renewal, err := c.obtain(ctx, one, &event)
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		one.failed, one.due = 0, renewal
		if now := time.Now(); renewal.Before(now) { // those that are due already come first
			one.due = now
		}
		c.z.services.Store.Counters().Certificates.Add(1)
	} else {
		one.failed++
		event.Err, event.Backoff = err, c.z.slowdown.Of(retryAfter(one.failed))
		one.due = time.Now().Add(event.Backoff)
	}
	if !one.forgotten { // else nobody has use for it
		c.z.services.Observer.Certified(c.z.id, event)
	}
}

// retryAfter is the wait after so many failures, one at least.
func retryAfter(failures int) time.Duration {
	wait := longestWait
	if failures <= 8 {
		wait = min(longestWait, firstRetry<<(failures-1))
	}
	return time.Duration(float64(wait) * (1 + retryJitter*(2*mathrand.Float64()-1)))
}

// newKey makes a private key as ztunnel does.
func newKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// obtain sends one request, verifies what comes, and returns when to renew it: at half of
// its lifetime.
func (c *certificates) obtain(ctx context.Context, one *certificate, event *proxy.Certificate) (renewal time.Time, err error) {
	request, err := svid.NewRequest(newKey, one.identity)
	if err != nil {
		return renewal, err
	}
	event.Key = request.Took
	token, err := c.z.client.Token(ctx)
	if err != nil {
		return renewal, err
	}
	called := time.Now()
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
	event.Sent, event.Wait = issued.Sent, issued.Sent.Sub(called)
	event.Verified, event.Expires = time.Now(), leaf.NotAfter
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2), nil
}
