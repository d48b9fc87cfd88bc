package server

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
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	securityv1 "istio.io/api/security/v1alpha1"
)

const (
	// ServerName is the name in the serving certificate.
	ServerName = "reference.scaler.mesh"

	rootLife        = 10 * 365 * 24 * time.Hour
	certificateLife = 24 * time.Hour // of what a request leaves open
	longestLife     = 90 * 24 * time.Hour
	clockSkew       = 2 * time.Minute // of a verifier, as Istio's authority allows for
)

// Authority issues certificates from a root of its own. Its key is an ECDSA one,
// so that signing costs some ten microseconds.
type Authority struct {
	root    *x509.Certificate
	rootPEM []byte
	key     *ecdsa.PrivateKey
}

// NewAuthority makes an authority with a new root.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the root's key: %w", err)
	}
	template, err := certificate(rootLife)
	if err != nil {
		return nil, err
	}
	template.Subject = pkix.Name{Organization: []string{"scaler"}, CommonName: "reference control plane"}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the root: %w", err)
	}
	return authority(der, key)
}

// ParseAuthority reads back what Encode returned.
func ParseAuthority(rootPEM, keyPEM []byte) (*Authority, error) {
	root, _ := pem.Decode(rootPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if root == nil || keyBlock == nil {
		return nil, errors.New("parsing the authority's root and key: want PEM")
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing the authority's key: %w", err)
	}
	return authority(root.Bytes, key)
}

func authority(der []byte, key *ecdsa.PrivateKey) (*Authority, error) {
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing the authority's root: %w", err)
	}
	return &Authority{root: root, rootPEM: encode("CERTIFICATE", der), key: key}, nil
}

// RootPEM returns the root's certificate.
func (a *Authority) RootPEM() []byte { return a.rootPEM }

// Encode returns the root and its key in PEM, to be kept secret.
func (a *Authority) Encode() (rootPEM, keyPEM []byte, err error) {
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the authority's key: %w", err)
	}
	return a.rootPEM, encode("EC PRIVATE KEY", der), nil
}

// serving makes the certificate of the server itself.
func (a *Authority) serving() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the serving key: %w", err)
	}
	template, err := certificate(rootLife)
	if err != nil {
		return tls.Certificate{}, err
	}
	template.DNSNames = []string{ServerName}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the serving certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// sign issues a certificate for the one URI that a request names, and returns
// that URI and the chain in PEM, leaf first. Only what follows from the request
// can be wrong with it.
func (a *Authority) sign(csrPEM []byte, life time.Duration, allowed func(uri string) error) ([]string, error) {
	block, _ := pem.Decode(csrPEM)
	if block == nil {
		return nil, errors.New("parsing a certificate request: want PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing a certificate request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("checking a certificate request: %w", err)
	}
	if len(request.URIs) != 1 {
		return nil, fmt.Errorf("checking a certificate request: it names %d URIs, want the workload's alone", len(request.URIs))
	}
	if err := allowed(request.URIs[0].String()); err != nil {
		return nil, err
	}
	template, err := certificate(life)
	if err != nil {
		return nil, err
	}
	template.URIs = request.URIs
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, request.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return []string{string(encode("CERTIFICATE", der)), string(a.rootPEM)}, nil
}

// certificate returns the template of all certificates.
func certificate(life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(life),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// certificates is the certificate API of Istio's agents.
type certificates struct {
	securityv1.UnimplementedIstioCertificateServiceServer
	authority *Authority
	count     *counters
	// identify returns who calls, "" where tokens are not looked at.
	identify func(ctx context.Context) (identity string, err error)
}

// CreateCertificate implements the certificate API: one request, one chain.
func (c *certificates) CreateCertificate(ctx context.Context, r *securityv1.IstioCertificateRequest) (*securityv1.IstioCertificateResponse, error) {
	c.count.certificateRequests.Inc()
	identity, err := c.identify(ctx)
	if err != nil {
		return nil, err
	}
	life := time.Duration(r.GetValidityDuration()) * time.Second
	if life <= 0 {
		life = certificateLife
	}
	chain, err := c.authority.sign([]byte(r.GetCsr()), min(life, longestLife), func(uri string) error {
		if identity != "" && uri != identity {
			return status.Errorf(codes.PermissionDenied, "the token is of %s, the request for %s", identity, uri)
		}
		return nil
	})
	if err != nil {
		if _, ok := status.FromError(err); ok {
			return nil, err
		}
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	c.count.certificatesOut.Inc()
	return &securityv1.IstioCertificateResponse{CertChain: chain}, nil
}
