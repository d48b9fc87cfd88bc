package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A remnant is the folder of a group whose owner was killed while it opened the group, or
// whose removal was killed at its very end. It is empty, or has only locks that nobody
// holds and state files that were not renamed yet.

// isRemnant reports whether a remnant may hold a file of this name.
func isRemnant(name string) bool {
	return name == ownerLock || name == removalLock || strings.HasPrefix(name, stateName+".")
}

// isRemnantFolder reports whether dir, which has no state file, is a remnant: a folder in
// or below root that belongs to this user and whose lock nobody holds.
func isRemnantFolder(root, dir string) bool {
	below, err := filepath.Rel(root, dir)
	if err != nil || strings.Count(below, string(filepath.Separator)) != 1 {
		return false
	}
	var stat unix.Stat_t
	if err := unix.Lstat(dir, &stat); err != nil || int(stat.Uid) != os.Geteuid() {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if !isRemnant(e.Name()) || !e.Type().IsRegular() {
			return false
		}
	}
	for _, name := range []string{ownerLock, removalLock} {
		if taken, err := held(dir, name); taken || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// removeRemnant deletes a remnant, unless a group was opened in it meanwhile. It deletes
// only what a remnant may contain.
func removeRemnant(dir string) error {
	owner, err := takeLock(dir, ownerLock, unix.LOCK_EX, os.O_CREATE)
	switch {
	case errors.Is(err, errHeld), errors.Is(err, fs.ErrNotExist):
		return nil // it is in use, or another process was faster
	case err != nil:
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	defer owner.release()
	if _, err := os.Lstat(statePath(dir)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	for _, e := range entries {
		if !isRemnant(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", dir, err)
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}
