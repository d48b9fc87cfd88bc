// Package credentialfile reads the credentials that a user names by file: bearer
// tokens and certificates. Its errors state the file and what is wanted; the caller
// puts the name of its field or flag in front.
package credentialfile

import (
	"crypto/x509"
	"fmt"
	"strings"

	"scaler.mesh/scaler/internal/boundedfile"
)

// maxFile is more than any list of root certificates has.
const maxFile = 8 << 20

// Read reads a file of credentials that a user names.
func Read(file string) ([]byte, error) { return boundedfile.Read(file, maxFile) }

// Token reads a file that has one token.
func Token(file string) (string, error) {
	text, err := Read(file)
	if err != nil {
		return "", fmt.Errorf("%q: %w", file, boundedfile.Cause(err))
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%q: want one token in it, and nothing else", file)
	}
	return token, nil
}

// Roots reads a file of root certificates in PEM.
func Roots(file string) ([]byte, error) {
	pem, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", file, boundedfile.Cause(err))
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%q: no certificate in it: want a file in PEM", file)
	}
	return pem, nil
}
