// Package ztunnel simulates the behaviour of Istio's ztunnel, the proxy of a node in
// ambient mode, toward its control plane: the ADS stream with its two types, and the
// certificates of the workloads of its node. It follows ztunnel's src/xds/client.rs,
// src/identity and src/cert_fetcher.rs of release 1.31.
//
// The adapter of the control plane decides which node it serves and how it gets its
// tokens; pkg/convergence decides what it should hold. For the latter it reports, in
// addition to the resources, the endpoints of each service that result from its
// workloads: see Endpoints.
//
// The on-demand subscription, which is off by default, is not simulated.
package ztunnel

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"sync"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Issuer requests certificates on behalf of other identities than the caller's own. Its
// methods may be called concurrently.
type Issuer interface {
	// IssueFor is like proxy.Issuer's Issue, for an identity that the holder of the token
	// impersonates.
	IssueFor(ctx context.Context, token, identity string, csrPEM []byte) (proxy.Issued, error)
	io.Closer
}

// Services are a ztunnel's dependencies. Store and Observer are required.
type Services struct {
	Store    *xdsprobe.Store   // shared by a fleet; of Types
	Observer proxy.Observer    // receives the events; it is called with a lock held and must not call the ztunnel
	Token    proxy.TokenSource // of stream and certificate requests; nil = there are no tokens
	Issuer   Issuer            // of certificates; nil = it requests none. It is closed at the end of Run.
	Backends *proxy.Backends   // Services that the Spec's address may be one of; nil = it is none
}

// Ztunnel is a simulated ztunnel.
type Ztunnel struct {
	// fixed after New
	id       string
	roots    *x509.CertPool // nil for plaintext
	services Services
	slowdown proxy.Slowdown
	client   *xdsprobe.Client

	held         *held // only by the client's events, which come one after the other
	certificates certificates
}

var _ proxy.Proxy = (*Ztunnel)(nil)

// New makes a ztunnel from a specification, which must have a node. It returns an error
// for an invalid specification.
func New(spec proxy.Spec, services Services) (*Ztunnel, error) {
	if spec.Node == "" {
		return nil, errors.New("a ztunnel needs a node")
	}
	z := &Ztunnel{id: spec.ID, services: services, slowdown: spec.Slowdown, held: newHeld(spec.Node)}
	z.certificates.prepare(z)
	z.client = xdsprobe.New(xdsprobe.Config{
		ID:         spec.ID,
		Address:    spec.Address,
		Backends:   services.Backends,
		ServerName: spec.ServerName,
		RootPEM:    spec.RootPEM,
		NodeID:     spec.NodeID,
		Metadata:   spec.Metadata,
		Build:      []byte{}, // it says nothing else of itself
		NodeInEach: true,
		Headers:    spec.Headers,
		Types:      []convergence.Type{Address, Authorization},
		Keepalive:  spec.Keepalive,
		Token:      services.Token,
		Retry:      new(backoff).next,
		Slowdown:   spec.Slowdown,
	}, services.Store, observer{services.Observer, z})
	if err := z.client.Err(); err != nil {
		return nil, err
	}
	z.roots = z.client.Roots()
	return z, nil
}

// Run implements proxy.Proxy.
func (z *Ztunnel) Run(ctx context.Context) error {
	if z.services.Issuer == nil {
		return z.client.Run(ctx)
	}
	defer z.services.Issuer.Close()
	ctx, cancel := context.WithCancel(ctx)
	var requesting sync.WaitGroup
	requesting.Go(func() { z.certificates.run(ctx) })
	err := z.client.Run(ctx)
	cancel()
	requesting.Wait()
	return err
}

// Reset implements proxy.Proxy.
func (z *Ztunnel) Reset() { z.client.Reset() }

// Renew implements proxy.Proxy: it renews the certificates of all identities.
func (z *Ztunnel) Renew() { z.certificates.renew() }

// Holdings implements proxy.Proxy.
func (z *Ztunnel) Holdings() map[convergence.Type]proxy.Holding { return z.client.Holdings() }

// Held implements proxy.Proxy.
func (z *Ztunnel) Held() []*proxy.Resource { return z.client.Held() }

// Draining implements proxy.Proxy: a ztunnel has no listeners from the control plane.
func (z *Ztunnel) Draining() []convergence.Key { return nil }

// observer receives the events of a ztunnel's client.
type observer struct {
	proxy.Observer
	z *Ztunnel
}

// Updated adds to an update the resulting changes of services and of the node's pods.
func (o observer) Updated(id string, u proxy.Update) {
	u.Node = o.z.held.take(&u.Update)
	o.z.certificates.take(u.Node, func() { o.Observer.Updated(id, u) })
}
