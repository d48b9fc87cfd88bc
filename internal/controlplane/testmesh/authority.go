package testmesh

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	serverName      = "control-plane.testmesh" // in the server's certificate
	authoritySecret = "authority"              // in Namespace; holds the root and its key
	trustDomain     = "testmesh"
	lifetime        = 24 * time.Hour  // of every certificate
	clockSkew       = 2 * time.Minute // of a verifier
)

// workload is the workload of one sidecar, as its bootstrap certificate states it.
type workload struct{ namespace, pod, service, account string }

// id names the sidecar: its node.id.
func (w workload) id() string { return w.namespace + "/" + w.pod }

// identity is the SPIFFE URI of the workload.
func (w workload) identity() string { return identityPrefix(w.namespace) + w.account }

// identityPrefix is what all identities of a namespace begin with.
func identityPrefix(namespace string) string {
	return "spiffe://" + trustDomain + "/ns/" + namespace + "/sa/"
}

// bootstrapScheme is the scheme of the URI in a bootstrap certificate:
// bootstrap://NAMESPACE/POD/SERVICE/ACCOUNT.
const bootstrapScheme = "bootstrap"

// workloadOf reads a bootstrap certificate.
func workloadOf(c *x509.Certificate) (w workload, err error) {
	if len(c.URIs) != 1 || c.URIs[0].Scheme != bootstrapScheme {
		return w, errors.New("the client's certificate is no bootstrap certificate")
	}
	parts := strings.Split(c.URIs[0].Path, "/")
	if len(parts) != 4 {
		return w, fmt.Errorf("the client's certificate is for %s: want a bootstrap certificate", c.URIs[0])
	}
	return workload{namespace: c.URIs[0].Host, pod: parts[1], service: parts[2], account: parts[3]}, nil
}

// authority issues all certificates of the mesh from one root.
type authority struct {
	root    *x509.Certificate
	rootPEM []byte
	key     *ecdsa.PrivateKey
}

// newAuthority makes an authority with a new root.
func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the root's key: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "testmesh"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	complete(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the root: %w", err)
	}
	root, err := x509.ParseCertificate(der)
	return &authority{root: root, rootPEM: encode("CERTIFICATE", der), key: key}, err
}

// ensureAuthority returns the authority that the cluster keeps, made if there is none
// yet. The namespace must exist.
func ensureAuthority(ctx context.Context, client kubernetes.Interface) (*authority, error) {
	a, err := readAuthority(ctx, client)
	if !apierrors.IsNotFound(err) {
		return a, err
	}
	if a, err = newAuthority(); err != nil {
		return nil, err
	}
	key, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("encoding the root's key: %w", err)
	}
	_, err = client.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: authoritySecret},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: a.rootPEM, corev1.TLSPrivateKeyKey: encode("EC PRIVATE KEY", key)},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("storing the authority in secret %s/%s: %w", Namespace, authoritySecret, err)
	}
	return a, nil
}

// readAuthority reads the authority that the cluster keeps. The error says IsNotFound
// if there is none.
func readAuthority(ctx context.Context, client kubernetes.Interface) (*authority, error) {
	secret, err := client.CoreV1().Secrets(Namespace).Get(ctx, authoritySecret, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading secret %s/%s: %w", Namespace, authoritySecret, err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("parsing secret %s/%s: %w", Namespace, authoritySecret, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("parsing secret %s/%s: want an ECDSA key", Namespace, authoritySecret)
	}
	return &authority{root: pair.Leaf, rootPEM: secret.Data[corev1.TLSCertKey], key: key}, nil
}

// bootstrap issues the certificate that a sidecar shows the control plane.
func (a *authority) bootstrap(w workload) (chainPEM, keyPEM []byte, err error) {
	uri := &url.URL{Scheme: bootstrapScheme, Host: w.namespace, Path: "/" + w.pod + "/" + w.service + "/" + w.account}
	return a.issue(&x509.Certificate{URIs: []*url.URL{uri}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// service issues the certificate that a sidecar shows other sidecars.
func (a *authority) service(w workload) (chainPEM, keyPEM []byte, err error) {
	uri, err := url.Parse(w.identity())
	if err != nil {
		return nil, nil, fmt.Errorf("issuing a certificate for %s: %w", w.id(), err)
	}
	return a.issue(&x509.Certificate{URIs: []*url.URL{uri}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}})
}

// serving is how the control plane serves: over TLS, to clients that show a
// certificate of the authority.
func (a *authority) serving() (*tls.Config, error) {
	chain, key, err := a.issue(&x509.Certificate{DNSNames: []string{serverName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		return nil, err
	}
	own, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("reading the server's certificate: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.root)
	return &tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS12,
	}, nil
}

// issue signs a certificate for a new key. Both are PEM.
func (a *authority) issue(template *x509.Certificate) (chainPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	complete(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	return encode("CERTIFICATE", der), encode("EC PRIVATE KEY", private), err
}

// complete sets what all certificates have in common.
func complete(template *x509.Certificate) {
	now := time.Now()
	template.SerialNumber = big.NewInt(now.UnixNano())
	template.NotBefore, template.NotAfter = now.Add(-clockSkew), now.Add(lifetime)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
