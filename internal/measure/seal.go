package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// working lists the names in the folder of a running Prometheus that a sealed
// TSDB has no use for: the write-ahead logs and the head's chunks, which are in
// the blocks then, and what belongs to the process.
var working = []string{"wal", "wbl", "chunks_head", "snapshots", "queries.active", "lock", configFile}

// Stop has Prometheus write all it holds into blocks, stops it and leaves
// nothing but those blocks in the folder: a TSDB that any Prometheus opens, a
// few times smaller than its write-ahead log.
//
// When the blocks cannot be written, Prometheus is stopped all the same and
// the folder stays as it was: still a TSDB, whose data a Prometheus reads from
// the log as it would after a crash. The error says so.
func (r *Recorder) Stop(ctx context.Context) error {
	defer r.transport.CloseIdleConnections()
	snapshot, err := r.api.Snapshot(ctx, false)
	if err != nil {
		err = fmt.Errorf("writing the TSDB's blocks: %w; the data is still in the log of %s", err, r.dir)
	}
	if err := errors.Join(err, r.proc.Stop(ctx)); err != nil {
		return fmt.Errorf("stopping Prometheus: %w", err)
	}
	if err := seal(r.dir, snapshot.Name); err != nil {
		return fmt.Errorf("sealing the TSDB: %w", err)
	}
	return nil
}

// seal moves the snapshot's blocks into the TSDB's folder and removes the logs that they
// replace. A long run has older blocks there, which the snapshot links to.
func seal(dir, snapshot string) error {
	from := filepath.Join(dir, "snapshots", snapshot)
	blocks, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if len(blocks) == 0 {
		return fmt.Errorf("snapshot %s holds no blocks", from)
	}
	for _, block := range blocks {
		to := filepath.Join(dir, block.Name())
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if err := os.Rename(filepath.Join(from, block.Name()), to); err != nil {
			return err
		}
	}
	for _, name := range working {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
