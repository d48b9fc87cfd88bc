// Package istioagent simulates a sidecar with Istio's agent: the ADS client of
// pkg/xdsprobe with the agent's credentials. The agent requests a certificate in parallel
// to the stream and with the same token, retries in its rounds, renews a certificate at
// half of its life, and makes the client's listeners wait for the first one if a cluster
// uses TLS. Where the control plane delivers certificates over SDS instead, they are
// verified and reported in the same way.
//
// The adapters of control planes decide which pod has which Spec, and where tokens and
// certificates come from.
package istioagent

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"

	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Services are an agent's dependencies, in addition to its Spec.
type Services struct {
	Store    *xdsprobe.Store   // shared by a fleet; its resource types are what the proxy subscribes to
	Observer proxy.Observer    // receives the proxy's events
	Token    proxy.TokenSource // of stream and certificate requests; nil = there are no tokens

	// Issuer signs certificates; nil = the agent requests none. If it is an
	// io.Closer, it is closed at the end of Run.
	Issuer proxy.Issuer
	Keys   func() (crypto.Signer, error) // a private key for a certificate; needed with Issuer

	Types []convergence.Type // of the store's that the proxy subscribes to; nil = all

	Backends *proxy.Backends // Services that the Spec's address may be one of; nil = it is none

	// BackoffBase and BackoffMax bound the wait before a stream is retried; 0 = Envoy's
	// 500 ms and 30 s.
	BackoffBase, BackoffMax time.Duration
}

var _ proxy.Proxy = (*Agent)(nil)

// Agent is a proxy with its agent.
type Agent struct {
	// fixed after New
	id, identity string
	roots        *x509.CertPool // nil for plaintext
	services     Services
	slowdown     proxy.Slowdown
	client       *xdsprobe.Client

	certificate certificate
}

// New makes an agent that does not run yet. It returns an error for an invalid Spec.
func New(spec proxy.Spec, services Services) (*Agent, error) {
	if services.Issuer != nil && services.Keys == nil {
		return nil, errors.New("an agent with an issuer needs keys")
	}
	a := &Agent{id: spec.ID, identity: spec.Identity, services: services, slowdown: spec.Slowdown}
	config := xdsprobe.Config{
		ID:               spec.ID,
		Address:          spec.Address,
		Backends:         services.Backends,
		ServerName:       spec.ServerName,
		RootPEM:          spec.RootPEM,
		Variant:          xdsprobe.Variant(spec.XDS),
		NodeID:           spec.NodeID,
		NodeCluster:      spec.NodeCluster,
		Metadata:         spec.Metadata,
		Build:            spec.Build,
		Headers:          spec.Headers,
		Keepalive:        spec.Keepalive,
		Drain:            spec.Drain,
		Types:            services.Types,
		Token:            services.Token,
		AwaitCertificate: services.Issuer != nil,
		BackoffBase:      services.BackoffBase,
		BackoffMax:       services.BackoffMax,
		Slowdown:         spec.Slowdown,
	}
	if services.Issuer == nil {
		config.OnSecret = a.onSecret
	}
	if spec.ClientCertificatePEM != nil {
		own, err := tls.X509KeyPair(spec.ClientCertificatePEM, spec.ClientKeyPEM)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate of %s: %w", spec.ID, err)
		}
		config.Certificate = func() (*tls.Certificate, error) { return &own, nil }
	}
	a.client = xdsprobe.New(config, services.Store, services.Observer)
	if err := a.client.Err(); err != nil {
		return nil, err
	}
	a.roots = a.client.Roots()
	a.certificate.agent = a
	return a, nil
}

// Run implements proxy.Proxy.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	if closer, ok := a.services.Issuer.(io.Closer); ok {
		defer closer.Close()
	}
	defer a.certificate.task.Stop()
	defer cancel()
	if a.services.Issuer != nil {
		again := func() { a.certificate.request(ctx) }
		a.certificate.again.Store(&again)
		a.certificate.task.After(0, again)
	}
	return a.client.Run(ctx)
}

// Reset implements proxy.Proxy.
func (a *Agent) Reset() { a.client.Reset() }

// Renew implements proxy.Proxy. It does nothing for an agent without an Issuer.
func (a *Agent) Renew() {
	if again := a.certificate.again.Load(); again != nil {
		a.certificate.task.After(0, *again)
	}
}

// Holdings implements proxy.Proxy.
func (a *Agent) Holdings() map[convergence.Type]proxy.Holding { return a.client.Holdings() }

// Held implements proxy.Proxy.
func (a *Agent) Held() []*proxy.Resource { return a.client.Held() }

// Draining implements proxy.Proxy.
func (a *Agent) Draining() []convergence.Key { return a.client.Draining() }

// onSecret reports a certificate that was received over SDS, together with its key.
// requested is zero if it was sent unasked.
func (a *Agent) onSecret(_ string, secret *xdsprobe.Secret, requested, received time.Time) {
	event := proxy.Certificate{Attempt: 1, Sent: requested}
	if !requested.IsZero() {
		a.services.Store.Counters().CertificateRequests.Add(1)
	}
	leaf, err := svid.Verify([][]byte{secret.Chain}, a.roots, a.identity, nil)
	if err != nil {
		event.Err = fmt.Errorf("verifying a certificate: %w", err)
	} else {
		event.Verified, event.Expires = received, leaf.NotAfter
		a.services.Store.Counters().Certificates.Add(1)
	}
	a.services.Observer.Certified(a.id, event)
}
