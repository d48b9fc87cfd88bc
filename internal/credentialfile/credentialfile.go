// Package credentialfile reads the credentials that a user names by file: bearer
// tokens and certificates. Its errors name the flag, the file and what is wanted.
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

// Token reads the one token in the file of a flag, such as --token-file.
func Token(flag, file string) (string, error) {
	text, err := Read(file)
	if err != nil {
		return "", fmt.Errorf("parsing %s %q: %w", flag, file, boundedfile.Cause(err))
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("parsing %s %q: want one token in it, and nothing else", flag, file)
	}
	return token, nil
}

// Roots reads the root certificates in the file of --tls-ca, in PEM.
func Roots(file string) ([]byte, error) {
	pem, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("parsing --tls-ca %q: %w", file, boundedfile.Cause(err))
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("parsing --tls-ca %q: no certificate in it: want a file in PEM", file)
	}
	return pem, nil
}
