package changes

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

const (
	// changeTimeout limits the time in which a change reaches all sidecars that it concerns. For others it is
	// lost.
	changeTimeout = 30 * time.Second
	// lateChanges is the share of the offered rate below which the achieved one is a
	// warning.
	lateChanges = 0.95
)

// Options configures the change phase of a run. All fields but the last two are
// needed.
type Options struct {
	Load     scenario.Changes           // what is changed, and how often
	Length   time.Duration              // of the phase
	Timeout  time.Duration              // for the mesh to converge again
	Mesh     topology.Mesh              // that is changed
	Knobs    scenario.Settings          // that the mesh has
	Adapter  *controlplane.ControlPlane // of the control plane
	API      place.Clients              // that changes are written to
	Label    string                     // value of the run label of objects that are created
	Fleet    *fleet.Fleet               // that changes are followed to
	Timeline *phases.Timeline           // measures the phase
	Journal  *journal.Journal           // takes the figures
	Say      func(msg string)           // shows progress

	// Slowdown is the factor by which times of the phase are longer; 0 = 1.
	Slowdown proxy.Slowdown
	// Meanwhile happens in the phase, too, and ends with it; nil = nothing.
	Meanwhile func(ctx context.Context) error
}

// phase is the phase as it goes on.
type phase struct {
	Options
	all       []object
	following *convergence.VersionFollowing
	samples   [][]sample // by object, in the order of their versions from 1
	missed    []int      // by object
}

// sample is a change that was written.
type sample struct {
	due, sent, written time.Time
}

// Run executes the change phase.
//
// The error is that of the run: what came of the changes is in the record.
func Run(ctx context.Context, o Options) error {
	p := &phase{Options: o}
	section := &record.Change{Kind: string(o.Load.Kind), OfferedPerSecond: new(float64(o.Load.PerSecond))}
	o.Journal.Update(func(run *record.Run) { run.Change = section })
	var why string
	if p.all, why = p.objects(); why != "" {
		o.Journal.Warn(record.Warning{
			About: "change", Reason: record.ReasonNotSupported, Component: o.Adapter.Server.Describe().Name, Detail: why,
		})
		return nil
	}
	p.samples, p.missed = make([][]sample, len(p.all)), make([]int, len(p.all))
	err := p.prepare(ctx)
	if err == nil {
		err = p.measure(ctx, section)
	}
	return errors.Join(err, p.restore(ctx, err != nil), o.Journal.Save())
}

// prepare creates the objects and waits until they have reached all they concern: the
// creation may be heavier than a change.
func (p *phase) prepare(ctx context.Context) error {
	p.Say("changes: making what is changed")
	f := p.Fleet.Tracker().FollowVersions(versions)
	defer f.Stop()
	for i, o := range p.all {
		receivers := o.concerned
		if o.creation != nil {
			receivers = o.creation // their push is over before the phase begins
		}
		f.Expect(convergence.Version{Object: i}, receivers())
		if err := p.create(ctx, o); err != nil {
			return err
		}
	}
	f.End()
	return p.rest(ctx, f, p.Slowdown.Of(changeTimeout))
}

// rest waits until every version has arrived and the control plane has sent nothing for
// a moment, or the limit.
func (p *phase) rest(ctx context.Context, f *convergence.VersionFollowing, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-f.Done():
		if err := p.Fleet.AwaitQuiet(limited); err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	case <-limited.Done():
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// measure makes the changes and follows them until the last one has arrived.
func (p *phase) measure(ctx context.Context, section *record.Change) error {
	p.following = p.Fleet.Tracker().FollowVersions(versions)
	responses, bytes := p.Fleet.Workers.Counts().AllResponses()
	var begin, end time.Time
	err := p.Timeline.Measure(ctx, record.PhaseChange, p.Length, func(ctx context.Context) (record.EndedBy, error) {
		begin = time.Now()
		err := p.make(ctx, begin)
		end = time.Now()
		return record.EndedByDuration, err
	})
	p.following.End()
	if err == nil {
		err = p.rest(ctx, p.following, p.Slowdown.Of(changeTimeout))
	}
	arrivals := p.following.Stop()
	if err != nil {
		return err
	}
	responsesAfter, bytesAfter := p.Fleet.Workers.Counts().AllResponses()
	r := p.result(arrivals, begin)
	return p.save(section, r, end.Sub(begin), end, responsesAfter-responses, bytesAfter-bytes)
}

// make makes all changes, each when it is due. Those of one object are made in turn, so
// that versions are written in their order: one that is due while the one before is
// still being written is late. It returns at the end of the phase.
func (p *phase) make(ctx context.Context, begin time.Time) error {
	work, during := errgroup.WithContext(ctx)
	for i := range p.all {
		work.Go(func() error { return p.changeObject(during, i, begin) })
	}
	if p.Meanwhile != nil {
		work.Go(func() error { return p.Meanwhile(during) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	return task.WaitUntil(ctx, begin.Add(p.Length))
}

// changeObject makes the changes of one object: with n objects, every n-th of all.
func (p *phase) changeObject(ctx context.Context, index int, begin time.Time) error {
	o := p.all[index]
	for n := index; p.Load.PerSecond.Due(n) < p.Length; n += len(p.all) {
		due := begin.Add(p.Load.PerSecond.Due(n))
		if err := task.WaitUntil(ctx, due); err != nil {
			return err
		}
		if time.Since(begin) >= p.Length {
			p.missed[index]++
			continue
		}
		version := len(p.samples[index]) + 1
		p.following.Expect(convergence.Version{Object: index, Number: version}, o.concerned())
		sent := time.Now()
		if err := p.write(ctx, o, version); err != nil {
			p.following.Withdraw(index)
			return err
		}
		p.samples[index] = append(p.samples[index], sample{due, sent, time.Now()})
	}
	return nil
}

// restore takes everything back and waits until the mesh is at rest again. A run
// that is over already deletes its objects by their label.
func (p *phase) restore(ctx context.Context, over bool) error {
	if over {
		return nil
	}
	for _, o := range p.all {
		if err := p.remove(ctx, o); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.Timeout, phases.ErrUnconverged)
	defer cancel()
	settled, err := p.Fleet.AwaitSettled(limited)
	p.Timeline.Quiescent("change", settled)
	if errors.Is(err, phases.ErrUnconverged) {
		p.Timeline.NotConvergedAgain("change", "", p.Timeout)
		p.Timeline.Explain("change")
	}
	return err
}
