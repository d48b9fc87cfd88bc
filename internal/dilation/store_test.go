package dilation

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/record"
)

// A choice is found again for an equal key alone. A file that cannot be used is no choice, and no error.
func TestStore(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "dilation")}
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
	if err := (Store{Dir: filepath.Join(blocked, "dilation")}).Save(key{200}, want); err == nil {
		t.Error("a choice is kept below a file")
	}
}

// Trials are done unless a choice may be used again and is there. Their choice is kept if they converged, and is used where it cannot be kept.
func TestChoose(t *testing.T) {
	made := Choice{Factor: 3, Choice: record.DilationChoice{Made: new(time.Unix(1000, 0).UTC()), Trials: []record.DilationTrial{{Pods: 200}}}}
	var said []string
	s := Store{filepath.Join(t.TempDir(), "dilation"), func(text string) { said = append(said, text) }}
	tried, converged, failure := 0, false, error(nil)
	choose := func(again bool) (*Choice, error) {
		return s.Choose("key", again, func() (*Choice, bool, error) {
			tried++
			if failure != nil {
				return nil, false, failure
			}
			return &made, converged, nil
		})
	}
	for i, c := range []struct{ again, converged, tries bool }{
		{true, false, true}, // nothing is kept yet
		{true, true, true},  // what did not converge was not kept
		{true, true, false},
		{false, true, true},
		{true, true, false},
	} {
		before := tried
		converged = c.converged
		got, err := choose(c.again)
		if err != nil || got == nil || got.Factor != 3 || tried-before == 1 != c.tries {
			t.Errorf("%d: %+v, %v, after %d trials, want %v", i, got, err, tried-before, c.tries)
		}
	}
	failure = errors.New("failed")
	if _, err := choose(false); !errors.Is(err, failure) {
		t.Errorf("trials that fail give %v", err)
	}
	failure = nil
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Dir, said = filepath.Join(blocked, "dilation"), nil
	if got, err := choose(true); err != nil || got == nil || len(said) != 2 || !strings.Contains(said[0], "is chosen again") || !strings.Contains(said[1], "is not kept") {
		t.Errorf("without a folder: %+v, %v, said %q", got, err, said)
	}
}
