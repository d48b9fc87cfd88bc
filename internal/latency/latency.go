// Package latency is `scaler latency`: it measures the latency that the mesh adds to
// requests, in turns without sidecars, with permissive ones and with strict ones.
package latency

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/podnet"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

// Progress receives the progress of a run. The zero value receives nothing.
type Progress struct {
	Log    func(msg string)     // one line, about an event
	Status func(status, of int) // rounds done, of all
}

// run is one run of `scaler latency`.
type run struct {
	// fixed at the start
	spec     Spec
	driver   controlplane.Driver
	progress Progress
	tiers    []tierSpec
	dir      string // of temporary files
	writer   *record.LatencyWriter
	sampler  *measure.Sampler

	// made by the steps
	group  *process.Group
	net    *podnet.Net // of pods; nil where sidecars are addressed directly
	meshes []*sidecarMesh
	beds   []*testbed // of the first placement in the order of Variants, then of the next
	cells  []*rowRun
	own    []measure.Usage // scaler's, in each window
	rounds int             // that are done
	// sampling is the context of startSampling, which is checked after each round.
	sampling context.Context

	retries int // controlplane.Description's; 0 without a mesh

	record record.LatencyRun
}

// testbed is the destination of one variant's requests.
type testbed struct {
	target    dataplane.Target
	dial      dialer        // nil = as net.Dialer does
	servers   []*echoServer // of all tiers
	sidecars  []tierSidecars
	generator generator
	workers   int    // threads of each sidecar that serve requests
	sampled   string // name under which what the generator uses is sampled
}

// generator sends requests, as functions of package dataplane do.
type generator interface {
	Open(context.Context, dataplane.OpenLoad) (*dataplane.Result, error)
	Closed(context.Context, dataplane.ClosedLoad) (*dataplane.Result, error)
}

// local is the generator of this process.
type local struct{}

// Open calls dataplane.Open.
func (local) Open(ctx context.Context, l dataplane.OpenLoad) (*dataplane.Result, error) {
	return dataplane.Open(ctx, l)
}

// Closed calls dataplane.Closed.
func (local) Closed(ctx context.Context, l dataplane.ClosedLoad) (*dataplane.Result, error) {
	return dataplane.Closed(ctx, l)
}

// tierSidecars are the sidecars of one tier, by the names under which they are sampled:
// one for each program of each sidecar.
type tierSidecars struct {
	tier  string
	count int
	names []string
}

// dialer connects, as net.Dialer.DialContext does.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// folderName is the name of the run's folder in Spec.Out.
const folderName = "latency"

// Run measures the latency that the mesh adds to requests, and leaves a record, in Dir of
// the result ("" if none was made). The record is complete only if the error is nil; its
// Status says how far the run came, and is "" if nothing was measured.
func Run(ctx context.Context, spec Spec, progress Progress) (_ record.LatencyRun, err error) {
	if err := spec.Validate(); err != nil {
		return record.LatencyRun{}, err
	}
	driver, err := spec.Driver()
	if err != nil {
		return record.LatencyRun{}, err
	}
	if i := driver.Latency.Intercepts; i != nil && spec.Existing == nil {
		if err := podnet.Check(i.User); err != nil {
			return record.LatencyRun{}, fmt.Errorf("redirecting connections, as the proxies of %s need: %w", driver.Name, err)
		}
	}
	if spec.Existing != nil && spec.found == nil {
		return record.LatencyRun{}, attach.ErrNotInspected
	}
	r := &run{
		spec: spec, driver: driver, progress: progress, tiers: spec.tiers(),
		dir:     filepath.Join(spec.State, "latency", fmt.Sprint(os.Getpid())),
		sampler: measure.NewSampler(measure.SampleInterval / 4),
		record: record.LatencyRun{
			APIVersion: record.APIVersion, Kind: record.LatencyKind, Schema: record.Schema,
			Started: time.Now().UTC(), Spec: spec.record(driver), Rows: []record.LatencyRow{},
			Environment: record.Environment{CPUs: runtime.NumCPU(), MemoryBytes: linux.MemoryBytes(), Kernel: place.Kernel(), Scaler: component.ScalerVersion()},
		},
	}
	if r.record.Published, err = compare.PublishedLatencies(r.record.Spec); err != nil {
		return record.LatencyRun{}, err
	}
	if r.writer, err = record.CreateLatency(spec.Out, folderName); err != nil {
		return record.LatencyRun{}, err
	}
	defer func() { err = errors.Join(err, r.writer.Close()) }()
	r.record.Name, r.record.Dir = folderName, r.writer.Dir()
	if err := r.writer.Save(&r.record); err != nil {
		return record.LatencyRun{Dir: r.record.Dir}, err
	}
	r.plan()
	return r.finish(ctx, steps.Run(ctx, r.steps()))
}

// steps returns the steps of a run.
func (r *run) steps() []steps.Step {
	measured := []steps.Step{
		{Name: "sampling", Do: func(ctx context.Context) (undo steps.Undo, err error) {
			r.sampling, undo, err = startSampling(ctx, r.sampler)
			return undo, err
		}},
		{Name: "measuring", Do: r.measure},
	}
	if r.spec.Existing != nil {
		p := &clusterPods{run: r, found: r.spec.found}
		return append([]steps.Step{
			{Name: "creating pods", Do: p.create, Reserve: place.StayingDeletionTime},
			{Name: "connecting to the pods", Do: p.connect},
			{Name: "checking the pods", Do: p.start},
		}, measured...)
	}
	return append([]steps.Step{
		{Name: "making a network for pods", Do: r.openNet},
		{Name: "opening a folder", Do: r.open},
		{Name: "starting the mesh", Do: r.startMeshes},
		{Name: "starting servers", Do: r.startBeds},
	}, measured...)
}

// startSampling reads everything that is watched until it is undone, which happens before
// any of it is stopped. The context sampling ends if something cannot be read; its cause
// is the error.
func startSampling(ctx context.Context, sampler *measure.Sampler) (sampling context.Context, undo steps.Undo, err error) {
	sampling, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		stop(sampler.Run(sampling))
	}()
	_, err = sampler.Edge() // usage before this is in no window
	return sampling, func(context.Context) error {
		stop(nil)
		<-done
		return nil
	}, err
}

// openNet makes the network of pods, for variants whose connections are redirected.
// Processes in it end first.
func (r *run) openNet(context.Context) (steps.Undo, error) {
	if r.driver.Latency.Intercepts == nil {
		return nil, nil
	}
	var err error
	if r.net, err = podnet.Open(); err != nil {
		return nil, err
	}
	return func(context.Context) error { return r.net.Close() }, nil
}

// open makes the process group of everything that the run starts.
func (r *run) open(context.Context) (steps.Undo, error) {
	var err error
	if r.group, err = process.OpenGroup(r.dir, process.GroupOptions{Grace: 3 * time.Second}); err != nil {
		return nil, err
	}
	return r.group.Remove, r.sampler.Watch(measure.InstrumentName, measure.Self())
}

// startBeds starts the servers and sidecars of each variant.
func (r *run) startBeds(ctx context.Context) (steps.Undo, error) {
	for _, variant := range r.spec.Latency.Variants {
		bed, err := r.startBed(ctx, variant)
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", variant, err)
		}
		bed.generator, bed.workers, bed.sampled = local{}, workers(r.driver), measure.InstrumentName
		r.beds = append(r.beds, bed)
	}
	return nil, nil
}

func (r *run) startBed(ctx context.Context, variant string) (*testbed, error) {
	switch {
	case variant == VariantNone && r.net != nil:
		return r.startPlainPods(ctx)
	case variant == VariantNone:
		return r.startPlain(ctx)
	}
	for _, m := range r.meshes {
		if m.pods != nil && m.pods.variant == variant {
			return m.startPods(ctx, m.pods)
		}
	}
	return r.meshes[0].start(ctx, variant)
}

// finish makes the record whole.
func (r *run) finish(ctx context.Context, err error) (record.LatencyRun, error) {
	r.record.Finished = new(time.Now().UTC())
	r.record.Status = record.StatusCompleted
	switch {
	case ctx.Err() != nil:
		r.record.Status, r.record.Reason = record.StatusInterrupted, context.Cause(ctx).Error()
	case err != nil:
		r.record.Status, r.record.Reason = record.StatusFailed, output.FirstLine(err)
	}
	r.rows()
	r.measureInstrument()
	for _, m := range r.meshes {
		m.addWarnings()
	}
	err = errors.Join(err, r.writer.Save(&r.record))
	if r.rounds == 0 && err != nil {
		return record.LatencyRun{Dir: r.record.Dir}, err
	}
	return r.record, err
}

// saveSoFar writes what was measured so far, as an interrupted run, in case scaler is
// killed.
func (r *run) saveSoFar() error {
	warnings := slices.Clone(r.record.Warnings)
	r.rows()
	err := r.writer.Save(&r.record)
	r.record.Rows, r.record.Warnings = []record.LatencyRow{}, warnings
	return err
}

func (r *run) logf(format string, args ...any) {
	if r.progress.Log != nil {
		r.progress.Log(fmt.Sprintf(format, args...))
	}
}

func (r *run) warn(w record.Warning) {
	r.record.Warnings = append(r.record.Warnings, record.NewWarning(w))
}
