package component

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// A build is the same wherever its file is, another program is another one, and what is no program has no build.
func TestBuildID(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied, text := filepath.Join(dir, "copied"), filepath.Join(dir, "text")
	for path, content := range map[string][]byte{copied: program, text: []byte("none")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := buildID(self)
	if !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(own) {
		t.Errorf("the test's own is %q, want 12 digits", own)
	}
	if got := buildID(copied); got != own {
		t.Errorf("that of a copy is %q, want %q", got, own)
	}
	other, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	if got := buildID(other); got == "" || got == own {
		t.Errorf("that of another program is %q, that of this one %q", got, own)
	}
	for _, path := range []string{text, filepath.Join(dir, "absent")} {
		if got := buildID(path); got != "" {
			t.Errorf("%s: %q, want none", filepath.Base(path), got)
		}
	}
}
