package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/process"
)

const (
	// readyTimeout bounds the start of Prometheus with an empty TSDB.
	readyTimeout = 30 * time.Second
	// firstScrapes bounds the wait for every target's first successful scrape.
	firstScrapes = 30 * time.Second
	// lateScrapes bounds the wait for one more scrape of every target: some
	// intervals, and not what a full disk would have it wait for.
	lateScrapes = 10 * time.Second
	// pollInterval is the time between two looks at what Prometheus has.
	pollInterval = 50 * time.Millisecond
	// configFile is the configuration of Prometheus while it runs; its working
	// folder is the TSDB's.
	configFile = "prometheus.yml"
)

// Options state what to scrape and where the data goes.
type Options struct {
	// Prometheus is the program.
	Prometheus string
	// Dir becomes the TSDB. It must be empty or missing.
	Dir string
	// Group starts Prometheus, and ends it.
	Group *process.Group
	// Log takes the output of Prometheus; "" discards it.
	Log string
	// Targets are scraped from start to stop; at least one.
	Targets []Target
	// Interval is the time between two scrapes; 0 means 1 s. A scrape times
	// out at 95 % of it.
	Interval time.Duration
	// Progress receives what is being waited for; nil is silent.
	Progress func(msg string)
}

// Recorder is a running Prometheus. Its methods may be called by several
// goroutines, Stop once.
type Recorder struct {
	dir       string
	url       string
	proc      *process.Process
	api       promv1.API
	transport *http.Transport
	intervals map[string]time.Duration // of each job

	mu      sync.Mutex
	targets map[string]int // of each job, those that are there
}

// Start starts Prometheus on a free port of 127.0.0.1 and returns when every
// target has been scraped once. On error nothing is left running; what
// Prometheus wrote stays in Dir.
func Start(ctx context.Context, opts Options) (*Recorder, error) {
	r, err := open(opts)
	if err != nil {
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	if err := r.start(ctx, opts); err != nil {
		if r.proc != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
			defer cancel()
			err = errors.Join(err, r.proc.Stop(stop))
		}
		r.transport.CloseIdleConnections()
		return nil, fmt.Errorf("starting Prometheus: %w", err)
	}
	return r, nil
}

// open prepares the folder and the configuration.
func open(opts Options) (*Recorder, error) {
	if opts.Interval == 0 {
		opts.Interval = defaultInterval
	}
	if len(opts.Targets) == 0 {
		return nil, fmt.Errorf("no targets")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	switch entries, err := os.ReadDir(dir); {
	case err != nil:
		return nil, err
	case len(entries) > 0:
		return nil, fmt.Errorf("folder %s is not empty", dir)
	}
	config, err := config(opts.Targets, opts.Interval)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, configFile), config, 0o644); err != nil {
		return nil, err
	}
	r := &Recorder{
		dir:       dir,
		transport: &http.Transport{},
		intervals: map[string]time.Duration{},
		targets:   map[string]int{},
	}
	for _, t := range opts.Targets {
		if r.targets[t.Job] += 0; !t.Later { // also 0 of a job that comes later
			r.targets[t.Job]++
		}
		r.intervals[t.Job] = max(r.intervals[t.Job], t.Interval, opts.Interval)
	}
	return r, nil
}

// start runs Prometheus and waits for the first scrapes.
func (r *Recorder) start(ctx context.Context, opts Options) error {
	begun := time.Now()
	address, err := process.FreeAddress()
	if err != nil {
		return err
	}
	r.url = "http://" + address
	client, err := api.NewClient(api.Config{Address: r.url, RoundTripper: r.transport})
	if err != nil {
		return err
	}
	r.api = promv1.NewAPI(client)
	r.proc, err = opts.Group.Start(process.Spec{
		Name: "prometheus",
		Path: opts.Prometheus,
		Args: []string{
			"--config.file=" + configFile,
			"--storage.tsdb.path=.",
			"--storage.tsdb.no-lockfile",
			"--web.listen-address=" + address,
			"--scrape.discovery-reload-interval=100ms", // else targets are taken up after 5 s
			"--web.enable-admin-api",                   // for the snapshot that Stop leaves
			"--log.level=warn",
		},
		Dir: r.dir,
		Log: opts.Log,
	})
	if err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := r.proc.WaitReady(ready, r.ready); err != nil {
		return err
	}
	if opts.Progress != nil {
		opts.Progress(fmt.Sprintf("waiting for the first scrape of %d targets", len(opts.Targets)))
	}
	scraped, cancel := context.WithTimeout(ctx, firstScrapes)
	defer cancel()
	return r.awaitScrapes(scraped, begun, nil)
}

// Expect says that so many more targets of a job are there from now on, or fewer.
func (r *Recorder) Expect(job string, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets[job] += more
}

// expected returns the number of present targets of each job.
func (r *Recorder) expected() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.targets)
}

// ready asks Prometheus whether it serves queries.
func (r *Recorder) ready(ctx context.Context) error { return ready(ctx, r.transport, r.url) }

func ready(ctx context.Context, transport *http.Transport, url string) error {
	_, err := httpget.Get(ctx, &http.Client{Transport: transport}, url+"/-/ready")
	return err
}

// Done is closed when Prometheus has ended. Err then states why, and is nil when
// Stop asked for it.
func (r *Recorder) Done() <-chan struct{} { return r.proc.Done() }

// Err returns the reason why Prometheus ended; see Done.
func (r *Recorder) Err() error { return r.proc.Err() }
