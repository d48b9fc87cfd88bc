package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// ownerLock is the file that a group's owner holds an exclusive flock(2) on
	// for as long as it lives. The kernel releases it however the owner ends, and
	// it holds across process id namespaces and, on NFS, across machines.
	ownerLock = "owner.lock"
	// removalLock is held by the process that removes the group, so that only one does.
	removalLock = "removal.lock"

	lockPoll = 10 * time.Millisecond
	// ownerLockTime limits the wait for a lock that another process holds only for an
	// inspection, which takes a moment.
	ownerLockTime = time.Second
)

// errHeld reports that another process has an incompatible lock.
var errHeld = errors.New("the lock is held")

// lock is a file with a flock(2) on it, which ends when it is closed.
type lock struct {
	file *os.File
	path string
}

// takeLock opens a file of a folder and locks it: how is LOCK_EX or LOCK_SH, flags are
// added to those of open(2). The error is errHeld if another process has the lock, and
// fs.ErrNotExist if there is no such file.
func takeLock(dir, name string, how, flags int) (*lock, error) {
	path := filepath.Join(dir, name)
	for {
		// os.O_CREATE must not follow a link, and opening must not wait for a FIFO's
		// other end.
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|flags, 0o600)
		if err != nil {
			return nil, err
		}
		l := &lock{f, path}
		if err := flock(f, how|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errHeld
			}
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		// It may have been deleted between opening and locking.
		if current, err := os.Lstat(path); err == nil && l.is(current) {
			return l, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.Close()
			return nil, err
		}
		f.Close()
	}
}

// awaitLock is like takeLock, but waits while another process has the lock, until the
// limit has passed or done is closed; a limit of 0 means none. The error is then errHeld.
func awaitLock(done <-chan struct{}, dir, name string, how, flags int, limit time.Duration) (*lock, error) {
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for began := time.Now(); ; {
		l, err := takeLock(dir, name, how, flags)
		if !errors.Is(err, errHeld) || limit > 0 && time.Since(began) > limit {
			return l, err
		}
		select {
		case <-poll.C:
		case <-done:
			return nil, err
		}
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// is reports whether info is of the file that is locked.
func (l *lock) is(info os.FileInfo) bool {
	own, err := l.file.Stat()
	return err == nil && os.SameFile(own, info)
}

// inode returns the file's inode number, which a copy of the folder does not have.
func (l *lock) inode() (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(l.file.Fd()), &stat); err != nil {
		return 0, err
	}
	return stat.Ino, nil
}

// release releases the lock and leaves the file.
func (l *lock) release() { l.file.Close() }

// held reports whether another process has an exclusive lock on a file.
func held(dir, name string) (bool, error) {
	l, err := takeLock(dir, name, unix.LOCK_SH, 0)
	switch {
	case errors.Is(err, errHeld):
		return true, nil
	case err != nil:
		return false, err
	}
	l.release()
	return false, nil
}
