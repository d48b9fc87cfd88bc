package component

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// digestName is the file next to a cached program that has its SHA-256, in the format of
// sha256sum(1).
const digestName = "sha256"

// writeDigest notes what a program is, next to it.
func writeDigest(path string) error {
	digest, err := digestOf(path)
	if err != nil {
		return err
	}
	// Whole from its first instant: another scaler may read it.
	f, err := os.CreateTemp(filepath.Dir(path), "."+digestName+".*")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s  %s\n", digest, filepath.Base(path))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(filepath.Dir(path), digestName))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// verify reports whether a cached program is the one that was built. Those of earlier
// versions of scaler have no digest yet: they get that of what they are now.
func verify(path string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), digestName))
	if errors.Is(err, fs.ErrNotExist) {
		if err := writeDigest(path); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return false, err
		}
		return true, nil
	}
	if err != nil {
		return false, err
	}
	digest, err := digestOf(path)
	wanted, _, _ := strings.Cut(string(text), " ")
	return digest == wanted, err
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
