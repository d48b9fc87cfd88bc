package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/process"
)

const (
	// openTimeout bounds the start of Prometheus on data that is there; a log
	// of a killed run takes longest.
	openTimeout = 2 * time.Minute
	// minLookback is the shortest time for which the last sample of a series counts, and lookbackScrapes the number of
	// scrapes that it has at least: a busy program may miss some. Prometheus's 5 minutes would draw every run that
	// long beyond its end.
	minLookback     = 10 * time.Second
	lookbackScrapes = 4
	// maxTSDB bounds the bytes of a run's time series: hours of a run of thousands of pods
	// have a few hundred million.
	maxTSDB = 16 << 30
	// forever is a retention that keeps runs of any age.
	forever = "100y"
)

// ErrNoSeries is wrapped by the error of Serve if a run left no time series.
var ErrNoSeries = errors.New("no time series in it")

// ServeOptions states whose time series are served.
type ServeOptions struct {
	// Prometheus is the program.
	Prometheus string
	// TSDBs are the folders that recorders left, one for each run; they are copied and stay
	// as they are. The TSDB of a recorder that was killed can only be served alone:
	// its data is still in a log, and logs cannot be merged.
	TSDBs []string
	// Dir is created for the copies. The caller removes it.
	Dir string
	// Group starts Prometheus, and ends it.
	Group *process.Group
	// Log takes the output of Prometheus; "" discards it.
	Log string
	// Address is HOST:PORT; "" means a free port of 127.0.0.1.
	Address string
	// Interval is the longest time between two scrapes in the TSDBs; 0 = some seconds.
	Interval time.Duration
}

// Served is a Prometheus that serves the time series of runs, and scrapes
// nothing. It ends with its group.
type Served struct {
	url  string
	proc *process.Process
}

// Serve copies the TSDBs and starts Prometheus on them; it returns when they can
// be asked. On error Prometheus may have been started: it is in the group.
func Serve(ctx context.Context, opts ServeOptions) (*Served, error) {
	data := filepath.Join(opts.Dir, "data")
	if err := gather(ctx, data, opts.TSDBs); err != nil {
		return nil, fmt.Errorf("copying time series: %w", err)
	}
	if opts.Address == "" {
		var err error
		if opts.Address, err = process.FreeAddress(); err != nil {
			return nil, fmt.Errorf("starting Prometheus: %w", err)
		}
	}
	config := filepath.Join(opts.Dir, configFile)
	if err := os.WriteFile(config, nil, 0o644); err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	proc, err := opts.Group.Start(process.Spec{
		Name: "prometheus",
		Path: opts.Prometheus,
		Args: []string{
			"--config.file=" + config,
			"--storage.tsdb.path=" + data,
			"--storage.tsdb.no-lockfile",
			"--storage.tsdb.retention.time=" + forever,
			"--query.lookback-delta=" + promDuration(max(minLookback, lookbackScrapes*opts.Interval)),
			"--web.listen-address=" + opts.Address,
			"--log.level=warn",
		},
		Dir: opts.Dir,
		Log: opts.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	s := &Served{url: "http://" + opts.Address, proc: proc}
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	if err := proc.WaitReady(limited, func(ctx context.Context) error { return ready(ctx, transport, s.url) }); err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	return s, nil
}

// URL returns the address of Prometheus's pages and API.
func (s *Served) URL() string { return s.url }

// Done is closed when Prometheus has ended. Err then states why, and is nil when
// its group was stopped.
func (s *Served) Done() <-chan struct{} { return s.proc.Done() }

// Err returns the reason why Prometheus ended; see Done.
func (s *Served) Err() error { return s.proc.Err() }

// CheckTSDBs reports whether Serve can serve these together, without copying
// anything: an error that wraps ErrNoSeries, or states which run is to be served
// alone.
func CheckTSDBs(dirs []string) error {
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("reading %s: it is a symbolic link", dir)
		}
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
			return fmt.Errorf("reading %s: %w: the run ended before anything was recorded", dir, ErrNoSeries)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", dir, err)
		}
		if len(dirs) > 1 && !sealed(entries) {
			return fmt.Errorf("reading %s: its run lasts or was killed, and the data is in a log still: want it alone", dir)
		}
	}
	return nil
}

// sealed reports whether a TSDB holds nothing but blocks, which can be next to
// those of others.
func sealed(entries []fs.DirEntry) bool {
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "wal" })
}

// gather copies TSDBs into one. Blocks have names of their own in all the world
// (ULIDs), and series of different runs different labels. A TSDB may come from
// elsewhere: it has regular files only, which have a limit together.
func gather(ctx context.Context, to string, tsdbs []string) error {
	if err := CheckTSDBs(tsdbs); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, dir := range tsdbs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		c := copying{ctx: ctx, left: maxTSDB}
		for _, e := range entries {
			// Not what belongs to a process, a configuration with its targets first.
			if !e.IsDir() {
				continue
			}
			if err := c.folder(filepath.Join(to, e.Name()), filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// copying copies folders of a TSDB.
type copying struct {
	ctx  context.Context
	left int64 // bytes that it may still have
}

// folder copies one. If the copy exists, the same run was named twice.
func (c *copying) folder(to, from string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		switch {
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s: it is no regular file", path)
		}
		return c.file(target, path)
	})
}

func (c *copying) file(to, from string) (err error) {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if c.left -= info.Size(); c.left < 0 {
		return fmt.Errorf("%s: with it, the time series have more than %d bytes", from, int64(maxTSDB))
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, in, info.Size())
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s: it has become shorter", from)
	}
	return errors.Join(err, out.Close())
}
