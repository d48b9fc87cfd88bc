package component

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is the time between two attempts to take a lock that another scaler holds.
const lockPoll = 200 * time.Millisecond

// lock takes the build lock of one graph, and waits while another process has it. The kernel
// gives the lock back when its holder ends in whatever way, so nothing stale can be left.
func (s *store) lock(ctx context.Context, g *Graph) (unlock func(), err error) {
	path := filepath.Join(s.dir, "."+g.Name+".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	start := time.Now()
	reported := time.Duration(-1)
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // closing unlocks, and nothing was written
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if waited := time.Since(start); reported < 0 || waited-reported >= progressInterval {
			s.progress(fmt.Sprintf("another scaler is building %s: waiting for it, %v so far", g.Title, waited.Round(time.Second)))
			reported = waited
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another scaler to build %s: %w", g.Title, ctx.Err())
		case <-tick.C:
		}
	}
}
