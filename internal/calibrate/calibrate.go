// Package calibrate implements `scaler calibrate`: it measures the instrument's floor,
// that is, its figures with a control plane of almost no cost, the reference control
// plane with a static mesh. It keeps the result for the records of rollouts.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/reference"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// arrivalTimeout limits the start of a calibration's sidecars.
const arrivalTimeout = 10 * time.Minute

// Run measures the instrument's floor, its figures with a control plane of almost no
// cost, at each of the given numbers of sidecars. Unless the control plane was asked to
// make faults, the points are kept for the records of rollouts. log receives a line for
// each step.
func Run(ctx context.Context, spec Spec, log func(string)) (record.Calibration, error) {
	if err := spec.Validate(); err != nil {
		return record.Calibration{}, err
	}
	c := record.Calibration{
		APIVersion: record.APIVersion, Kind: record.CalibrationKind, Schema: record.Schema,
		Machine: place.Machine(), Scaler: component.ScalerVersion(),
	}
	keys, err := svid.NewKeyPool()
	if err != nil {
		return c, err
	}
	for _, n := range spec.Sidecars {
		p, err := calibratePoint(ctx, spec, n, keys, log)
		if err != nil {
			return c, fmt.Errorf("calibrating with %d sidecars: %w", n, err)
		}
		c.Points = append(c.Points, p)
	}
	if spec.faulty() {
		return c, nil
	}
	file, err := cacheFile(spec.Programs)
	if err != nil {
		return c, err
	}
	return c, addToCache(file, c.Points)
}

// calibration is the making of one point.
type calibration struct {
	spec    Spec
	size    reference.Size
	fleet   *fleet
	sampler *measure.Sampler
	lag     *stats.Histogram
	server  *reference.StaticMesh

	life context.Context // of the sidecars
	end  context.CancelFunc

	begun, arrived, held time.Time // edges
	idle                 float64   // resident bytes without sidecars
	changes              []change
	point                record.CalibrationPoint
}

// calibratePoint measures the floor for one number of sidecars.
func calibratePoint(ctx context.Context, spec Spec, sidecars int, keys *svid.KeyPool, log func(string)) (record.CalibrationPoint, error) {
	c := &calibration{
		spec:    spec,
		size:    reference.Size{Pods: sidecars, Services: min(spec.Services, sidecars)},
		fleet:   newFleet(keys, log),
		sampler: measure.NewSampler(measure.SampleInterval / 4),
		lag:     stats.NewHistogram(),
	}
	c.point = record.CalibrationPoint{
		Made: time.Now().UTC(), XDS: spec.XDS, Sidecars: sidecars, Services: c.size.Services, Changes: spec.Changes,
		DelaySeconds: spec.Delay.Seconds(), Drop: spec.Drop,
	}
	if err := doctor.Error(doctor.CheckSidecars(sidecars, 2)); err != nil { // the stream's, and the certificate client's
		return c.point, err
	}
	log(fmt.Sprintf("calibrating with %d sidecars", sidecars))
	debug.FreeOSMemory() // what an earlier point left is not this one's idle program
	sampling, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, sampling := errgroup.WithContext(sampling)
	group.Go(func() error { return c.sampler.Run(sampling) })
	began := time.Now()
	err := steps.Run(ctx, []steps.Step{
		{Name: "starting the reference control plane", Do: c.startServer},
		{Name: "starting sidecars", Do: c.arrive},
		{Name: "holding them", Do: c.hold},
		{Name: "renewing certificates", Do: c.renew},
		{Name: "following changes", Do: c.follow},
		{Name: "reading the figures", Do: c.measure},
	})
	stop()
	err = errors.Join(err, group.Wait())
	c.point.Seconds = time.Since(began).Seconds()
	return c.point, err
}

func (c *calibration) startServer(ctx context.Context) (steps.Undo, error) {
	dir := filepath.Join(c.spec.State, "calibrations", fmt.Sprintf("%d-%d", os.Getpid(), c.size.Pods))
	group, err := process.OpenGroup(dir, process.GroupOptions{})
	if err != nil {
		return nil, err
	}
	down := group.Remove
	c.server, err = reference.StartStatic(ctx, controlplane.StartOptions{Scaler: component.ScalerVersion(), Group: group, LogDir: dir}, c.size)
	if err != nil {
		return down, err
	}
	return down, errors.Join(
		c.sampler.Watch(measure.InstrumentName, measure.Self()),
		c.sampler.Watch(reference.Name, c.server.Usage()))
}

// arrive starts the sidecars, which run until the steps are undone.
func (c *calibration) arrive(ctx context.Context) (steps.Undo, error) {
	before, err := c.sampler.Edge()
	if err != nil {
		return nil, err
	}
	if c.begun, err = c.sampler.Edge(); err != nil {
		return nil, err
	}
	usage, err := c.sampler.Figures(measure.InstrumentName, before, c.begun)
	if err != nil {
		return nil, err
	}
	c.idle = usage.MemoryEnd
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	stop := func(context.Context) error {
		c.end()
		c.fleet.running.Wait()
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, arrivalTimeout)
	defer cancel()
	if err := c.fleet.start(limited, c.life, c.server, xdsprobe.Variant(c.spec.XDS)); err != nil {
		return stop, err
	}
	c.arrived, err = c.sampler.Edge()
	return stop, err
}

// hold measures the usage of idle sidecars.
func (c *calibration) hold(ctx context.Context) (steps.Undo, error) {
	ctx, cancel := context.WithTimeout(ctx, c.spec.Hold)
	defer cancel()
	if err := measure.NewLag(c.lag.Record).Run(ctx); err != nil {
		return nil, err
	}
	var err error
	c.held, err = c.sampler.Edge()
	return nil, err
}

func (c *calibration) renew(ctx context.Context) (steps.Undo, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return nil, c.fleet.renew(ctx)
}

// follow makes the changes, with the given faults.
func (c *calibration) follow(ctx context.Context) (steps.Undo, error) {
	if c.spec.faulty() {
		if err := c.server.SetFaults(ctx, server.Faults{Delay: c.spec.Delay, Drop: c.spec.Drop, Seed: 1}); err != nil {
			return nil, err
		}
	}
	if err := c.change(ctx); err != nil || c.spec.Drop == 0 {
		return nil, err
	}
	dropped, err := c.server.Dropped(ctx)
	c.point.Dropped = &dropped
	return nil, err
}

// measure computes the point's figures.
func (c *calibration) measure(context.Context) (steps.Undo, error) {
	p := &c.point
	p.ArrivalSeconds = c.arrived.Sub(c.begun).Seconds()
	p.Latencies.Certificate = new(record.Latency(c.fleet.certificate.Summary()))
	var held float64
	for _, s := range c.fleet.sidecars {
		for _, h := range s.Holdings() {
			held += float64(h.Bytes)
		}
	}
	p.ConfigurationBytes = held / float64(len(c.fleet.sidecars))

	quiet, err := c.sampler.Figures(measure.InstrumentName, c.arrived, c.held)
	if err != nil {
		return nil, err
	}
	whole, err := c.sampler.Figures(measure.InstrumentName, c.begun, c.changes[len(c.changes)-1].end)
	if err != nil {
		return nil, err
	}
	p.Instrument = record.Instrument{
		Cores: &quiet.CoresMean, MemoryBytes: &whole.MemoryPeak, OpenFiles: &whole.OpenFilesPeak,
		BytesPerSidecar: new((quiet.MemoryEnd - c.idle) / float64(c.size.Pods)),
		Lag:             new(record.Latency(c.lag.Summary())),
	}
	return nil, c.measureFanOut()
}

// measureFanOut computes the processor time of the changes.
func (c *calibration) measureFanOut() error {
	var own, theirs, meanwhile, length float64
	for _, ch := range c.changes {
		for _, of := range []struct {
			name string
			sum  *float64
		}{{measure.InstrumentName, &own}, {reference.Name, &theirs}} {
			whole, err := c.sampler.Figures(of.name, ch.begin, ch.acknowledged)
			if err != nil {
				return err
			}
			spreading, err := c.sampler.Figures(of.name, ch.begin, ch.end)
			if err != nil {
				return err
			}
			*of.sum += whole.CPUSeconds
			meanwhile += spreading.CPUSeconds
		}
		length += ch.end.Sub(ch.begin).Seconds()
	}
	pushes := float64(len(c.changes) * c.size.Pods)
	c.point.FanOut = record.FanOut{
		InstrumentSeconds: own / pushes, ControlPlaneSeconds: theirs / pushes,
		Share: meanwhile / (float64(runtime.NumCPU()) * length),
	}
	return nil
}
