package istioagent

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

const identity = "spiffe://cluster.local/ns/default/sa/test"

// authority is a certificate authority, and an Issuer that fails as it is set.
type authority struct {
	root    *x509.Certificate
	rootPEM []byte
	key     *ecdsa.PrivateKey
	life    time.Duration
	forge   func(*x509.Certificate) // changes what is issued

	mu     sync.Mutex
	fails  []error // of the next requests
	csrs   [][]byte
	tokens []string
	times  []time.Time
}

func newAuthority(life time.Duration) *authority {
	a := &authority{life: life, key: newKey()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))
	a.root = must(x509.ParseCertificate(der))
	a.rootPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (a *authority) sign(template *x509.Certificate, key crypto.PublicKey) []byte {
	template.SerialNumber = big.NewInt(2)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(a.life)
	return must(x509.CreateCertificate(rand.Reader, template, a.root, key, a.key))
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
	csr := must(x509.ParseCertificateRequest(block.Bytes))
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
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.sign(template, key)})
	return proxy.Issued{Chain: [][]byte{leaf, a.rootPEM}, Sent: sent, Received: time.Now()}, nil
}

// ticket is a TokenSource of numbered tokens.
type ticket struct {
	life time.Duration

	mu    sync.Mutex
	given int
	err   error
}

func (t *ticket) Token(context.Context) (proxy.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return proxy.Token{}, t.err
	}
	t.given++
	token := proxy.Token{Value: fmt.Sprint("token", t.given), Waited: time.Millisecond}
	if t.life > 0 {
		token.Expires = time.Now().Add(t.life)
	}
	return token, nil
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

// Held are the names held as the updates report them, as "CDS a".
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
