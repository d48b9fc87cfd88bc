package component

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"scaler.mesh/scaler/internal/linux"
)

// digestName is the file next to a cached program that has its SHA-256, in the format of
// sha256sum(1).
const digestName = "sha256"

// writeDigest notes what a program is, next to it.
func writeDigest(path string) error {
	digest, err := digestOf(path)
	if err != nil {
		return err
	}
	// Whole from its first instant: another scaler may read it.
	f, err := os.CreateTemp(filepath.Dir(path), "."+digestName+".*")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s  %s\n", digest, filepath.Base(path))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(filepath.Dir(path), digestName))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// verify reports whether a cached program is the one that was built. Those of earlier
// versions of scaler have no digest yet: they get that of what they are now.
func verify(path string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), digestName))
	if errors.Is(err, fs.ErrNotExist) {
		if err := writeDigest(path); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
			return false, err
		}
		return true, nil
	}
	if err != nil {
		return false, err
	}
	digest, err := digestOf(path)
	wanted, _, _ := strings.Cut(string(text), " ")
	return digest == wanted, err
}

// digests caches the digests of files that this program has read. A run asks several times for the programs
// that it starts, and reading all of them takes about half a second.
var digests struct {
	mu    sync.Mutex
	known map[fileState]string
}

// fileState identifies a state of a file: every write changes the inode's change time, which
// no program can set.
type fileState struct {
	device, inode uint64
	size          int64
	changed       time.Time
}

// stateOf gives the state of an open file, and whether a change from now on is sure to make another one: the
// clock of the file system is coarse.
func stateOf(f *os.File) (fileState, bool, error) {
	info, err := f.Stat()
	if err != nil {
		return fileState{}, false, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileState{}, false, nil
	}
	device, changed := linux.Changed(stat)
	return fileState{device: device, inode: stat.Ino, size: info.Size(), changed: changed}, time.Since(changed) > time.Second, nil
}

// digestOf gives the SHA-256 of a file.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	state, settled, err := stateOf(f)
	if err != nil {
		return "", err
	}
	digests.mu.Lock()
	defer digests.mu.Unlock()
	if digest, ok := digests.known[state]; ok && settled {
		return digest, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	digest := hex.EncodeToString(h.Sum(nil))
	if settled {
		if digests.known == nil {
			digests.known = map[fileState]string{}
		}
		digests.known[state] = digest
	}
	return digest, nil
}
