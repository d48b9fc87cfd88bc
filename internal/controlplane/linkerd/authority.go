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
	"net"
	"os"
	"path/filepath"
	"time"
)

// selfSigned is a certificate that is signed by its own key. Both are in PEM.
type selfSigned struct{ certificate, key []byte }

// lifetime is the lifetime of the certificates of `linkerd install`.
const lifetime = 365 * 24 * time.Hour

// newAuthority makes the certificate that Identity issues by, which is its own trust anchor, as that of
// `linkerd install`.
func newAuthority() (selfSigned, error) {
	return newSelfSigned(&x509.Certificate{
		Subject: pkix.Name{CommonName: "identity." + namespace + "." + trustDomain},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
}

// newWebhookCertificate makes the certificate that the injector serves with.
func newWebhookCertificate() (selfSigned, error) {
	return newSelfSigned(&x509.Certificate{
		Subject:     pkix.Name{CommonName: injectorName + "." + namespace + ".svc"},
		IPAddresses: []net.IP{net.ParseIP(webhookAddress)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func newSelfSigned(template *x509.Certificate) (selfSigned, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return selfSigned{}, fmt.Errorf("making the key of %s: %w", template.Subject.CommonName, err)
	}
	now := time.Now()
	template.SerialNumber = big.NewInt(1)
	template.NotBefore, template.NotAfter = now.Add(-time.Minute), now.Add(lifetime)
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return selfSigned{}, fmt.Errorf("making the certificate of %s: %w", template.Subject.CommonName, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return selfSigned{}, fmt.Errorf("encoding the key of %s: %w", template.Subject.CommonName, err)
	}
	return selfSigned{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}, nil
}

// write writes the files that Identity reads into a folder of their own in dir, and returns its name.
func (a selfSigned) write(dir string) (string, error) {
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
