package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A cached program that was changed is built again, and one of an older scaler, without
// a digest, is taken as it is.
func TestCachedProgramsAreVerified(t *testing.T) {
	s, _, _ := newStore(t, goodSource)
	var said []string
	s.progress = func(msg string) { said = append(said, msg) }
	first, err := s.paths(t.Context(), "", []string{"fake"})
	if err != nil {
		t.Fatal(err)
	}
	path := first["fake"]
	digest := filepath.Join(filepath.Dir(path), digestName)
	if text := read(t, digest); !strings.HasSuffix(text, "  fake\n") || len(text) != 64+len("  fake\n") {
		t.Errorf("the digest is %q", text)
	}
	original := read(t, path)

	if err := os.Remove(digest); err != nil {
		t.Fatal(err)
	}
	said = nil
	if _, err := s.paths(t.Context(), "", []string{"fake"}); err != nil || said != nil {
		t.Errorf("without a digest: %v, said %q; want that it is taken", err, said)
	}
	if _, err := os.Stat(digest); err != nil {
		t.Errorf("it got no digest: %v", err)
	}

	changed := []byte(original)
	changed[len(changed)/2] ^= 1
	if err := os.WriteFile(path, changed, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.paths(t.Context(), "", []string{"fake"}); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "its SHA-256 differs") || !strings.Contains(text, "built fake") {
		t.Errorf("said %q, want that it is built again", text)
	}
	if read(t, path) != original {
		t.Error("the changed program is still there")
	}
}

// A file is read again where it may have changed since.
func TestDigestOfAChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	var before string
	for _, text := range []string{"one", "two", "one"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		digest, err := digestOf(path)
		if err != nil || digest == before {
			t.Errorf("%s: %q, %v, after %q", text, digest, err, before)
		}
		before = digest
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	state, settled, err := stateOf(f)
	if _, known := digests.known[state]; err != nil || settled || known {
		t.Errorf("settled %v, known %v, %v; want neither of a file that may still change unseen", settled, known, err)
	}
}

func TestSettingsAreInTheKey(t *testing.T) {
	env := map[string]string{"GOAMD64": "v1", "GOFIPS140": "off", "GOEXPERIMENT": "", "GOVERSION": "go1.26"}
	if got := settingsOf(env); got != "" {
		t.Errorf("the defaults are %q", got)
	}
	env["GOAMD64"], env["GOEXPERIMENT"] = "v3", "arenas"
	if got, want := settingsOf(env), "GOAMD64=v3 GOEXPERIMENT=arenas"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range pinned {
		g := &pinned[i]
		p := g.Programs[0]
		plain, set := g.key(p, "go1.26", ""), g.key(p, "go1.26", settingsOf(env))
		if (plain == set) != (g.wheel != nil) {
			t.Errorf("%s: the keys are %s and %s", g.Name, plain, set)
		}
	}
}
