package istio

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// authoritySecret holds istiod's own certificate authority, in its namespace.
const authoritySecret = "istio-ca-secret"

// ServingCertificate returns a certificate of istiod's name, and this host's loopback
// address, from istiod's own authority, good for a day: a program that shows it
// is taken for istiod by every proxy of the mesh. It is there for what stands between proxies and
// istiod to see what they say; the key of the authority is read from the
// cluster, which is the run's own.
func (c *ControlPlane) ServingCertificate(ctx context.Context) (tls.Certificate, error) {
	secret, err := c.client.CoreV1().Secrets(namespace).Get(ctx, authoritySecret, metav1.GetOptions{})
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading istiod's authority: %w", err)
	}
	authority, err := tls.X509KeyPair(secret.Data["ca-cert.pem"], secret.Data["ca-key.pem"])
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading istiod's authority: %w", err)
	}
	if authority.Leaf == nil {
		return tls.Certificate{}, errors.New("reading istiod's authority: no certificate in it")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a serving key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: c.serverName()},
		DNSNames:     []string{c.serverName(), customHost},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("signing a serving certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Serving returns the address at which istiod serves proxies, the name that its certificate carries, and
// the roots that verify it.
func (c *ControlPlane) Serving() (address, name string, rootPEM []byte) {
	return c.reached.address, c.serverName(), c.root
}
