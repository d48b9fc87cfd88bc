package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"
)

// hostile makes a run's folder whose run.json is content.
func hostile(t *testing.T, content string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, runFile), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

var harmless = fmt.Sprintf(`{"apiVersion": "scaler.mesh/v1", "kind": "Run", "schema": %d, "name": "x"}`, Schema)

func TestFilesOfARecordFromElsewhere(t *testing.T) {
	for _, test := range []struct {
		name, want string
		put        func(t *testing.T, path string) error
	}{
		{"a FIFO", "no regular file", func(_ *testing.T, path string) error { return unix.Mkfifo(path, 0o644) }},
		{"a link to a device", "escapes", func(_ *testing.T, path string) error { return os.Symlink("/dev/zero", path) }},
		{"a link out of the folder", "escapes", func(_ *testing.T, path string) error { return os.Symlink("../../secret", path) }},
		{"a folder", "no regular file", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o755) }},
		{"a huge sparse file", "want 1073741824 at most", func(_ *testing.T, path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<40))
		}},
		{"a line without end", "longer than", func(_ *testing.T, path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, maxFile))
		}},
		{"too many lines", "more than", func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("{}\n", maxLines+1)), 0o644)
		}},
		{"a number that is none", "line 2", func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte("{}\n{\"kind\": \"objectsDeleted\", \"attempts\": 1e999, \"at\": 1e999, \"fields\": {\"seconds\": 1e999}}\n"), 0o644)
		}},
		{"a text for a number", "line 3", func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte("{}\n{}\n{\"kind\": \"objectsDeleted\", \"attempts\": \"x\", \"at\": \"NaN\", \"fields\": {\"seconds\": \"NaN\"}}\n"), 0o644)
		}},
		{"deep JSON", "depth", func(_ *testing.T, path string) error {
			return os.WriteFile(path, []byte("{}\n"+`{"kind": "objectsDeleted", "x": `+strings.Repeat(`{"a":`, 200_000)+"\n"), 0o644)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for file, read := range map[string]func(*Run) error{
				timelineFile: func(r *Run) error { _, err := r.Timeline(); return err },
				samplesFile:  func(r *Run) error { return r.Samples(func(Sample) error { return nil }) },
				eventsFile:   func(r *Run) error { _, err := eventsOf[ObjectsDeleted](r); return err },
			} {
				dir := hostile(t, harmless)
				if err := test.put(t, filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
				runs, err := Read(dir)
				if err != nil {
					t.Fatal(err)
				}
				err = read(&runs[0])
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
					t.Errorf("error %v, want %q and the file", err, test.want)
				}
			}
		})
	}
	if _, err := new(Run).OpenFile("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a run that was not read: %v", err)
	}
}

func TestDocumentsFromElsewhere(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"deep":                  {strings.Repeat(`{"a":`, 200_000), "depth"},
		"cut off":               {"{\n\n\"kind\": \"Run\",\n", "line 4"},
		"of another type":       {strings.Replace(harmless, `"x"`, "\n\n7", 1), "line 3"},
		"a name that is a path": {strings.Replace(harmless, `"x"`, `"../../etc/passwd"`, 1), "name"},
		"an infinity":           {strings.Replace(harmless, `"x"`, `"x", "arrival": {"offeredPerSecond": 1e999}`, 1), "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := hostile(t, test.content)
			_, err := Read(dir)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), runFile) {
				t.Errorf("error %v, want %q and the file", err, test.want)
			}
		})
	}
	dir := hostile(t, harmless)
	if err := os.Truncate(filepath.Join(dir, runFile), 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("of a huge sparse file: %v", err)
	}
	dir = hostile(t, strings.Replace(harmless, `"x"`, `"x", "reason": "\u001b]0;owned\u0007\u009b2J\b`+"\u009b\x7f"+`\\u001b \n\t\u202egnp\u00e9"`, 1))
	runs, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := runs[0].Reason, "\ufffd]0;owned\ufffd\ufffd2J\t???\\u001b \n\t\ufffdgnp\u00e9"; got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
}

// What is read of any document holds nothing that a terminal obeys, and disarming
// neither makes JSON of what is none nor the other way round.
func FuzzDisarm(f *testing.F) {
	f.Add([]byte(`{"a": "\u001b[2J\\u001b\b\f\"\u202e"}`))
	f.Add([]byte("{\"a\": \"\u009b\x7f\\"))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := json.Valid(data)
		disarm(data)
		if json.Valid(data) != before {
			t.Fatalf("valid before: %v; now %q", before, data)
		}
		var text string
		if json.Unmarshal(data, &text) != nil {
			return
		}
		for _, r := range text {
			if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
				t.Fatalf("%q has %U", text, r)
			}
		}
	})
}

func FuzzDecodeNames(f *testing.F) {
	f.Add([]byte(harmless))
	f.Add([]byte(fmt.Sprintf(`{"apiVersion": "scaler.mesh/v1", "kind": "LatencyRun", "schema": %d, "rows": [null]}`, Schema)))
	f.Fuzz(func(t *testing.T, data []byte) {
		disarm(data)
		if run, latency, err := decode(data); err == nil && latency == nil && run.Name != "" && checkName(run.Name) != nil {
			t.Errorf("name %q was read", run.Name)
		}
	})
}
