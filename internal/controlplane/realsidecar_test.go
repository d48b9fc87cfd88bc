package controlplane

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/proxy"
)

// authorityFor issues certificates that end at a time.
type authorityFor struct{ ends time.Time }

func (a authorityFor) issuer(proxy.Spec) (Issuer, error) { return a, nil }

func (authorityFor) Close() error { return nil }

func (a authorityFor) Issue(context.Context, string, []byte) (proxy.Issued, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return proxy.Issued{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: a.ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return proxy.Issued{Chain: [][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}}, err
}

// The first certificate to end counts, and only once it has.
func TestCertificatesThatEnd(t *testing.T) {
	end := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	place := RealSidecars{Expiry: &CertificateExpiry{}}
	if got := place.Expiry.Warning("rows", end); got != nil {
		t.Errorf("without any: %+v", got)
	}
	for _, ends := range []time.Time{end.Add(time.Hour), end, end.Add(2 * time.Hour)} {
		place.Adapter = &ControlPlane{Real: &RealProxies{Issuer: authorityFor{ends}.issuer}}
		real := RealProxy{KeyFile: "key", ChainFile: "chain", Files: map[string][]byte{}}
		err := place.certify(t.Context(), real, func(context.Context) (proxy.Token, error) { return proxy.Token{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(real.Files["chain"], []byte("-----BEGIN CERTIFICATE")) || !bytes.HasPrefix(real.Files["key"], []byte("-----BEGIN PRIVATE")) {
			t.Errorf("files %q", real.Files)
		}
	}
	if got := place.Expiry.Warning("rows", end); got != nil {
		t.Errorf("when all last: %+v", got)
	}
	const want = "Envoys without an agent keep the certificate of their start, and the first such ended at 2026-11-21T12:00:00Z, 1m30s before the run: its sidecar makes no connection with another since"
	if got := place.Expiry.Warning("rows", end.Add(90*time.Second)).Sentence(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
