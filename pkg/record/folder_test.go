package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Several runs of one folder are written under one lock.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	folder, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	first, err := folder.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("opening it a second time: got %v, want ErrLocked: a run's end does not unlock it", err)
	}
	if err := folder.Check("two", "one"); !errors.Is(err, ErrExists) {
		t.Errorf("checking a name that is taken: got %v, want ErrExists", err)
	}
	if err := folder.Check("two", "three"); err != nil {
		t.Errorf("checking names that are free: %v", err)
	}
	if err := folder.Check("../two"); err == nil {
		t.Error("checking a name that leads elsewhere: want an error")
	}
	second, err := folder.Create("two")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Discard(); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatalf("opening it after Close: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "one", "run.json")); err != nil {
		t.Errorf("the first run is gone: %v", err)
	}
}

// A folder that nothing came into is removed, with those made above it.
func TestFolderLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	folder, err := Open(filepath.Join(parent, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := folder.Create("one")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Discard(); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
