package svid

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A certificate is for an identity by its URI or, where that has no scheme, by its DNS name.
func TestVerifyIdentity(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri := &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/a/sa/b"}
	certificate := func(uris []*url.URL, names ...string) [][]byte {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), URIs: uris, DNSNames: names}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return [][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	}
	for title, tc := range map[string]struct {
		chain    [][]byte
		identity string
		want     string // of the error; "" = none
	}{
		"a URI":              {certificate([]*url.URL{uri}), uri.String(), ""},
		"another URI":        {certificate([]*url.URL{uri}), "spiffe://cluster.local/ns/a/sa/c", "want spiffe://cluster.local/ns/a/sa/c"},
		"no URI":             {certificate(nil, "b.a.cluster.local"), uri.String(), "it is for []"},
		"a name":             {certificate(nil, "b.a.cluster.local"), "b.a.cluster.local", ""},
		"another name":       {certificate(nil, "c.a.cluster.local"), "b.a.cluster.local", "it is for [c.a.cluster.local]"},
		"one of two names":   {certificate(nil, "b.a.cluster.local", "c"), "b.a.cluster.local", "want b.a.cluster.local"},
		"a name and a URI":   {certificate([]*url.URL{uri}, "b.a.cluster.local"), "b.a.cluster.local", ""},
		"none that is asked": {certificate(nil), "", ""},
	} {
		_, err := Verify(tc.chain, nil, tc.identity, nil)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", title, err, tc.want)
		}
	}
}

// A request is for a URI without a subject, or for a DNS name that is its subject, too.
func TestNewRequest(t *testing.T) {
	keys := func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }
	for identity, want := range map[string]string{
		"spiffe://cluster.local/ns/a/sa/b": "URIs [spiffe://cluster.local/ns/a/sa/b], names [], subject O=",
		"b.a.cluster.local":                "URIs [], names [b.a.cluster.local], subject CN=b.a.cluster.local",
	} {
		request, err := NewRequest(keys, identity)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(request.PEM)
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("URIs %v, names %v, subject %s", csr.URIs, csr.DNSNames, csr.Subject); got != want {
			t.Errorf("a request for %s has %s, want %s", identity, got, want)
		}
	}
}
