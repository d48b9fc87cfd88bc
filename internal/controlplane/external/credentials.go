package external

import (
	"crypto/tls"
	"fmt"
	"net"

	"scaler.mesh/scaler/internal/boundedfile"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/credentialfile"
	"scaler.mesh/scaler/pkg/scenario"
)

// credentials are the roots that sidecars verify the server with, and their own certificate.
type credentials struct {
	rootPEM         []byte // nil = plaintext
	serverName      string // that the server's certificate must carry
	certPEM, keyPEM []byte // of the sidecars; nil = none
}

// field is the path in a scenario of the fields that are read here.
const field = "controlPlane.connection."

func readCredentials(r controlplane.Remote) (c credentials, err error) {
	if r.Plaintext {
		for _, f := range []struct{ name, value string }{
			{"tlsCA", r.TLSCA}, {"tlsCert", r.TLSCert}, {"tlsKey", r.TLSKey}, {"tokenFile", r.TokenFile}, {"serverName", r.ServerName},
		} {
			if f.value != "" {
				return c, scenario.Refuse(field+f.name, f.value, "none with "+field+"plaintext")
			}
		}
		return c, nil
	}
	if r.TLSCA == "" {
		return c, scenario.Refuse(field+"tlsCA", "", "a file with the roots of the server's certificate, or "+field+"plaintext")
	}
	if c.rootPEM, err = credentialfile.Roots(r.TLSCA); err != nil {
		return c, fmt.Errorf("%stlsCA: got %w", field, err)
	}
	if c.serverName = r.ServerName; c.serverName == "" {
		c.serverName, _, _ = net.SplitHostPort(r.Address)
	}
	switch {
	case (r.TLSCert == "") != (r.TLSKey == ""):
		return c, scenario.Refuse(field+"tlsCert", r.TLSCert, "it with "+field+"tlsKey, and the reverse")
	case r.TLSCert != "":
		if c.certPEM, err = credentialfile.Read(r.TLSCert); err != nil {
			return c, fmt.Errorf("%stlsCert: got %q: %w", field, r.TLSCert, boundedfile.Cause(err))
		}
		if c.keyPEM, err = credentialfile.Read(r.TLSKey); err != nil {
			return c, fmt.Errorf("%stlsKey: got %q: %w", field, r.TLSKey, boundedfile.Cause(err))
		}
		if _, err := tls.X509KeyPair(c.certPEM, c.keyPEM); err != nil {
			return c, fmt.Errorf("%stlsCert: got %q with tlsKey %q: %w", field, r.TLSCert, r.TLSKey, err)
		}
	}
	if r.TokenFile != "" {
		if _, err = credentialfile.Token(r.TokenFile); err != nil {
			return c, fmt.Errorf("%stokenFile: got %w", field, err)
		}
	}
	return c, err
}
