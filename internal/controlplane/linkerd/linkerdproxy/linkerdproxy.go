// Package linkerdproxy simulates Linkerd's proxy toward its control plane: the profile and the endpoints
// of each service that its workload calls, which it looks up at Destination, and its certificate
// from Identity. It follows linkerd2-proxy of June 2021 (v2.148), which the pinned release of Linkerd
// injects: linkerd/service-profiles, linkerd/proxy/api-resolve and linkerd/proxy/identity.
//
// What it calls, how it gets its tokens and what it should hold is left to the adapter.
//
// Differences: a workload calls all its services as soon as its proxy runs, and never stops. Both
// services are reached without TLS, because it is their own proxies that add it. All streams are on one
// connection, and when one of them ends, all are opened again. Traffic splits are not resolved.
package linkerdproxy

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// The types of what a proxy holds, by the methods of Destination that it gets them with. They are
// never assigned again.
var (
	Profile   = convergence.TypeOf("Profile")   // GetProfile: routes of a service
	Addresses = convergence.TypeOf("Addresses") // Get: endpoints of a service port
)

// Types returns the types of what a proxy holds. Nobody subscribes to them as xDS has it: they are what
// is counted.
func Types() []xdsprobe.ResourceType {
	return []xdsprobe.ResourceType{
		{Name: Profile, URL: "io.linkerd.proxy.destination.Destination/GetProfile"},
		{Name: Addresses, URL: "io.linkerd.proxy.destination.Destination/Get"},
	}
}

// Services are the dependencies of a proxy.
type Services struct {
	Counters *xdsprobe.Counters // shared by a fleet; of Types
	Observer proxy.Observer     // receives the events; it is called with a lock held and must not call the proxy
	Token    proxy.TokenSource  // of certificate requests; nil = it requests none
	Backends *proxy.Backends    // Services that addresses of the Spec may be one of; nil = they are none
}

// Proxy is a simulated proxy of Linkerd.
type Proxy struct {
	// fixed after New
	spec     proxy.Spec
	context  string // the context token of lookups
	roots    *x509.CertPool
	services Services
	renewals chan struct{} // holds a notice when a new certificate is to be requested now

	token token // only by the goroutine of certify

	cutting sync.Mutex
	cut     context.CancelCauseFunc // ends the present attempt; nil between two

	reporting sync.Mutex // held while events of lookups are reported, which come one after the other

	mu   sync.Mutex
	held map[convergence.Key]*proxy.Resource
}

var _ proxy.Proxy = (*Proxy)(nil)

// New makes the proxy of a specification: Address is Destination's, Authority that of Identity, and
// Metadata the context of lookups. It fails for one that cannot work.
func New(spec proxy.Spec, services Services) (*Proxy, error) {
	p := &Proxy{spec: spec, services: services, renewals: make(chan struct{}, 1), held: map[convergence.Key]*proxy.Resource{}}
	token, err := json.Marshal(spec.Metadata)
	if err != nil {
		return nil, fmt.Errorf("writing the context token of %s: %w", spec.ID, err)
	}
	p.context = string(token)
	p.roots = x509.NewCertPool()
	if services.Token != nil && !p.roots.AppendCertsFromPEM(spec.RootPEM) {
		return nil, fmt.Errorf("reading the roots of %s: want a certificate in PEM", spec.ID)
	}
	if spec.Address == "" || services.Token != nil && spec.Authority == "" {
		return nil, errors.New("a proxy of Linkerd needs the addresses of Destination and Identity")
	}
	return p, nil
}

// Run is part of proxy.Proxy.
func (p *Proxy) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	if p.services.Token != nil {
		parts.Go(func() { p.certify(ctx) })
	}
	p.discover(ctx)
	parts.Wait()
	return nil
}

// errReset is the error of an attempt that Reset ended.
var errReset = errors.New("the connection was reset")

// Reset is part of proxy.Proxy.
func (p *Proxy) Reset() {
	p.cutting.Lock()
	defer p.cutting.Unlock()
	if p.cut != nil {
		p.cut(errReset)
	}
}

func (p *Proxy) setCut(cut context.CancelCauseFunc) {
	p.cutting.Lock()
	defer p.cutting.Unlock()
	p.cut = cut
}

// Renew is part of proxy.Proxy.
func (p *Proxy) Renew() {
	select {
	case p.renewals <- struct{}{}:
	default: // it is due already
	}
}

// Holdings is part of proxy.Proxy.
func (p *Proxy) Holdings() map[convergence.Type]proxy.Holding {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[convergence.Type]proxy.Holding{}
	for key, r := range p.held {
		of := all[key.Type]
		of.Resources++
		of.Bytes += int64(r.Size)
		all[key.Type] = of
	}
	return all
}
