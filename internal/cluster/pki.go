package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
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

// pki names the cluster's certificates and keys, PEM files in one folder.
type pki struct {
	CA, CAKey                 string
	ServerCert, ServerKey     string // all servers of the cluster
	AdminCert, AdminKey       string // every other client of the cluster: system:masters
	ClientCert, ClientKey     string // controller-manager and scheduler: clientsGroup
	ServiceAccountKey         string // private; signs tokens
	ServiceAccountVerifierKey string // its public half
}

func pkiIn(dir string) pki {
	at := func(name string) string { return filepath.Join(dir, name) }
	return pki{
		CA: at("ca.crt"), CAKey: at("ca.key"),
		ServerCert: at("server.crt"), ServerKey: at("server.key"),
		AdminCert: at("admin.crt"), AdminKey: at("admin.key"),
		ClientCert: at("client.crt"), ClientKey: at("client.key"),
		ServiceAccountKey: at("service-account.key"), ServiceAccountVerifierKey: at("service-account.pub"),
	}
}

// certificateLife is longer than any cluster lives.
const certificateLife = 10 * 365 * 24 * time.Hour

// makePKI makes a certificate authority and the certificates that it signs.
func makePKI(dir string) (pki, error) {
	files := pkiIn(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return pki{}, fmt.Errorf("making certificates: %w", err)
	}
	if err := files.write(); err != nil {
		return pki{}, fmt.Errorf("making certificates in %s: %w", dir, err)
	}
	return files, nil
}

func (files pki) write() error {
	now := time.Now()
	template := func(serial int64, subject pkix.Name, usage x509.KeyUsage) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: subject, KeyUsage: usage,
			// The clocks of a machine and a container on it may differ a little.
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
			BasicConstraintsValid: true,
		}
	}
	ca := template(1, pkix.Name{CommonName: "scaler cluster CA"}, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature)
	ca.IsCA = true
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeCertificate(files.CA, files.CAKey, ca, caKey, ca, caKey); err != nil {
		return err
	}

	server := template(2, pkix.Name{CommonName: "kube-apiserver"}, x509.KeyUsageDigitalSignature)
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), kubernetesServiceIP}
	// ECDSA handshakes are cheap, and there is one for each new client.
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeCertificate(files.ServerCert, files.ServerKey, server, serverKey, ca, caKey); err != nil {
		return err
	}

	for serial, client := range []struct{ name, group, certificate, key string }{
		{"scaler", "system:masters", files.AdminCert, files.AdminKey},
		{"scaler-client", clientsGroup, files.ClientCert, files.ClientKey},
	} {
		cert := template(int64(3+serial), pkix.Name{CommonName: client.name, Organization: []string{client.group}}, x509.KeyUsageDigitalSignature)
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		if err := writeCertificate(client.certificate, client.key, cert, key, ca, caKey); err != nil {
			return err
		}
	}

	// RSA as in kubeadm: the cost of signing and verifying tokens is part of the cost of
	// a storm of them.
	tokenKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	if err := writeKey(files.ServiceAccountKey, tokenKey); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(tokenKey.Public())
	if err != nil {
		return err
	}
	return writePEM(files.ServiceAccountVerifierKey, "PUBLIC KEY", public)
}

func writeCertificate(certFile, keyFile string, cert *x509.Certificate, key crypto.Signer, parent *x509.Certificate, parentKey crypto.Signer) error {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), parentKey)
	if err != nil {
		return err
	}
	if err := writePEM(certFile, "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(keyFile, key)
}

func writeKey(file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(file, "PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
