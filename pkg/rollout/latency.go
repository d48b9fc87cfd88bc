package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/compare"
	"scaler.mesh/scaler/pkg/dataplane"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
)

// LatencyProgress is told how `scaler latency` gets on. The zero value tells
// nobody.
type LatencyProgress struct {
	Say    func(msg string)     // one line, about an event
	Status func(status, of int) // rounds done, of all
}

// latencyRun is one run of `scaler latency`.
type latencyRun struct {
	// fixed at the start
	spec     LatencySpec
	progress LatencyProgress
	tiers    []latencyTier
	dir      string // of what is needed while it lasts
	writer   *record.LatencyWriter
	sampler  *recorder.Sampler

	// made by the steps
	group  *process.Group
	mesh   *latencyMesh
	beds   []*latencyBed // in the order of Variants
	cells  []*latencyCell
	own    []recorder.Usage // scaler's, in each window
	rounds int              // that are done

	retries int // controlplane.Description's; 0 without a mesh

	record record.LatencyRun
}

// latencyBed is what one variant's requests go to.
type latencyBed struct {
	variant  string
	target   dataplane.Target
	servers  []*latencyServer // of all tiers
	sidecars []latencySidecars
}

// latencySidecars are those of one tier, by the names under which they are
// sampled: one for each program of each.
type latencySidecars struct {
	tier  string
	count int
	names []string
}

// latencyName is the name of the run's folder in LatencySpec.Out.
const latencyName = "latency"

// Latency measures what requests pay for the mesh, and leaves a record of it, in
// Dir of what it returns ("" if none came to be made). That is whole only if the
// error is nil; its Status says how far it came, and is "" if nothing came to be
// measured.
func Latency(ctx context.Context, spec LatencySpec, progress LatencyProgress) (_ record.LatencyRun, err error) {
	if err := spec.Validate(); err != nil {
		return record.LatencyRun{}, err
	}
	r := &latencyRun{
		spec: spec, progress: progress, tiers: spec.tiers(),
		dir:     filepath.Join(spec.State, "latency", fmt.Sprint(os.Getpid())),
		sampler: recorder.NewSampler(sampleInterval / 4),
		record: record.LatencyRun{
			APIVersion: record.APIVersion, Kind: record.LatencyKind, Schema: record.Schema,
			Started: time.Now().UTC(), Spec: spec.record(), Rows: []record.LatencyRow{},
			Environment: record.Environment{CPUs: runtime.NumCPU(), MemoryBytes: memoryBytes(), Kernel: kernel(), Scaler: Version()},
		},
	}
	if r.record.Published, err = compare.PublishedLatencies(r.record.Spec); err != nil {
		return record.LatencyRun{}, err
	}
	if r.writer, err = record.CreateLatency(spec.Out, latencyName); err != nil {
		return record.LatencyRun{}, err
	}
	defer func() { err = errors.Join(err, r.writer.Close()) }()
	r.record.Name, r.record.Dir = latencyName, r.writer.Dir()
	if err := r.writer.Save(&r.record); err != nil {
		return record.LatencyRun{Dir: r.record.Dir}, err
	}
	r.plan()
	sampling, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, sampling := errgroup.WithContext(sampling)
	group.Go(func() error { return r.sampler.Run(sampling) })
	err = runSteps(ctx, []step{
		{"opening a folder", r.open},
		{"starting the mesh", r.startMesh},
		{"starting servers", r.startBeds},
		{"measuring", r.measure},
	})
	stop()
	return r.finish(ctx, errors.Join(err, group.Wait()))
}

// open makes the group that everything belongs to.
func (r *latencyRun) open(context.Context) (undo, error) {
	var err error
	if r.group, err = process.OpenGroup(r.dir, process.GroupOptions{Grace: 3 * time.Second}); err != nil {
		return nil, err
	}
	down := func(ctx context.Context) error { return errors.Join(r.group.Stop(ctx), os.RemoveAll(r.dir)) }
	return down, r.sampler.Watch(instrumentName, os.Getpid())
}

// startBeds starts what each variant's requests go to.
func (r *latencyRun) startBeds(ctx context.Context) (undo, error) {
	for _, variant := range r.spec.Variants {
		var bed *latencyBed
		var err error
		if variant == VariantNone {
			bed, err = r.startPlain(ctx)
		} else {
			bed, err = r.mesh.start(ctx, variant)
		}
		if err != nil {
			return nil, fmt.Errorf("variant %s: %w", variant, err)
		}
		r.beds = append(r.beds, bed)
	}
	return nil, nil
}

// finish makes the record whole.
func (r *latencyRun) finish(ctx context.Context, err error) (record.LatencyRun, error) {
	r.record.Finished = new(time.Now().UTC())
	r.record.Status = record.StatusCompleted
	switch {
	case ctx.Err() != nil:
		r.record.Status, r.record.Reason = record.StatusInterrupted, context.Cause(ctx).Error()
	case err != nil:
		r.record.Status, r.record.Reason = record.StatusFailed, firstLine(err)
	}
	r.rows()
	r.measureInstrument()
	if r.mesh != nil {
		r.mesh.doubt()
	}
	err = errors.Join(err, r.writer.Save(&r.record))
	if r.rounds == 0 && err != nil {
		return record.LatencyRun{Dir: r.record.Dir}, err
	}
	return r.record, err
}

// saveSoFar writes what was measured until now, as of a run that is interrupted:
// should scaler be killed, that is what is left.
func (r *latencyRun) saveSoFar() error {
	warnings := slices.Clone(r.record.Warnings)
	r.rows()
	err := r.writer.Save(&r.record)
	r.record.Rows, r.record.Warnings = []record.LatencyRow{}, warnings
	return err
}

func (r *latencyRun) say(format string, args ...any) {
	if r.progress.Say != nil {
		r.progress.Say(fmt.Sprintf(format, args...))
	}
}

func (r *latencyRun) warn(w record.Warning) {
	r.record.Warnings = append(r.record.Warnings, record.NewWarning(w))
}
