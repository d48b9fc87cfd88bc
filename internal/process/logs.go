package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Logs returns the files that the group's living children write to.
func (g *Group) Logs() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var logs []string
	for _, p := range g.children {
		if p.spec.Log != "" && !p.ended() && !slices.Contains(logs, p.spec.Log) {
			logs = append(logs, p.spec.Log)
		}
	}
	return logs
}

// CapLogs keeps logs below about limit bytes each until ctx is done, then returns nil. At
// each interval, the end of a log that has become longer is copied to PATH.1, in place of
// an earlier one, and the log is emptied. What is written in between is lost. Writers
// must append, as the children of a [Group] do.
func CapLogs(ctx context.Context, logs []string, limit int64, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		for _, log := range logs {
			if err := capLog(log, limit); err != nil {
				return fmt.Errorf("shortening %s: %w", log, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func capLog(path string, limit int64) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its folder was deleted
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() <= limit {
		return err
	}
	// On a full disk the old copy is lost, which makes room.
	copyErr := copyEnd(path+".1", f, info.Size(), limit)
	if err := f.Truncate(0); err != nil {
		return err
	}
	if errors.Is(copyErr, unix.ENOSPC) || errors.Is(copyErr, unix.EDQUOT) {
		return nil
	}
	return copyErr
}

// copyEnd replaces a file by the last limit bytes of another.
func copyEnd(to string, from io.ReaderAt, size, limit int64) (err error) {
	f, err := os.CreateTemp(filepath.Dir(to), ".log.*")
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), to)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = io.Copy(f, io.NewSectionReader(from, max(0, size-limit), limit))
	return err
}
