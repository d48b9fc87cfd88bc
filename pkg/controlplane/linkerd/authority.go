package linkerd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// authority is the certificate that Identity issues by, which is its own trust anchor, as that of
// `linkerd install`. Both are in PEM.
type authority struct{ certificate, key []byte }

// authorityLifetime is that of `linkerd install`.
const authorityLifetime = 365 * 24 * time.Hour

func newAuthority() (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("making the key of the certificate authority: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "identity." + namespace + "." + trustDomain},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(authorityLifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, fmt.Errorf("making the certificate authority: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return authority{}, fmt.Errorf("encoding the key of the certificate authority: %w", err)
	}
	return authority{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}, nil
}

// write writes the files that Identity reads into a folder of their own in dir, and returns its name.
func (a authority) write(dir string) (string, error) {
	folder := filepath.Join(dir, "issuer")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of the certificate authority: %w", err)
	}
	for name, text := range map[string][]byte{"crt.pem": a.certificate, "key.pem": a.key} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return "", fmt.Errorf("writing the certificate authority: %w", err)
		}
	}
	return folder, nil
}
