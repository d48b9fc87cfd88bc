package istioagent

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"

	"scaler.mesh/scaler/test/credential"
)

const identity = "spiffe://cluster.local/ns/default/sa/test"

// authority is a certificate authority, and an Issuer that fails as it is set.
type authority struct {
	*credential.Authority
	forge func(*x509.Certificate) // changes what is issued

	mu     sync.Mutex
	fails  []error // of the next requests
	csrs   [][]byte
	tokens []string
	times  []time.Time
}

func newAuthority(life time.Duration) *authority {
	return &authority{Authority: credential.NewAuthority(life)}
}

// Issue is part of Issuer.
func (a *authority) Issue(_ context.Context, token string, csrPEM []byte) (proxy.Issued, error) {
	sent := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.csrs, a.tokens, a.times = append(a.csrs, csrPEM), append(a.tokens, token), append(a.times, sent)
	if len(a.fails) > 0 {
		err := a.fails[0]
		a.fails = a.fails[1:]
		return proxy.Issued{Sent: sent}, err
	}
	block, _ := pem.Decode(csrPEM)
	csr := credential.Must(x509.ParseCertificateRequest(block.Bytes))
	if err := csr.CheckSignature(); err != nil {
		return proxy.Issued{}, err
	}
	template := &x509.Certificate{URIs: csr.URIs}
	key := csr.PublicKey
	if a.forge != nil {
		a.forge(template)
		if template.PublicKey != nil {
			key = template.PublicKey
		}
	}
	leaf := credential.EncodeCertificate(a.Sign(template, key))
	return proxy.Issued{Chain: [][]byte{leaf, a.RootPEM}, Sent: sent, Received: time.Now()}, nil
}

// diary is an Observer that writes everything down.
type diary struct {
	agent *Agent
	store *xdsprobe.Store

	mu           sync.Mutex
	updates      []proxy.Update
	ended        []proxy.StreamEnded
	certificates []proxy.Certificate
	held         map[convergence.Key]bool
}

func (d *diary) note(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *diary) TokenFetched(string, proxy.TokenFetched) {}
func (d *diary) StreamOpened(string, proxy.StreamOpened) {}
func (d *diary) StreamEnded(_ string, e proxy.StreamEnded) {
	d.note(func() { d.ended = append(d.ended, e) })
}
func (d *diary) Certified(_ string, e proxy.Certificate) {
	d.note(func() { d.certificates = append(d.certificates, e) })
}
func (d *diary) Updated(_ string, e proxy.Update) {
	d.note(func() {
		if d.held == nil {
			d.held = make(map[convergence.Key]bool)
		}
		d.updates = append(d.updates, e)
		for _, k := range e.Removed {
			delete(d.held, k)
		}
		for _, r := range e.Set {
			d.held[r.Key] = true
		}
	})
}

// Held returns the names held as the updates report them, as "CDS a".
func (d *diary) Held() (names []string) {
	d.note(func() {
		for k := range d.held {
			names = append(names, k.String())
		}
	})
	slices.Sort(names)
	return names
}

func (d *diary) Certificates() (all []proxy.Certificate) {
	d.note(func() { all = slices.Clone(d.certificates) })
	return all
}

func (d *diary) Ended() (all []proxy.StreamEnded) {
	d.note(func() { all = slices.Clone(d.ended) })
	return all
}

func (d *diary) Complete() (complete bool) {
	d.note(func() { complete = len(d.updates) > 0 && d.updates[len(d.updates)-1].Complete })
	return complete
}
