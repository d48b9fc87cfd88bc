// Package credentialfile reads the credentials that a user names by file: bearer
// tokens and root certificates. Its errors name the flag, the file and what is wanted.
// Read is also for other small files from outside, such as results of earlier commands.
package credentialfile

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxFile is more than any list of root certificates has.
const maxFile = 8 << 20

// Read reads a file that a user names: a regular file of 8 MiB at most. It does not wait
// for the other end of a FIFO.
func Read(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, unix.EISDIR
	case !info.Mode().IsRegular():
		return nil, errors.New("want a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return data, nil
}

// Token reads the one token in the file of a flag, such as --token-file.
func Token(flag, file string) (string, error) {
	text, err := Read(file)
	if err != nil {
		return "", fmt.Errorf("parsing %s %q: %w", flag, file, Cause(err))
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
