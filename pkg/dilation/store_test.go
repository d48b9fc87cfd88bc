package dilation

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/record"
)

// A choice is found again for an equal key alone. A file that cannot be used is no choice, and no error.
func TestStore(t *testing.T) {
	s := Store{filepath.Join(t.TempDir(), "dilation")}
	type key struct{ Pods int }
	if got, err := s.Load(key{200}); got != nil || err != nil {
		t.Fatalf("an empty store has %+v, %v", got, err)
	}
	want := Choice{3, record.DilationChoice{Limit: 0.1, Made: new(time.Date(2026, 11, 25, 18, 0, 0, 0, time.UTC)), Trials: []record.DilationTrial{{Pods: 200}}}, Times{time.Second, time.Minute}}
	for _, c := range []Choice{{Factor: 2}, want} {
		if err := s.Save(key{200}, c); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Load(key{200})
	if err != nil || got == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := s.Load(key{400}); got != nil || err != nil {
		t.Errorf("for another key there is %+v, %v", got, err)
	}
	file, err := s.file(key{200})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"no JSON": "{", "no factor": "{}", "no trials": `{"factor": 2}`, "a factor below 1": `{"factor": 0.5}`, "a factor that is too large": `{"factor": 1000}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(key{200}); got != nil || err != nil {
			t.Errorf("%s: there is %+v, %v", name, got, err)
		}
	}
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v, want one file", entries, err)
	}
	if _, err := s.Load(func() {}); err == nil {
		t.Error("what is no JSON is a key")
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Store{filepath.Join(blocked, "dilation")}).Save(key{200}, want); err == nil {
		t.Error("a choice is kept below a file")
	}
}
