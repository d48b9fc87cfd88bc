package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/process"
)

func TestChild(t *testing.T) {
	dir := t.TempDir()
	group, err := process.OpenGroup(filepath.Join(t.TempDir(), "group"), process.GroupOptions{Grace: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := group.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	script := `echo "$1 $GOMAXPROCS $OWN" > started.part; mv started.part started; exec sleep 600`
	c := &Child{
		Group: group, LogDir: dir, Resources: Resources{MaxProcs: 3, Args: []string{"given"}},
		Command: func() process.Spec {
			return process.Spec{Name: "web", Path: "/bin/sh", Args: []string{"-c", script, "sh"}, Env: []string{"OWN=own", "PATH=/usr/bin:/bin"}}
		},
		Ready: func(context.Context) error {
			_, err := os.Stat(filepath.Join(dir, "started"))
			return err
		},
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stopping one that was not started: %v", err)
	}
	for range 2 {
		if err := c.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "started")); err != nil || string(got) != "given 3 own\n" {
			t.Errorf("it was started with %q, %v", got, err)
		}
		if err := os.Remove(filepath.Join(dir, "started")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "web.log")); err != nil {
			t.Error(err)
		}
		life := c.Life()
		life.Kill()
		<-life.Done()
	}
	script = "exit 3"
	if err := c.Restart(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "waiting for web: ") {
		t.Errorf("one that ends before it serves: %v", err)
	}
}
