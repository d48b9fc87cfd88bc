// Package latency is `scaler latency`: what requests pay for the mesh, measured at
// the same time without sidecars, with permissive ones and with strict ones.
package latency

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
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
)

// Progress receives how far a run is. The zero value receives nothing.
type Progress struct {
	Log    func(msg string)     // one line, about an event
	Status func(status, of int) // rounds done, of all
}

// run is one run of `scaler latency`.
type run struct {
	// fixed at the start
	spec     Spec
	progress Progress
	tiers    []tierSpec
	dir      string // of what is needed while it lasts
	writer   *record.LatencyWriter
	sampler  *recorder.Sampler

	// made by the steps
	group  *process.Group
	mesh   *sidecarMesh
	beds   []*testbed // in the order of Variants
	cells  []*cellRun
	own    []recorder.Usage // scaler's, in each window
	rounds int              // that are done

	retries int // controlplane.Description's; 0 without a mesh

	record record.LatencyRun
}

// testbed is what one variant's requests go to.
type testbed struct {
	variant  string
	target   dataplane.Target
	servers  []*echoServer // of all tiers
	sidecars []tierSidecars
}

// tierSidecars are those of one tier, by the names under which they are
// sampled: one for each program of each.
type tierSidecars struct {
	tier  string
	count int
	names []string
}

// folderName is the name of the run's folder in Spec.Out.
const folderName = "latency"

// Run measures what requests pay for the mesh, and leaves a record of it, in
// Dir of what it returns ("" if none came to be made). That is whole only if the
// error is nil; its Status states how far it came, and is "" if nothing came to be
// measured.
func Run(ctx context.Context, spec Spec, progress Progress) (_ record.LatencyRun, err error) {
	if err := spec.Validate(); err != nil {
		return record.LatencyRun{}, err
	}
	r := &run{
		spec: spec, progress: progress, tiers: spec.tiers(),
		dir:     filepath.Join(spec.State, "latency", fmt.Sprint(os.Getpid())),
		sampler: recorder.NewSampler(experiment.SampleInterval / 4),
		record: record.LatencyRun{
			APIVersion: record.APIVersion, Kind: record.LatencyKind, Schema: record.Schema,
			Started: time.Now().UTC(), Spec: spec.record(), Rows: []record.LatencyRow{},
			Environment: record.Environment{CPUs: runtime.NumCPU(), MemoryBytes: experiment.MemoryBytes(), Kernel: experiment.Kernel(), Scaler: experiment.Version()},
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
	sampling, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, sampling := errgroup.WithContext(sampling)
	group.Go(func() error { return r.sampler.Run(sampling) })
	err = experiment.RunSteps(ctx, []experiment.Step{
		{Name: "opening a folder", Do: r.open},
		{Name: "starting the mesh", Do: r.startMesh},
		{Name: "starting servers", Do: r.startBeds},
		{Name: "measuring", Do: r.measure},
	})
	stop()
	return r.finish(ctx, errors.Join(err, group.Wait()))
}

// open makes the group that everything belongs to.
func (r *run) open(context.Context) (experiment.Undo, error) {
	var err error
	if r.group, err = process.OpenGroup(r.dir, process.GroupOptions{Grace: 3 * time.Second}); err != nil {
		return nil, err
	}
	return r.group.Remove, r.sampler.Watch(experiment.InstrumentName, recorder.Self())
}

// startBeds starts what each variant's requests go to.
func (r *run) startBeds(ctx context.Context) (experiment.Undo, error) {
	for _, variant := range r.spec.Variants {
		var bed *testbed
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
func (r *run) finish(ctx context.Context, err error) (record.LatencyRun, error) {
	r.record.Finished = new(time.Now().UTC())
	r.record.Status = record.StatusCompleted
	switch {
	case ctx.Err() != nil:
		r.record.Status, r.record.Reason = record.StatusInterrupted, context.Cause(ctx).Error()
	case err != nil:
		r.record.Status, r.record.Reason = record.StatusFailed, experiment.FirstLine(err)
	}
	r.rows()
	r.measureInstrument()
	if r.mesh != nil {
		r.mesh.addWarnings()
	}
	err = errors.Join(err, r.writer.Save(&r.record))
	if r.rounds == 0 && err != nil {
		return record.LatencyRun{Dir: r.record.Dir}, err
	}
	return r.record, err
}

// saveSoFar writes what was measured until now, as of a run that is interrupted:
// should scaler be killed, that is what is left.
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
