package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/process"
)

// keepGroup makes dir the folder of a process group that is kept.
func keepGroup(t *testing.T, dir string) {
	t.Helper()
	group, err := process.OpenGroup(dir, process.GroupOptions{Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := group.MarkKept(); err != nil {
		t.Fatal(err)
	}
}

// abandon makes dir the folder of a process group whose owner was killed: nobody
// has its lock, and it is not to be kept.
func abandon(t *testing.T, dir string) {
	t.Helper()
	keepGroup(t, dir)
	path := filepath.Join(dir, "processes.json")
	state, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(state, []byte(`"kept": true`), []byte(`"kept": false`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCleanupRemovesWhatADeadOwnerLeft(t *testing.T) {
	state := t.TempDir()
	t.Setenv("SCALER_STATE_DIR", state)
	left, kept := filepath.Join(state, "clusters", "left"), filepath.Join(state, "clusters", "kept")
	abandon(t, left)
	keepGroup(t, kept)
	if err := os.Mkdir(filepath.Join(left, "logs"), 0o755); err != nil { // of what ran in it
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "logs", "istiod.log"), []byte("ready"), 0o644); err != nil {
		t.Fatal(err)
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
		if err := execute(t.Context(), test.args, nil, &out, &stderr); err != nil {
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

// A container goes on when its owner was killed: it is removed by its name, and the
// folder that says the name stays for as long as that fails.
func TestCleanupRemovesContainers(t *testing.T) {
	state, bin := t.TempDir(), t.TempDir()
	t.Setenv("SCALER_STATE_DIR", state)
	t.Setenv("PATH", bin)
	left, name := filepath.Join(state, "dashboards", "1"), "scaler-grafana-"+strings.Repeat("a", 26)
	abandon(t, left)
	calls := filepath.Join(bin, "calls")
	if err := os.WriteFile(filepath.Join(left, "grafana.container"), []byte(name+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	docker := func(lines string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\n"+lines+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cleanup := func(args ...string) (string, error) {
		var out, stderr strings.Builder
		err := execute(t.Context(), append([]string{"cleanup"}, args...), nil, &out, &stderr)
		return out.String(), err
	}
	docker("echo 'Cannot connect to the Docker daemon' >&2; exit 1")
	if out, err := cleanup("--dry-run"); err != nil || !strings.Contains(out, "container "+name) {
		t.Errorf("dry run: %v, %q: want the container", err, out)
	}
	if _, err := cleanup(); err == nil || !strings.Contains(err.Error(), "Cannot connect to the Docker daemon") {
		t.Errorf("without Docker's server: %v", err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Fatalf("the folder is gone, and the container is not: %v", err)
	}
	docker(`echo "$@" >> ` + calls)
	if out, err := cleanup(); err != nil || !strings.Contains(out, "container "+name) {
		t.Errorf("%v, %q", err, out)
	}
	if asked, err := os.ReadFile(calls); err != nil || string(asked) != "rm --force "+name+"\n" {
		t.Errorf("docker was asked %q, %v", asked, err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("the folder is there still")
	}
}
