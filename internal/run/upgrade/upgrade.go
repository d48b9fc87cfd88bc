package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
)

// The stages that are no waves, in their order.
const (
	stageStart    = "start"    // the new control plane is installed and started
	stageRollback = "rollback" // all that was moved is moved back
	stageRemove   = "remove"   // the control plane without sidecars is removed
	stageAfter    = "after"    // what is left is not touched

	// Of an upgrade in place:
	stageReplace = "replace" // the new control plane takes the place of the old one
	stageRestart = "restart" // all workloads are restarted
)

// backInterval is the time between two counts of the sidecars that are back.
const backInterval = 100 * time.Millisecond

// podInterval is the time between two counts of pods, for their peak.
const podInterval = time.Second

// Actions are the functions of a run that an upgrade calls.
type Actions struct {
	// Start installs and starts the new control plane, and returns when it serves.
	Start func(ctx context.Context) (*controlplane.ControlPlane, error)
	// Move has the Deployments of workloads, by their indices, replace their pods by ones with
	// these labels in addition.
	Move func(ctx context.Context, workloads []int, podLabels map[string]string, at time.Time) error
	// MoveNodes has the proxies of nodes replaced, one node after another, by ones of a control plane, and MoveWaypoints all waypoints.
	MoveNodes, MoveWaypoints func(ctx context.Context, to *controlplane.ControlPlane, at time.Time) error
	// Route has sidecars that connect from now on reach the new control plane in place of the
	// old one.
	Route func(next *controlplane.ControlPlane) error
	// Stop ends the program of the old control plane or of the new one.
	Stop func(ctx context.Context, next bool) error
}

// Options configures an upgrade. All fields are needed.
type Options struct {
	Plan    Plan                       // that is followed; needed
	Actions Actions                    // how each step is done; all are needed
	Old     *controlplane.ControlPlane // that serves the mesh; needed
	Mesh    topology.Mesh              // that was rolled out; needed
	Timeout time.Duration              // for the mesh to converge in a stage
	// NodesTake is the approximate time in which the proxies of all nodes are replaced. It is added to Timeout. 0 = there are none.
	NodesTake time.Duration
	Journal   *journal.Journal // takes the section; needed
	Fleet     *fleet.Fleet     // of the mesh's pods; needed
	Timeline  *phases.Timeline // takes the stages; needed
	Say       func(msg string) // shows progress
}

// Upgrade is an upgrade that goes on, or is done.
type Upgrade struct {
	Options // fixed after New
	next    *controlplane.ControlPlane
	stages  []*Stage
}

// Stage is a stage that has ended.
type Stage struct {
	Name       string
	Begin, End time.Time
	Old, Next  *fleet.Received // of each control plane's sidecars; nil where there was none
	Background *fleet.Background
	pods       int // that are moved
	moved      []record.UpgradeUnit
	replaced   int
	peakPods   int
}

// New returns an upgrade that has not begun.
func New(o Options) *Upgrade { return &Upgrade{Options: o} }

// Run does the upgrade. Its error is ErrUnconverged when a wave did not converge within the
// time limit; what was moved stays so.
func (u *Upgrade) Run(ctx context.Context) error {
	from, to := u.Plan.Revisions()
	old := u.Old.Server.Describe()
	u.Journal.Update(func(r *record.Run) {
		r.Upgrade = &record.Upgrade{
			From: record.UpgradeVersion{Program: old.Name, Version: old.Version, Revision: from},
			To:   record.UpgradeVersion{Version: u.Plan.To, Revision: to},
		}
	})
	if u.Plan.InPlace {
		return u.inPlace(ctx)
	}
	if err := u.stage(ctx, stageStart, Wave{}, u.start); err != nil {
		return err
	}
	waves := u.Plan.WavesOf(u.Mesh)
	for i, wave := range waves {
		if err := u.move(ctx, fmt.Sprintf("wave-%d", i+1), wave, u.next); err != nil {
			return err
		}
		if i+1 == u.Plan.RollbackAt {
			if err := u.move(ctx, stageRollback, together(waves[:i+1]), u.Old); err != nil {
				return err
			}
			return u.conclude(ctx, u.next)
		}
	}
	return u.conclude(ctx, u.Old)
}

// start starts the new control plane, and gives it time to come to rest.
func (u *Upgrade) start(ctx context.Context) (record.EndedBy, error) {
	if err := u.startNext(ctx); err != nil {
		return "", err
	}
	u.Fleet.Revisions.Join(u.next)
	return u.pause(ctx)
}

// pause lets the length of a pause pass.
func (u *Upgrade) pause(ctx context.Context) (record.EndedBy, error) {
	return record.EndedByDuration, task.WaitUntil(ctx, time.Now().Add(u.Plan.Pause))
}

func (u *Upgrade) startNext(ctx context.Context) (err error) {
	if u.next, err = u.Actions.Start(ctx); err != nil {
		return err
	}
	d := u.next.Server.Describe()
	u.Journal.Update(func(r *record.Run) { r.Upgrade.To.Program, r.Upgrade.To.Version = d.Name, d.Version })
	return nil
}

// inPlace does an upgrade without revisions.
func (u *Upgrade) inPlace(ctx context.Context) error {
	if err := u.stage(ctx, stageReplace, Wave{}, u.replace); err != nil {
		return err
	}
	all := Wave{Units: slices.Clone(u.Plan.Proxies)}
	for _, unit := range u.Plan.units(u.Mesh) {
		all.add(unit)
	}
	if err := u.move(ctx, stageRestart, all, u.next); err != nil {
		return err
	}
	return u.after(ctx)
}

// replace starts the new control plane, has sidecars reach it, ends the old one as a rolling
// update of its Deployment does, and waits until every sidecar is back.
func (u *Upgrade) replace(ctx context.Context) (record.EndedBy, error) {
	if err := u.startNext(ctx); err != nil {
		return "", err
	}
	u.Fleet.Revisions.Replace(u.next)
	if err := u.Actions.Route(u.next); err != nil {
		return "", err
	}
	before := u.Fleet.Workers.Counts().Reconnects
	connected := u.Fleet.Connected()
	if err := u.Actions.Stop(ctx, false); err != nil {
		return "", err
	}
	tick := time.NewTicker(backInterval)
	defer tick.Stop()
	for u.Fleet.Workers.Counts().Reconnects < before+u.there(connected) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	u.Fleet.ExpectAnew()
	return u.Fleet.AwaitSettled(ctx)
}

// there returns how many of these pods, which are sorted, are there: the new control plane replaces waypoints as soon as it serves.
func (u *Upgrade) there(ids []string) (n int64) {
	for _, id := range u.Fleet.IDs() {
		if _, found := slices.BinarySearch(ids, id); found {
			n++
		}
	}
	return n
}

// move moves a wave to a control plane and waits until the mesh is at rest.
func (u *Upgrade) move(ctx context.Context, name string, wave Wave, to *controlplane.ControlPlane) error {
	workloads := wave.Workloads
	if err := u.Fleet.AwaitQuiet(ctx); err != nil { // what went before is no part of it
		return err
	}
	text := name + ": " + output.Many(wave.pods(u.Mesh), "pod")
	if workloads != nil {
		text += " of " + output.Many(len(workloads), "workload")
	}
	text += " to " + to.Server.Describe().Version
	if of := record.UpgradeUnits(wave.Units); of != "" {
		text += ": " + of
	}
	u.Say(text)
	return u.stage(ctx, name, wave, func(ctx context.Context) (record.EndedBy, error) {
		var services []string
		for _, i := range workloads {
			services = append(services, u.Mesh.Services[i].Name)
		}
		begin := time.Now()
		if wave.has(record.UpgradeNodes) {
			u.Fleet.RenewNodes()
			if err := u.Actions.MoveNodes(ctx, to, begin); err != nil {
				return "", err
			}
		}
		if wave.has(record.UpgradeWaypoints) {
			u.Fleet.RenewWaypoints()
			if err := u.Actions.MoveWaypoints(ctx, to, begin); err != nil {
				return "", err
			}
		}
		if services != nil {
			u.Fleet.Pods.Renew(services...)
		}
		for i, at := range due(u.Mesh, workloads, u.Plan.Rate) {
			if err := task.WaitUntil(ctx, begin.Add(at)); err != nil {
				return "", err
			}
			if err := u.Actions.Move(ctx, workloads[i:i+1], to.Sidecars.PodLabels, time.Now()); err != nil {
				return "", err
			}
		}
		u.Fleet.ExpectAnew() // another control plane serves these pods
		return u.Fleet.AwaitSettled(ctx)
	})
}

// conclude removes the control plane that has no sidecars any more, and measures what is left.
func (u *Upgrade) conclude(ctx context.Context, empty *controlplane.ControlPlane) error {
	err := u.stage(ctx, stageRemove, Wave{}, func(ctx context.Context) (record.EndedBy, error) {
		if empty == u.Old {
			if err := u.next.Revision.Promote(ctx); err != nil {
				return "", err
			}
		}
		if err := u.Actions.Stop(ctx, empty == u.next); err != nil {
			return "", err
		}
		if err := empty.Revision.Remove(ctx); err != nil {
			return "", err
		}
		return record.EndedByDuration, u.Fleet.AwaitQuiet(ctx)
	})
	if err != nil {
		return err
	}
	return u.after(ctx)
}

// after measures what is left.
func (u *Upgrade) after(ctx context.Context) error {
	return u.stage(ctx, stageAfter, Wave{}, u.pause)
}

// stage does one stage in a phase of its own.
func (u *Upgrade) stage(ctx context.Context, name string, wave Wave, do func(context.Context) (record.EndedBy, error)) error {
	limit := u.Timeout
	if wave.has(record.UpgradeNodes) {
		limit += u.NodesTake
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, phases.ErrUnconverged)
	defer cancel()
	s := &Stage{Name: name, pods: wave.pods(u.Mesh), moved: wave.Units}
	err := u.Timeline.Measure(ctx, record.UpgradePhase(name), 0, func(ctx context.Context) (record.EndedBy, error) {
		s.Background = u.Fleet.Pods.Begin()
		received := u.Fleet.Revisions.Receive()
		settled, err := u.countPods(limited, s, do)
		switch s.Old = received[0]; {
		case u.Plan.InPlace: // all sidecars are the new one's
			s.Old, s.Next = nil, received[0]
		case len(received) > 1:
			s.Next = received[1]
		}
		return u.Timeline.EndedBy(ctx, limited, "upgrade.stages."+name, settled, err)
	})
	windows := u.Timeline.Windows()
	if len(windows) == 0 || windows[len(windows)-1].Name != record.UpgradePhase(name) {
		return err // it was not even begun
	}
	w := windows[len(windows)-1]
	s.Begin, s.End = w.Begin, w.End
	s.replaced, _ = u.Fleet.Pods.End(s.Background)
	u.stages = append(u.stages, s)
	if errors.Is(err, phases.ErrUnconverged) {
		u.Timeline.NotConvergedAgain("upgrade.stages."+name, name, limit)
	}
	return err
}

// countPods does a stage and counts the pods that are there meanwhile.
func (u *Upgrade) countPods(ctx context.Context, s *Stage, do func(context.Context) (record.EndedBy, error)) (record.EndedBy, error) {
	counting, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(podInterval)
		defer tick.Stop()
		for {
			s.peakPods = max(s.peakPods, u.Fleet.Count().Created+u.Fleet.Surplus())
			select {
			case <-tick.C:
			case <-counting.Done():
				return
			}
		}
	})
	defer group.Wait()
	defer stop()
	return do(ctx)
}
