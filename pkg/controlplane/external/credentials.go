package external

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"scaler.mesh/scaler/pkg/controlplane"
)

// credentials are what sidecars verify the server with, and show it.
type credentials struct {
	rootPEM         []byte // nil = plaintext
	serverName      string // that the server's certificate must carry
	certPEM, keyPEM []byte // of the sidecars; nil = none
}

func readCredentials(r controlplane.Remote) (c credentials, err error) {
	if r.Plaintext {
		for _, f := range []struct{ name, value string }{
			{"tls-ca", r.TLSCA}, {"tls-cert", r.TLSCert}, {"tls-key", r.TLSKey}, {"token-file", r.TokenFile}, {"server-name", r.ServerName},
		} {
			if f.value != "" {
				return c, fmt.Errorf("parsing --%s %q: want none with --plaintext", f.name, f.value)
			}
		}
		return c, nil
	}
	if r.TLSCA == "" {
		return c, errors.New(`parsing --tls-ca "": want a file with the roots of the server's certificate, or --plaintext`)
	}
	if c.rootPEM, err = os.ReadFile(r.TLSCA); err != nil {
		return c, fmt.Errorf("parsing --tls-ca %q: %w", r.TLSCA, cause(err))
	}
	if !x509.NewCertPool().AppendCertsFromPEM(c.rootPEM) {
		return c, fmt.Errorf("parsing --tls-ca %q: no certificate in it: want a file in PEM", r.TLSCA)
	}
	if c.serverName = r.ServerName; c.serverName == "" {
		c.serverName, _, _ = net.SplitHostPort(r.Address)
	}
	switch {
	case (r.TLSCert == "") != (r.TLSKey == ""):
		return c, fmt.Errorf("parsing --tls-cert %q: want it with --tls-key, and the reverse", r.TLSCert)
	case r.TLSCert != "":
		if c.certPEM, err = os.ReadFile(r.TLSCert); err != nil {
			return c, fmt.Errorf("parsing --tls-cert %q: %w", r.TLSCert, cause(err))
		}
		if c.keyPEM, err = os.ReadFile(r.TLSKey); err != nil {
			return c, fmt.Errorf("parsing --tls-key %q: %w", r.TLSKey, cause(err))
		}
		if _, err := tls.X509KeyPair(c.certPEM, c.keyPEM); err != nil {
			return c, fmt.Errorf("parsing --tls-cert %q and --tls-key %q: %w", r.TLSCert, r.TLSKey, err)
		}
	}
	if r.TokenFile != "" {
		_, err = readToken(r.TokenFile)
	}
	return c, err
}

// readToken reads the one token in a file.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("parsing --token-file %q: %w", file, cause(err))
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("parsing --token-file %q: want one token in it, and nothing else", file)
	}
	return token, nil
}

// cause takes the path out of an error whose message names it already.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
