package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// run is a run of `scaler rollout`, from an empty machine to its record.
type run struct {
	// fixed at the start
	spec     Spec
	driver   controlplane.Driver
	progress Progress
	mesh     topology.Mesh
	fail     context.CancelCauseFunc // ends the run with a reason
	cause    func() error            // the reason, nil while it goes on
	// rolloutLength is the approximate time of the rollout on this machine.
	rolloutLength time.Duration
	countdown     *countdown
	journal       *journal.Journal

	// made by the steps, in this order
	system
	recording
	parts
	workers workers
	waits   *waits // nil where they are not watched

	observed  observed
	completed bool // all phases were done
}

// system holds the cluster and the programs of a run.
type system struct {
	programs  programs
	group     *process.Group // of everything that the run starts
	env       place.Environment
	api       place.Clients
	resources controlplane.Resources
	dilation  *record.Dilation // nil where time is not slowed down and no factor was chosen
	adapter   *controlplane.ControlPlane
	templates []corev1.PodTemplateSpec         // of the pods of a captured mesh
	machines  map[string]convergence.Endpoints // of a captured mesh's services, besides pods
	unchecked []record.NotChecked              // of a captured mesh
}

// programs holds the paths and versions of the programs of a run.
type programs struct {
	versions *component.Versions // as the programs report them
	paths    map[string]string
	next     map[string]string // of the control plane that an upgrade leads to; nil where there is none
	envoy    component.Status  // of the real sidecars; zero where there are none
	keys     *svid.KeyPool
}

// observed holds what the steps of a run measured and the journal does not have yet.
type observed struct {
	latencies  *fleet.Latencies
	lags       *lags
	holdings   fleet.Holdings     // of the sidecars when converged
	perSidecar *record.PerSidecar // received in the rollout; nil = not known
	perNode    *record.PerSidecar // likewise by the proxies of nodes, where pods have sidecars, too; else nil
	live       *float64           // bytes of the control plane's heap after two collections at the end of steady; nil = not known
	storm      *record.CertificateStorm
}

// stopTime is reserved for stopping the programs of a run.
const stopTime = 10 * time.Second

// execute does one run, whose record goes into folder: a cluster and a control plane
// of its own are started, the mesh is rolled out and measured, the record is written,
// and everything is stopped again. The record that it returns is also in its folder;
// Dir is "" when nothing was started.
//
// The error is ErrUnconverged when a time limit passed first, and wraps
// context.Canceled when ctx ended the run.
func execute(ctx context.Context, spec Spec, folder *record.Folder, versions *component.Versions, progress Progress) (record.Run, error) {
	driver, err := spec.Driver()
	if err != nil {
		return record.Run{}, err
	}
	if spec, err = spec.settleVersions(ctx, driver, progress.say); err != nil {
		return record.Run{}, err
	}
	if e := spec.Existing; e != nil && e.anew {
		if _, err := Inspect(ctx, spec); err != nil {
			return record.Run{}, err
		}
	}
	if spec, err = spec.placed(); err != nil {
		return record.Run{}, err
	}
	outer := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	document := newRecord(spec)
	rolloutLength, expected := spec.slowed(spec.rolloutLength()), spec.stages()
	spec = spec.onMachine()
	r := &run{
		spec:     spec,
		driver:   driver,
		progress: progress,
		mesh:     spec.placedMesh(),
		fail:     fail,
		cause:    func() error { return context.Cause(ctx) },
		system:   system{programs: programs{versions: versions}},
		observed: observed{latencies: fleet.NewLatencies(), lags: newLags()},
	}
	r.rolloutLength = rolloutLength
	writer, err := folder.Create(spec.Name())
	if err != nil {
		return document, err
	}
	r.journal = journal.New(document, writer, fail)
	if err := r.prepare(ctx); err != nil {
		return r.journal.Run(), errors.Join(err, writer.Discard())
	}
	r.countdown = newCountdown(expected, time.Now())
	defer r.showProgress(ctx)()
	r.speedBefore(ctx)
	r.journal.Update(func(run *record.Run) { run.Started = time.Now().UTC() })
	err = steps.Run(ctx, []steps.Step{
		{Name: "opening the process group", Do: r.openGroup, Reserve: stopTime},
		{Name: "starting the cluster", Do: r.startCluster},
		{Name: "starting the control plane", Do: r.startControlPlane},
		{Name: "deleting the run's objects", Do: func(context.Context) (steps.Undo, error) {
			return place.Deletion{
				Env: r.env, Run: r.runLabel(), Kept: r.kept, Event: r.journal.Event, Say: r.progress.say, Stays: spec.place().Stays(r.runLabel()),
			}.Undo, nil
		}, Reserve: deletionTime(spec.place())},
		{Name: "starting KWOK in the cluster", Do: r.startKwokPod},
		{Name: "making fake nodes", Do: step(r.makeNodes)},
		{Name: "starting the workers", Do: r.startJob},
		{Name: "starting the recorder", Do: r.startRecorder, Conclude: r.measure},
		{Name: "following the speed of the machine", Do: r.followSpeed},
		{Name: "watching", Do: r.startWatching},
		{Name: "making pods outside the mesh", Do: step(r.makePodsOutside)},
		{Name: "checking the objects of the mesh", Do: step(r.checkObjects)},
		{Name: "starting the nodes' proxies", Do: step(r.startNodeProxies)},
		{Name: "starting the waypoints", Do: step(r.startWaypoints)},
		{Name: "making what injection reads", Do: step(r.makeInjection)},
		{Name: "watching waits for processors", Do: r.startWatchingWaits},
		{Name: "baseline", Do: step(r.baseline)},
		{Name: "churn outside the mesh", Do: r.startChurnOutside},
		{Name: "rollout", Do: step(r.rollOut)},
		{Name: "settle", Do: step(r.settle)},
		{Name: "keeping the configuration", Do: step(r.keepConfiguration(KeepSettled))},
		{Name: "steady", Do: step(r.steady)},
		{Name: "collecting garbage", Do: step(r.collectGarbage)},
		{Name: "probe", Do: step(r.probe)},
		{Name: "upgrade", Do: step(r.upgrade)},
		{Name: "changes", Do: step(r.change)},
		{Name: "cycle", Do: step(r.cycle)},
		{Name: "certificate storm", Do: step(r.certificateStorm)},
		{Name: "churn", Do: step(r.churn)},
		{Name: "faults", Do: step(r.faultsInSteady)},
		{Name: "keeping the configuration", Do: step(r.keepConfiguration(KeepLast))},
		{Name: "finishing", Do: step(func(context.Context) error { r.completed = true; return nil })},
	})
	if startsAgain(err) != nil {
		return record.Run{}, r.discard(cmp.Or(context.Cause(outer), err))
	}
	r.normalize()
	return r.finish(err)
}

// step returns a step without an undo.
func step(do func(context.Context) error) func(context.Context) (steps.Undo, error) {
	return func(ctx context.Context) (steps.Undo, error) { return nil, do(ctx) }
}

// discard removes the record of a run that is started again, and returns why it ended.
func (r *run) discard(err error) error {
	if discardErr := r.journal.Writer().Discard(); discardErr != nil {
		return fmt.Errorf("starting the run again: %w", discardErr)
	}
	return err
}

// prepare gets ready what a run needs and does not start: nothing of it is the
// run's own, so a failure leaves no record.
func (r *run) prepare(ctx context.Context) (err error) {
	options := r.spec.ownPrograms()
	options.Progress = r.progress.say
	if r.spec.sidecarProcesses() > 0 {
		if r.programs.envoy, err = component.Find(ctx, options, component.Envoy); err != nil {
			return err
		}
	}
	r.programs.paths, err = component.Paths(ctx, options, r.spec.programs(r.driver)...)
	if err != nil {
		return err
	}
	kwok, err := r.programs.askVersions(ctx, r.spec.sidecarProcesses())
	if err != nil {
		return err
	}
	kubernetes, err := r.spec.place().kubernetes(ctx, r.programs)
	if err != nil {
		return err
	}
	origins, err := component.ProgramOrigins(options, r.programs.paths)
	if err != nil {
		return err
	}
	if r.spec.upgrade() != nil {
		if r.programs.next, err = r.spec.findNext(ctx, r.driver.Programs.Own, r.progress.say, origins); err != nil {
			return err
		}
	}
	r.journal.Update(func(run *record.Run) {
		run.Environment.Kubernetes, run.Environment.Kwok, run.Environment.Programs = kubernetes, kwok, origins
	})
	if r.programs.keys, err = svid.NewKeyPool(); err != nil {
		return err
	}
	return r.calibrate(ctx)
}

// openGroup opens the process group of everything that the run starts. Its
// folder is the cluster's, by which the cluster commands and cleanup find it.
func (r *run) openGroup(context.Context) (_ steps.Undo, err error) {
	dir := filepath.Join(r.spec.State, "clusters", r.clusterName())
	r.group, err = process.OpenGroup(dir, process.GroupOptions{
		Keep: r.spec.Keep, Prioritize: r.spec.Instrument.Priority, LimitsMemory: r.spec.ControlPlane.Memory > 0,
	})
	if err != nil {
		return nil, err
	}
	priority := priorityRecord(r.group.Priorities())
	r.journal.Update(func(run *record.Run) { run.Environment.Priority = priority })
	return r.stopGroup, nil
}

// kept reports whether the run leaves what it made.
func (r *run) kept() bool { return r.spec.Keep && r.completed }

// stopGroup ends everything that runs, or with --keep leaves it.
func (r *run) stopGroup(ctx context.Context) error {
	if r.kept() {
		r.progress.say(fmt.Sprintf("cluster %s is kept: KUBECONFIG=%s; 'scaler cluster down %s' stops it", r.clusterName(), r.env.API().Kubeconfig, r.clusterName()))
		return errors.Join(cluster.CapLogs(r.group), r.group.MarkKept())
	}
	return r.group.Remove(ctx)
}

// startCluster starts what is missing of the cluster. One of its programs that ends from then on
// ends the run, whatever the run waits for.
func (r *run) startCluster(ctx context.Context) (_ steps.Undo, err error) {
	r.env, err = r.spec.place().startCluster(ctx, clusterStart{
		label: r.runLabel(), group: r.group, programs: r.programs.paths, controllers: r.driver.Programs.Controllers, slowdown: r.spec.dilation(),
		logs: r.journal.Writer().LogDir(), progress: r.progress,
	})
	if err != nil {
		return nil, err
	}
	b := newBackground(ctx, r.fail)
	b.run("supervising the cluster", func(ctx context.Context) error { return ended(ctx, r.env) })
	describeCluster(r.env, r.journal)
	r.api, err = place.Connect(r.env)
	return b.undo, err // the group stops the cluster
}

// runLabel returns the value of the run label on everything the run makes in its
// cluster, and part of the names of its nodes.
func (r *run) runLabel() string { return r.spec.place().Label(r.spec.shortName()) }

// clusterName distinguishes the clusters of scalers that run at the same time.
func (r *run) clusterName() string {
	return fmt.Sprintf("%s-%d", r.spec.Name(), os.Getpid())
}
