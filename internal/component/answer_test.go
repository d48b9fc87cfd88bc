package component

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBinDir(t *testing.T) {
	s, _, _ := newStore(t, goodSource)
	dir := t.TempDir()
	script := func(name, text string, mode os.FileMode) {
		write(t, filepath.Join(dir, name), text)
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	// Found under upstream's name; its version written like the pinned one.
	script("fakemain", "#!/bin/sh\necho fake version 9.9.9 go1.2.3\n", 0o755)
	script("other", "#!/bin/sh\necho other version v9.9.8\n", 0o755)
	paths, err := s.paths(t.Context(), dir, []string{"fake", "other"})
	if err != nil || paths["fake"] != filepath.Join(dir, "fakemain") || paths["other"] != filepath.Join(dir, "other") {
		t.Fatalf("paths = %v, %v", paths, err)
	}
	all, err := s.list(t.Context(), dir)
	want := Status{Name: "fake", Version: "v9.9.9", Path: paths["fake"], Source: SourceBinDir}
	if err != nil || all[0] != want {
		t.Errorf("list = %+v, %v; want %+v first", all, err, want)
	}

	for name, tc := range map[string]struct {
		prepare func()
		want    string
	}{
		"missing":        {func() { os.Remove(filepath.Join(dir, "other")) }, "other is not there"},
		"not executable": {func() { script("other", "#!/bin/sh\n", 0o644) }, "other is not executable (chmod +x)"},
		"a folder": {func() {
			os.Remove(filepath.Join(dir, "other"))
			write(t, filepath.Join(dir, "other", "x"), "")
		}, "other is not a file"},
		"exits":     {func() { script("other", "#!/bin/sh\necho no libc >&2\nexit 1\n", 0o755) }, "no libc"},
		"no format": {func() { script("other", "\x7fELF garbage", 0o755) }, "exec format error"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(dir, "other")); err != nil {
				t.Fatal(err)
			}
			tc.prepare()
			_, err := s.paths(t.Context(), dir, []string{"fake", "other"})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "leave --bin-dir") {
				t.Errorf("error = %v, want %q and the fix", err, tc.want)
			}
		})
	}
	if _, err := s.paths(t.Context(), dir, []string{"nonsense"}); err == nil || !strings.Contains(err.Error(), "want one of fake, other") {
		t.Errorf("unknown program: %v", err)
	}
}

func TestAnswerGivesUpOnAHangingProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hangs")
	write(t, path, "#!/bin/sh\nsleep 1000\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := answer(ctx, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("of a program that hangs: %v, want that the context ended", err)
	}
}

func TestVersionText(t *testing.T) {
	for text, want := range map[string]string{
		"Kubernetes v1.36.3\n": "v1.36.3",
		"etcd Version: 3.6.8\nGit SHA: Not provided\nGo Version: go1.26.8\n":                             "3.6.8",
		"kwok version v0.8.0 go1.26.8 (linux/amd64)\n":                                                   "v0.8.0",
		"prometheus, version 3.15.0 (branch: , revision: v0.315.0)\n  go version: go1.2":                 "3.15.0",
		`version.BuildInfo{Version:"1.31-eed52ebb66ad", GolangVersion:"go1.26.8"}`:                       "1.31-eed52ebb66ad",
		`version.BuildInfo{Version:"unknown", GolangVersion:"go1.26.8"}`:                                 "",
		"\n/x/envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/1.40.0/Clean/RELEASE/BoringSSL\n": "1.40.0",
		"edge-21.7.1\n":                       "edge-21.7.1",
		"client version: 1.31-eed52ebb66ad\n": "1.31-eed52ebb66ad",
	} {
		got := ""
		if m := versionText.FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("version in %q = %q, want %q", text, got, want)
		}
	}
}
