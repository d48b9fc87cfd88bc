// Package credential has what tests of proxies, and of the servers that they connect
// to, need to trust each other: a certificate authority, keys and tokens. Its functions
// panic where they fail: nothing but a lack of randomness makes them fail.
package credential

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/proxy"
)

// Authority is a certificate authority.
type Authority struct {
	Root    *x509.Certificate
	RootPEM []byte

	life time.Duration
	key  crypto.Signer
}

// NewAuthority returns an authority whose certificates are valid for a time.
func NewAuthority(life time.Duration) *Authority {
	a := &Authority{life: life, key: NewKey()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der := Must(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))
	a.Root = Must(x509.ParseCertificate(der))
	a.RootPEM = EncodeCertificate(der)
	return a
}

// Sign returns the certificate, in DER, that a template describes, of a key.
func (a *Authority) Sign(template *x509.Certificate, key crypto.PublicKey) []byte {
	template.SerialNumber = big.NewInt(2)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(a.life)
	return Must(x509.CreateCertificate(rand.Reader, template, a.Root, key, a.key))
}

// Pair returns a certificate for the names, with a new key.
func (a *Authority) Pair(names ...string) tls.Certificate {
	key := NewKey()
	return tls.Certificate{Certificate: [][]byte{a.Sign(&x509.Certificate{DNSNames: names}, key.Public())}, PrivateKey: key}
}

// Pool returns a pool that holds the authority's root alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Root)
	return pool
}

// NewKey returns a new P-256 key.
func NewKey() *ecdsa.PrivateKey { return Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

// EncodeCertificate returns a certificate, given in DER, as PEM.
func EncodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// EncodeKey returns a private key as PEM, in PKCS #8.
func EncodeKey(key crypto.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: Must(x509.MarshalPKCS8PrivateKey(key))})
}

// Must returns a value, and panics if there is an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Tokens is a [proxy.TokenSource] of numbered tokens: "token1", "token2" and so on.
type Tokens struct {
	Life time.Duration // of each token; 0 = it does not expire

	mu    sync.Mutex
	given int
	err   error
}

// Token is part of proxy.TokenSource.
func (t *Tokens) Token(context.Context) (proxy.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return proxy.Token{}, t.err
	}
	t.given++
	token := proxy.Token{Value: fmt.Sprint("token", t.given), Waited: time.Millisecond}
	if t.Life > 0 {
		token.Expires = time.Now().Add(t.Life)
	}
	return token, nil
}

// Fail has every further request fail with an error, until it is nil.
func (t *Tokens) Fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// Given returns how many tokens were given.
func (t *Tokens) Given() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.given
}
