package xdsprobe

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"scaler.mesh/scaler/pkg/convergence"
)

// scanSecret reads a tls.v3.Secret. It returns the chain of a certificate if that is
// inline, but never the private key.
func scanSecret(b []byte) (s Scanned, err error) {
	if !known().resources[secretURL].valid(b) {
		return Scanned{}, fmt.Errorf("parsing a resource of %v: %w", convergence.SDS, errWire)
	}
	for m := read(b); m.next(); {
		switch {
		case m.is(1, protowire.BytesType):
			s.Name = string(m.bytes)
		case m.is(2, protowire.BytesType): // tls_certificate, one of four
			for c := read(m.bytes); c.next(); {
				if c.is(1, protowire.BytesType) { // certificate_chain
					s.Secret = &Secret{Chain: dataSource(c.bytes)}
				}
			}
		case m.is(3, protowire.BytesType), m.is(4, protowire.BytesType), m.is(5, protowire.BytesType): // the others
			s.Secret = nil
		}
	}
	return s, nil
}

// dataSource returns the inline bytes of a core.v3.DataSource.
func dataSource(b []byte) (inline []byte) {
	for m := read(b); m.next(); {
		if m.is(2, protowire.BytesType) || m.is(3, protowire.BytesType) { // inline_bytes, inline_string
			inline = slices.Clone(m.bytes)
		}
	}
	return inline
}

// withSecrets extends the scan of a cluster or listener by the secrets that its TLS
// contexts name by ADS.
func withSecrets(t convergence.Type, scan func([]byte) (Scanned, error)) func([]byte) (Scanned, error) {
	return func(b []byte) (Scanned, error) {
		s, err := scan(b)
		if err != nil {
			return s, err
		}
		var names []string
		for m := read(b); m.next(); {
			switch {
			case m.wire != protowire.BytesType:
			case t == convergence.CDS && m.number == 24: // transport_socket
				names = append(names, secretsOfSocket(m.bytes)...)
			case t == convergence.CDS && m.number == 43: // transport_socket_matches
				for c := read(m.bytes); c.next(); {
					if c.is(3, protowire.BytesType) {
						names = append(names, secretsOfSocket(c.bytes)...)
					}
				}
			case t == convergence.LDS && (m.number == 3 || m.number == 25): // filter_chains, default_filter_chain
				var c chain
				c.merge(m.bytes)
				names = append(names, secretsOfContext(c.socket)...)
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			s.Names = append(s.Names, convergence.Key{Type: convergence.SDS, Name: name})
		}
		return s, nil
	}
}

// secretsOfSocket returns the secrets that a core.v3.TransportSocket names.
func secretsOfSocket(b []byte) []string {
	var socket transportSocket
	socket.merge(b)
	return secretsOfContext(socket.config)
}

// secretsOfContext returns the secrets that an UpstreamTlsContext or a
// DownstreamTlsContext names. Both have their CommonTlsContext in field 1. It returns nil
// for any other type and for an invalid message.
func secretsOfContext(config packed) (names []string) {
	if !config.validAs(tlsURL, downstreamTLSURL) {
		return nil
	}
	for m := read(config.value); m.next(); {
		if !m.is(1, protowire.BytesType) { // common_tls_context
			continue
		}
		for c := read(m.bytes); c.next(); {
			switch {
			case c.is(6, protowire.BytesType), c.is(7, protowire.BytesType): // tls_certificate_sds_secret_configs, validation_context_sds_secret_config
				names = appendSecret(names, c.bytes)
			case c.is(8, protowire.BytesType): // combined_validation_context
				for v := read(c.bytes); v.next(); {
					if v.is(2, protowire.BytesType) { // validation_context_sds_secret_config
						names = appendSecret(names, v.bytes)
					}
				}
			}
		}
	}
	return names
}

// appendSecret appends the name in an SdsSecretConfig whose source is ADS.
func appendSecret(names []string, b []byte) []string {
	var (
		name string
		src  source
	)
	for m := read(b); m.next(); {
		switch {
		case m.is(1, protowire.BytesType):
			name = string(m.bytes)
		case m.is(2, protowire.BytesType): // sds_config
			src.merge(m.bytes)
		}
	}
	if name == "" || !src.ads {
		return names
	}
	return append(names, name)
}
