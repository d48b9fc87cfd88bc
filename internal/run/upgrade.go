package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
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
	r.upgrading = upgrade.New(upgrade.Options{
		Plan: plan, Old: r.adapter, Mesh: r.mesh, Timeout: time.Duration(r.spec.Phases.ConvergeTimeout), NodesTake: r.spec.slowed(r.spec.nodesTake()),
		Actions: upgrade.Actions{Start: r.startNext, Move: r.applier.Move, MoveNodes: r.moveNodes, MoveWaypoints: r.moveWaypoints, Route: r.routeTo, Stop: r.retire},
		Journal: r.journal, Fleet: r.fleet, Timeline: r.timeline, Say: r.progress.say,
	})
	err := r.upgrading.Run(ctx)
	return errors.Join(err, r.journal.Save())
}

// startNext starts the control plane that an upgrade leads to next to the first one, and supervises it from then on.
func (r *run) startNext(ctx context.Context) (*controlplane.ControlPlane, error) {
	o := r.startOptions()
	o.Programs = r.programs.next
	o.Resources.Env = scenario.MergeEnv(r.spec.capturedEnv(r.driver), scenario.MergeEnv(o.Resources.Env, r.spec.upgrade().ToEnv))
	o.Name = r.driver.Name + "-" + r.spec.upgrade().Next()
	_, o.Revision = r.spec.revisions()
	o.Next = true
	adapter, err := r.driver.Start(ctx, o)
	if err != nil {
		return nil, err // what it started is in the run's group
	}
	name := adapter.Server.Describe().Name
	if r.spec.Captured != nil { // the kinds that it needs are there
		r.spec.Captured.takenBy(adapter)
	}
	if err := r.sampler.Watch(name, adapter.Program.Life().Usage()); err != nil {
		return nil, err
	}
	r.next = supervision.New(name, adapter.Program, r.supervisionOptions())
	r.watching.run("supervising the new control plane", r.next.Run)
	r.nextName.Store(&name)
	r.servers.set(true, func() []controlplane.Endpoints { return []controlplane.Endpoints{adapter.Server.Endpoints()} })
	return adapter, nil
}

// routeTo has sidecars that connect to the first control plane reach the new one.
func (r *run) routeTo(next *controlplane.ControlPlane) error {
	from, to := r.adapter.Server.Endpoints().Proxies, next.Server.Endpoints().Proxies
	if from == "" || to == "" {
		return errors.New("the address of a control plane for sidecars is not known")
	}
	r.fleet.Workers.Route(from, []string{to})
	return nil
}

// retire ends the program of the new control plane, or of the first one, for good.
func (r *run) retire(ctx context.Context, next bool) error {
	r.servers.set(next, nil)
	if next {
		return r.next.Retire(ctx)
	}
	return r.supervisor.Retire(ctx)
}
