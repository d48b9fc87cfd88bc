package nightly

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockName is the file in the folder of all nights that a night holds an exclusive flock(2) on. It
// stays there: who deleted it could take it from a night that has just opened it.
const lockName = ".nightly.lock"

// ErrInProgress is in the error of Run when another night uses the same folder.
var ErrInProgress = errors.New("another night is in progress")

// lock has a folder to itself, which it makes, until unlock is called or the process has ended. A
// night deletes what others left in the cluster: it must not be that of a night in progress.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("parsing --out: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("parsing --out: %w", err)
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, refused(dir, err)
	}
	return func() { f.Close() }, nil // closing unlocks, and nothing was written
}

// refused is the error of a night that did not get the lock.
func refused(dir string, err error) error {
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w: wait until it has ended, or choose another --out", dir, ErrInProgress)
	}
	return fmt.Errorf("locking %s in %s: %w: choose a folder with --out on a file system that has flock(2)", lockName, dir, err)
}
