package credentialfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/credentialfile"
)

// What is no file of credentials neither blocks nor fills the memory.
func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	fifo, huge := filepath.Join(dir, "fifo"), filepath.Join(dir, "huge")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		fifo:        "no regular file",
		"/dev/zero": "no regular file",
		huge:        "want 8388608 at most",
		dir:         "is a directory",
		dir + "/no": "no such file",
	} {
		if _, err := credentialfile.Roots(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
		if _, err := credentialfile.Token(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

func FuzzRoots(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if pem, err := credentialfile.Roots(path); err == nil && len(pem) == 0 {
			t.Error("no roots, and no error")
		}
	})
}
