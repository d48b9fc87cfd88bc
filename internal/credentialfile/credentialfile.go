// Package credentialfile reads the credentials that a user names by file: bearer
// tokens and root certificates. Its errors name the flag, the file and what is wanted.
package credentialfile

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Token reads the one token in the file of --token-file.
func Token(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("parsing --token-file %q: %w", file, Cause(err))
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("parsing --token-file %q: want one token in it, and nothing else", file)
	}
	return token, nil
}

// Roots reads the root certificates in the file of --tls-ca, in PEM.
func Roots(file string) ([]byte, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("parsing --tls-ca %q: %w", file, Cause(err))
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("parsing --tls-ca %q: no certificate in it: want a file in PEM", file)
	}
	return pem, nil
}

// Cause removes the path from an error whose message names it already.
func Cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
