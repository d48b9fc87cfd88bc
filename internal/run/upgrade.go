package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/supervision"
	"scaler.mesh/scaler/internal/run/upgrade"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
)

// checkUpgrade checks an upgrade with the rest of the spec.
func (s Spec) checkUpgrade(d controlplane.Driver) error {
	if s.upgrade() == nil {
		return nil
	}
	if !d.Revisions {
		return scenario.Refuse("controlPlane.name", s.ControlPlane.Name, "one that has revisions for an upgrade")
	}
	if err := s.upgrade().Validate(s.mesh()); err != nil {
		return err
	}
	if asked := s.ControlPlane.Upgrade.Canary; !s.hasSidecars() && !slices.Equal(asked, scenario.Default().ControlPlane.Upgrade.Canary) {
		return scenario.Refuse("controlPlane.upgrade.canary", asked, "none for a mesh without sidecars, whose pods are not moved")
	}
	for _, version := range []struct{ path, value string }{{"controlPlane.version", s.upgrade().From}, {"controlPlane.upgrade.to", s.upgrade().To}} {
		if want := component.CheckIstio(version.value); want != "" {
			return scenario.Refuse(version.path, version.value, "%s", want)
		}
	}
	return checkEnv("controlPlane.upgrade.env", s.upgrade().ToEnv)
}

// hasSidecars reports whether pods of the mesh have a proxy each.
func (s Spec) hasSidecars() bool {
	return slices.ContainsFunc(s.mesh().Services, topology.Service.OwnProxy)
}

// revisions returns the names of the two control planes of an upgrade; "" where there is none.
func (s Spec) revisions() (from, to string) {
	if s.upgrade() == nil {
		return "", ""
	}
	return s.upgrade().Revisions()
}

// ownPrograms returns the options by which the programs of the first control plane are found.
func (s Spec) ownPrograms() component.Options {
	o := s.Programs
	if s.upgrade() != nil {
		o.IstioRevision, _ = s.revisions()
	}
	return o
}

// nextPrograms returns the options that find the programs of the version that an upgrade leads to.
func (s Spec) nextPrograms() component.Options {
	o := s.Programs
	o.Istio = s.upgrade().To
	_, o.IstioRevision = s.revisions()
	return o
}

// findNext finds the programs of the control plane that an upgrade leads to, and enters
// where they are from under their names and its revision.
func (s Spec) findNext(ctx context.Context, names []string, say func(string), origins map[string]record.Program) (paths map[string]string, err error) {
	options := s.nextPrograms()
	options.Progress = say
	if paths, err = component.Paths(ctx, options, names...); err != nil {
		return nil, err
	}
	next, err := component.ProgramOrigins(options, paths)
	if err != nil {
		return nil, err
	}
	for name, origin := range next {
		origins[name+"-"+s.upgrade().Next()] = origin
	}
	return paths, nil
}

// upgrade moves the mesh to the new version of the control plane, if that was asked for.
func (r *run) upgrade(ctx context.Context) error {
	if r.spec.upgrade() == nil {
		return nil
	}
	plan := *r.spec.upgrade()
	plan.Pause = r.spec.slowed(plan.Pause)
	plan.Rate /= r.spec.dilation()
	next := r.newSuccessor()
	r.upgrading = upgrade.New(upgrade.Options{
		Plan: plan, Old: r.adapter, Mesh: r.mesh, Timeout: time.Duration(r.spec.Phases.ConvergeTimeout), NodesTake: r.spec.slowed(r.spec.nodesTake()),
		Actions: upgrade.Actions{Start: next.start, Move: r.applier.Move, MoveNodes: r.moveNodes, MoveWaypoints: r.moveWaypoints, Route: next.route, Stop: next.stop},
		Journal: r.journal, Fleet: r.fleet, Timeline: r.timeline, Say: r.progress.say,
	})
	err := r.upgrading.Run(ctx)
	return errors.Join(err, r.journal.Save())
}

// successor is the control plane that an upgrade leads to, while it runs next to the first.
type successor struct {
	driver    controlplane.Driver
	options   controlplane.StartOptions
	old       *controlplane.ControlPlane
	retired   *supervision.Supervisor // of the old one
	supervise supervision.Options
	sampler   *measure.Sampler
	monitor   *monitor
	watching  *background
	workers   fleet.Workers
	servers   *servers
	captured  *MeshFile // nil = the mesh is synthetic

	supervisor *supervision.Supervisor // set by start
}

// newSuccessor prepares the control plane of the run's upgrade.
func (r *run) newSuccessor() *successor {
	o := r.startOptions()
	o.Programs = r.programs.next
	o.Resources.Env = scenario.MergeEnv(r.spec.capturedEnv(r.driver), scenario.MergeEnv(o.Resources.Env, r.spec.upgrade().ToEnv))
	o.Name = r.driver.Name + "-" + r.spec.upgrade().Next()
	_, o.Revision = r.spec.revisions()
	o.Next = true
	return &successor{
		driver: r.driver, options: o, old: r.adapter, retired: r.supervisor, supervise: r.supervisionOptions(),
		sampler: r.sampler, monitor: r.monitor, watching: r.watching, workers: r.fleet.Workers, servers: &r.servers, captured: r.spec.Captured,
	}
}

// start starts it, and supervises it from then on.
func (s *successor) start(ctx context.Context) (*controlplane.ControlPlane, error) {
	adapter, err := s.driver.Start(ctx, s.options)
	if err != nil {
		return nil, err // what it started is in the run's group
	}
	name := adapter.Server.Describe().Name
	if s.captured != nil { // the kinds that it needs are there
		s.captured.takenBy(adapter)
	}
	if err := s.sampler.Watch(name, adapter.Program.Life().Usage()); err != nil {
		return nil, err
	}
	s.supervisor = supervision.New(name, adapter.Program, s.supervise)
	s.watching.run("supervising the new control plane", s.supervisor.Run)
	s.monitor.others.Store(&[]string{name})
	s.servers.set(true, func() []controlplane.Endpoints { return []controlplane.Endpoints{adapter.Server.Endpoints()} })
	return adapter, nil
}

// route has sidecars that connect to the old control plane reach the new one.
func (s *successor) route(next *controlplane.ControlPlane) error {
	from, to := s.old.Server.Endpoints().Proxies, next.Server.Endpoints().Proxies
	if from == "" || to == "" {
		return errors.New("the address of a control plane for sidecars is not known")
	}
	s.workers.Route(from, []string{to})
	return nil
}

// stop ends the program of the new control plane, or of the old one, for good.
func (s *successor) stop(ctx context.Context, next bool) error {
	s.servers.set(next, nil)
	of := s.retired
	if next {
		of = s.supervisor
	}
	return of.Retire(ctx)
}
