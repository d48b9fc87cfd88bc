package record

import (
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestConfiguration(t *testing.T) {
	w, err := Create(t.TempDir(), "one")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := ReadConfiguration(w.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	want := &Configuration{
		Resources: []HeldResource{{Type: "CDS", Name: "outbound|80||a", Message: []byte{1, 2, 0xff}}},
		Sidecars:  []HeldBy{{Namespace: "n", Workload: "a", Pod: "a-1", Resources: []int{0}}, {Namespace: "n", Workload: "a", Pod: "a-2", Resources: []int{}}},
		Objects:   []AddressedObject{{Kind: "Pod", Namespace: "n", Name: "a-1", Workload: "a", Addresses: []string{"10.0.0.1"}}},
	}
	if err := w.Configuration(want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadConfiguration(w.Dir()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %+v", err, got)
	}
}

// A file that is cut, was edited or is something else is an error that names it.
func TestConfigurationOfOthers(t *testing.T) {
	packed := func(text string) []byte {
		var b strings.Builder
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return []byte(b.String())
	}
	whole := packed(`{"sidecars": [{"pod": "p", "resources": [0]}], "resources": [{"type": "CDS"}]}`)
	for text, content := range map[string][]byte{
		"invalid header":  []byte("plain text, and no compressed one"),
		"unexpected EOF":  whole[:len(whole)-12],
		"resource 1":      packed(`{"sidecars": [{"pod": "p", "resources": [1]}], "resources": [{"type": "CDS"}]}`),
		"resource -1":     packed(`{"sidecars": [{"pod": "p", "resources": [-1]}], "resources": [{"type": "CDS"}]}`),
		"has no sidecars": packed(`{}`),
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, configurationFile)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConfiguration(dir); err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
