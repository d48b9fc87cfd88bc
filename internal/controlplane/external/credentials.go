package external

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"scaler.mesh/scaler/internal/boundedfile"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/credentialfile"
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
	if c.rootPEM, err = credentialfile.Roots(r.TLSCA); err != nil {
		return c, err
	}
	if c.serverName = r.ServerName; c.serverName == "" {
		c.serverName, _, _ = net.SplitHostPort(r.Address)
	}
	switch {
	case (r.TLSCert == "") != (r.TLSKey == ""):
		return c, fmt.Errorf("parsing --tls-cert %q: want it with --tls-key, and the reverse", r.TLSCert)
	case r.TLSCert != "":
		if c.certPEM, err = credentialfile.Read(r.TLSCert); err != nil {
			return c, fmt.Errorf("parsing --tls-cert %q: %w", r.TLSCert, boundedfile.Cause(err))
		}
		if c.keyPEM, err = credentialfile.Read(r.TLSKey); err != nil {
			return c, fmt.Errorf("parsing --tls-key %q: %w", r.TLSKey, boundedfile.Cause(err))
		}
		if _, err := tls.X509KeyPair(c.certPEM, c.keyPEM); err != nil {
			return c, fmt.Errorf("parsing --tls-cert %q and --tls-key %q: %w", r.TLSCert, r.TLSKey, err)
		}
	}
	if r.TokenFile != "" {
		_, err = credentialfile.Token("--token-file", r.TokenFile)
	}
	return c, err
}
