package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestCleanupRemovesWhatADeadOwnerLeft(t *testing.T) {
	state := t.TempDir()
	t.Setenv("SCALER_STATE_DIR", state)
	left, kept := filepath.Join(state, "clusters", "left"), filepath.Join(state, "clusters", "kept")
	for dir, content := range map[string]string{
		left: `{"owner": {"pid": 4194305}}`, // above the largest process id
		kept: `{"kept": true}`,
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "processes.json"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		args  []string
		found int
		left  bool
	}{
		{[]string{"cleanup", "--dry-run", "-o", "json"}, 1, true},
		{[]string{"cleanup", "-o", "json"}, 1, false},
		{[]string{"cleanup", "-o", "json"}, 0, false},
	} {
		var out, stderr bytes.Buffer
		if err := run(t.Context(), test.args, nil, &out, &stderr); err != nil {
			t.Fatalf("%v: %v", test.args, err)
		}
		var list struct {
			Kind  string
			Items []leftover
		}
		if err := json.Unmarshal(out.Bytes(), &list); err != nil {
			t.Fatalf("%v: %v in %q", test.args, err, out.String())
		}
		if list.Kind != "LeftoverList" || len(list.Items) != test.found || test.found == 1 && list.Items[0].Folder != left {
			t.Errorf("%v: %+v, want %d", test.args, list, test.found)
		}
		if _, err := os.Stat(left); (err == nil) != test.left {
			t.Errorf("%v: folder there: %v, want %v", test.args, err == nil, test.left)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error("a kept cluster was removed")
	}
}
