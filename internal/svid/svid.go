// Package svid makes requests for X.509 certificates of SPIFFE identities (SVIDs), and
// verifies the answers of a certificate authority.
package svid

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Request is a certificate signing request and the key that it is for.
type Request struct {
	Public crypto.PublicKey
	DER    []byte
	PEM    []byte        // of the same
	Took   time.Duration // getting the key and signing
}

// NewKey makes a private key as Istio's ztunnel and Linkerd's proxy-identity make theirs: ECDSA with curve P-256.
func NewKey() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// NewRequest makes a request for an identity. A SPIFFE identity becomes a URI without a
// subject, as in Istio's agent. A DNS name becomes a DNS name and the subject's common
// name, as in Linkerd.
func NewRequest(keys func() (crypto.Signer, error), identity string) (*Request, error) {
	begun := time.Now()
	key, err := keys()
	if err != nil {
		return nil, fmt.Errorf("getting a private key: %w", err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: identity}, DNSNames: []string{identity}}
	if isURI(identity) {
		uri, err := url.Parse(identity)
		if err != nil {
			return nil, fmt.Errorf("parsing identity %q: %w", identity, err)
		}
		template = &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{""}}, URIs: []*url.URL{uri}}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	block := &pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}
	return &Request{key.Public(), der, pem.EncodeToMemory(block), time.Since(begun)}, nil
}

// Verify returns the leaf of a chain in PEM. The chain must lead to the roots unless
// these are nil, and the leaf must be for the identity unless that is "", and for the
// public key unless that is nil.
func Verify(chain [][]byte, roots *x509.CertPool, identity string, public crypto.PublicKey) (*x509.Certificate, error) {
	certificates, err := parse(chain)
	if err != nil {
		return nil, err
	}
	leaf := certificates[0]
	if roots != nil {
		intermediates := x509.NewCertPool()
		for _, c := range certificates[1:] {
			intermediates.AddCert(c)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{
			Roots:         roots,
			Intermediates: intermediates,
			KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
		}); err != nil {
			return nil, err
		}
	}
	if names := namesOf(leaf, identity); identity != "" && (len(names) != 1 || names[0] != identity) {
		return nil, fmt.Errorf("it is for %v, want %s", names, identity)
	}
	if public == nil {
		return leaf, nil
	}
	if key, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !key.Equal(public) {
		return nil, errors.New("it is for another key")
	}
	return leaf, nil
}

// namesOf returns the identities of a certificate of the same kind as the wanted one:
// URIs, or DNS names if it has no scheme.
func namesOf(leaf *x509.Certificate, wanted string) (names []string) {
	if !isURI(wanted) {
		return leaf.DNSNames
	}
	for _, uri := range leaf.URIs {
		names = append(names, uri.String())
	}
	return names
}

// isURI reports whether an identity is a URI, else a DNS name.
func isURI(identity string) bool { return strings.Contains(identity, "://") }

// parse parses certificates in PEM, of which there must be one at least.
func parse(chain [][]byte) (certificates []*x509.Certificate, err error) {
	rest := bytes.Join(chain, []byte("\n"))
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, c)
	}
	if len(certificates) == 0 {
		return nil, errors.New("no certificate in the answer")
	}
	return certificates, nil
}
