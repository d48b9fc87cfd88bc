// Package boundedfile reads files that may come from elsewhere. It takes regular files up to a size
// alone: a FIFO or a device is not waited for, and a huge file does not fill the memory. What a file
// holds is left to others. Errors of this package do not name the file; those of package os do, which
// Cause removes.
package boundedfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

var (
	// ErrIrregular reports that a file is a directory, a FIFO, a device or the like.
	ErrIrregular = errors.New("it is no regular file")
	// ErrTooLarge reports that a file has more bytes than are wanted.
	ErrTooLarge = errors.New("it is too large")
)

// Read reads a file, which has to be a regular one of most bytes at most.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, most)
}

// Open opens a file to be read, which has to be a regular one of most bytes at most.
func Open(path string, most int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := check(f, most); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenIn opens a file below a folder, by its path in there, to be read. It has to be a regular file
// of most bytes at most that is in the folder, which a symbolic link out of it is not.
func OpenIn(dir, name string, most int64) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := check(f, most); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadIn reads a file that OpenIn would open.
func ReadIn(dir, name string, most int64) ([]byte, error) {
	f, err := OpenIn(dir, name, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, most)
}

// ReadOpen reads an open file, which has to be a regular one of most bytes at most, from where it
// stands to its end. It was opened with O_NONBLOCK, or opening a FIFO would have blocked.
func ReadOpen(f *os.File, most int64) ([]byte, error) {
	if err := check(f, most); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1)) // it may grow
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, most)
	}
	return data, nil
}

// check states why an open file is not to be read, or nil.
func check(f *os.File, most int64) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%w: it is a directory", ErrIrregular)
	case !info.Mode().IsRegular():
		return ErrIrregular
	case info.Size() > most:
		return fmt.Errorf("%w: it has %d bytes, want %d at most", ErrTooLarge, info.Size(), most)
	}
	return nil
}

// Cause removes the path from an error of package os, for a message that names the file already.
func Cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
