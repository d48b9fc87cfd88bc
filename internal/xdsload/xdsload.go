// Package xdsload implements `scaler xds`: it runs simulated sidecars against any ADS
// server, without Kubernetes.
package xdsload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/credentialfile"
	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Progress receives the progress of a run.
type Progress struct {
	Log    func(msg string) // one line, about an event; needed
	Status func(Status)     // about once a second; nil = nobody is shown it
}

// Status is the state of a run at one moment, for showing progress.
type Status struct {
	Elapsed, Length time.Duration // Length 0 = until stopped
	Clients         int
	Open            int // streams that are open now
	Complete        int // sidecars that ever were
	Responses       int64
	Bytes           int64 // of responses
	Refusals        int64
	Failures        int64 // attempts that ended otherwise than by a refusal
}

// run is one run of `scaler xds`.
type run struct {
	// fixed at the start
	spec     Spec
	progress Progress
	nodes    *nodes
	base     xdsprobe.Config // what all sidecars have in common
	fleet    *fleet
	metrics  *measure.Metrics
	sampler  *measure.Sampler
	lag      *stats.Histogram

	idle   float64 // resident bytes before the first sidecar
	record record.XDSRun
	edges  []edge
}

// edge is a time at which the counters were read.
type edge struct {
	at               time.Time
	responses, bytes int64
}

// Run runs simulated sidecars against an ADS server until the duration is over or ctx
// ends. If a duration was given and ctx ends before, the record's status is interrupted.
// It returns ErrIncomplete, with a complete record, if the sidecars were never all
// complete.
func Run(ctx context.Context, spec Spec, progress Progress) (record.XDSRun, error) {
	r, err := newRun(spec, progress)
	if err != nil {
		return record.XDSRun{}, err
	}
	// The measurement continues after its subject has ended.
	measuring, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, measuring := errgroup.WithContext(measuring)
	if spec.MetricsAddress != "" {
		server, err := r.metrics.ListenOn(spec.MetricsAddress)
		if err != nil {
			return r.record, fmt.Errorf("serving metrics on %s: %w", spec.MetricsAddress, err)
		}
		r.progress.Log("metrics: " + server.URL())
		group.Go(func() error { return server.Run(measuring) })
	}
	group.Go(func() error { return r.sampler.Run(measuring) })
	group.Go(func() error { return measure.NewLag(r.recordLag).Run(measuring) })
	runErr := r.runSidecars(ctx, measuring)
	stop()
	if err := group.Wait(); err != nil {
		return r.record, err
	}
	if runErr != nil {
		return r.record, runErr
	}
	return r.finish(ctx)
}

func newRun(spec Spec, progress Progress) (*run, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	r := &run{
		spec: spec, progress: progress,
		sampler: measure.NewSampler(measure.SampleInterval),
		lag:     stats.NewHistogram(),
		base: xdsprobe.Config{
			Address: spec.Address, ServerName: spec.ServerName, Variant: xdsprobe.Variant(spec.XDS), Headers: spec.Headers,
		},
	}
	var err error
	if r.nodes, err = spec.nodes(); err != nil {
		return nil, err
	}
	if spec.TLSCA != "" {
		if r.base.RootPEM, err = credentialfile.Roots(spec.TLSCA); err != nil {
			return nil, err
		}
	}
	if spec.TokenFile != "" {
		r.base.Token = tokenFile(spec.TokenFile)
	}
	if err := doctor.Error(doctor.CheckSidecars(spec.Clients, 1)); err != nil {
		return nil, err
	}
	if err := r.sampler.Watch(measure.InstrumentName, measure.Self()); err != nil {
		return nil, err
	}
	r.metrics = measure.NewMetrics(measure.Build{Version: component.ScalerVersion()}, r.sampler)
	r.fleet = newFleet(spec.Clients, r.metrics, progress.Log)
	r.record = record.XDSRun{
		APIVersion: record.APIVersion, Kind: record.XDSKind, Schema: record.Schema,
		Started: time.Now().UTC(),
		Spec: record.XDSRunSpec{
			Address: spec.Address, Clients: spec.Clients, XDS: spec.XDS, TLS: !spec.Plaintext,
			RatePerSecond: spec.Rate, DurationSeconds: spec.Duration.Seconds(),
		},
		Environment: record.Environment{CPUs: runtime.NumCPU(), MemoryBytes: linux.MemoryBytes(), Kernel: place.Kernel(), Scaler: component.ScalerVersion()},
	}
	return r, nil
}

// runSidecars starts the sidecars, waits for the end and stops them. It returns after the
// last of them has ended. measuring ends early only if measuring failed.
func (r *run) runSidecars(ctx, measuring context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(measuring, cancel)()
	if r.spec.Duration > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeout(ctx, r.spec.Duration)
		defer done()
	}
	if err := r.begin(); err != nil {
		return err
	}
	// The sidecars continue while the last edge is read.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	group, life := errgroup.WithContext(life)
	defer context.AfterFunc(life, cancel)() // one that cannot be is the end of all
	group.Go(func() error { return r.arrive(ctx, life, group) })

	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	complete := r.fleet.allComplete
	var err error
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-complete:
			complete = nil
			r.progress.Log(fmt.Sprintf("all %d sidecars are complete after %.1f s", r.spec.Clients, time.Since(r.edges[0].at).Seconds()))
			err = errors.Join(err, r.edge())
		case <-ticker.C:
			r.showStatus()
		}
	}
	err = errors.Join(err, r.edge())
	end()
	return errors.Join(err, group.Wait())
}

// arrive starts the sidecars when they are due until ctx is done. They run as long as
// life.
func (r *run) arrive(ctx, life context.Context, group *errgroup.Group) error {
	begun := time.Now()
	for i := range r.spec.Clients {
		if r.spec.Rate > 0 {
			due := begun.Add(time.Duration(float64(i) / r.spec.Rate * float64(time.Second)))
			if task.WaitUntil(ctx, due) != nil {
				return nil
			}
		}
		node, err := r.nodes.config(i)
		if err != nil {
			return err
		}
		c := r.base
		c.ID, c.NodeID, c.NodeCluster, c.Metadata = strconv.Itoa(i), node.NodeID, node.NodeCluster, node.Metadata
		sidecar := xdsprobe.New(c, r.fleet.store, r.fleet)
		r.fleet.sidecars[i].sidecar = sidecar
		group.Go(func() error { return sidecar.Run(life) })
	}
	return nil
}

// begin reads the first edge, and the usage of the idle program.
func (r *run) begin() error {
	before, err := r.sampler.Edge()
	if err != nil {
		return fmt.Errorf("reading scaler's own counters: %w", err)
	}
	if err := r.edge(); err != nil {
		return err
	}
	usage, err := r.sampler.Figures(measure.InstrumentName, before, r.edges[0].at)
	r.idle = usage.MemoryEnd
	return err
}

// edge reads all counters now.
func (r *run) edge() error {
	at, err := r.sampler.Edge()
	if err != nil {
		return fmt.Errorf("reading scaler's own counters: %w", err)
	}
	responses, bytes := r.fleet.store.Counters().Now().AllResponses()
	r.edges = append(r.edges, edge{at, responses, bytes})
	return nil
}

func (r *run) recordLag(d time.Duration) {
	r.lag.Record(d)
	r.metrics.Observe(measure.SchedulingLag, d)
}

// showStatus shows how far the run is.
func (r *run) showStatus() {
	c := r.fleet.store.Counters().Now()
	responses, bytes := c.AllResponses()
	s := Status{
		Elapsed: time.Since(r.edges[0].at), Length: r.spec.Duration, Clients: r.spec.Clients,
		Open: int(c.Connected), Complete: int(r.fleet.complete.Load()),
		Responses: responses, Bytes: bytes, Refusals: c.Refusals, Failures: c.Failures,
	}
	r.metrics.Sidecars("connected", s.Open)
	r.metrics.Proxies(s.Open)
	r.metrics.Sidecars("complete", s.Complete)
	if r.progress.Status != nil {
		r.progress.Status(s)
	}
}

// tokenFile provides the token in a file, which is read again for a stream if it was last
// read a minute ago, because a kubelet keeps an agent's token file up to date.
type tokenFile string

var _ proxy.TokenSource = tokenFile("")

// Token implements proxy.TokenSource.
func (f tokenFile) Token(context.Context) (proxy.Token, error) {
	token, err := credentialfile.Token(string(f))
	return proxy.Token{Value: token, Expires: time.Now().Add(time.Minute)}, err
}
