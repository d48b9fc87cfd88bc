package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/cluster"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
	"scaler.mesh/scaler/pkg/stats"
	"scaler.mesh/scaler/pkg/topology"
	"scaler.mesh/scaler/pkg/workload"
)

// rolloutRun is one run of `scaler rollout`, from an empty machine to its
// record.
type rolloutRun struct {
	// fixed at the start
	spec     RolloutSpec
	driver   controlplane.Driver
	versions *component.Versions
	progress Progress
	mesh     topology.Mesh
	fail     context.CancelCauseFunc // ends the run with a reason
	writer   *record.Writer

	// made by the steps, in this order
	programs map[string]string
	envoy    component.Status // of the real sidecars; zero where there are none
	keys     *experiment.KeyPool
	group    *process.Group // of everything that the run starts
	cluster  *cluster.Cluster
	experiment.APIServer
	given    []int // processors of the control plane alone; nil = there are none
	others   []int // those that everything else keeps to; nil = all
	placing  controlplane.Placing
	adapter  *controlplane.ControlPlane
	sampler  *recorder.Sampler
	metrics  *recorder.Metrics
	recorder *recorder.Recorder
	fleet    *fleet
	applier  *workload.Applier
	jobs     []string // that the recorder scrapes

	latencies *latencies
	lag       *stats.Histogram // how late scaler itself ran while rolling out
	probeLag  *stats.Histogram // and while changes were followed
	holdings  holdings         // of the sidecars when converged
	live      *float64         // bytes of the control plane's heap after two collections at the end of steady; nil = not known

	completed bool          // all phases were done
	restarted atomic.Bool   // the control plane was
	asked     atomic.Bool   // its next end is a fault's doing
	again     chan struct{} // a notice that it serves again after one
	stepLate  time.Duration // the greatest lateness of a burst; the rollout's

	mu      sync.Mutex
	record  record.Run
	windows []window // the phases that ended
	faults  []*faultRun
	storm   *record.CertificateStorm
	phase   record.PhaseName // the one that lasts
	since   time.Time        // when it began
	length  time.Duration    // of a phase of fixed length
}

// rollOut does one run: a cluster and a control plane of its own are started,
// the mesh is rolled out and measured, the record is written into a folder of its
// own, and everything is stopped again. Dir of the record is "" when nothing was
// started.
//
// The error is ErrUnconverged when a time limit passed first, and wraps
// context.Canceled when ctx ended the run.
func rollOut(ctx context.Context, spec RolloutSpec, folder *record.Folder, versions *component.Versions, progress Progress) (record.Run, error) {
	driver, err := spec.Driver()
	if err != nil {
		return record.Run{}, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r := &rolloutRun{
		spec:      spec,
		driver:    driver,
		versions:  versions,
		progress:  progress,
		mesh:      topology.Build(spec.Topology),
		fail:      fail,
		again:     make(chan struct{}, 1),
		latencies: newLatencies(),
		lag:       stats.NewHistogram(),
		probeLag:  stats.NewHistogram(),
	}
	r.record = r.newRecord()
	if r.writer, err = folder.Create(spec.Name()); err != nil {
		return r.record, err
	}
	if err := r.prepare(ctx); err != nil {
		return r.record, errors.Join(err, r.writer.Discard())
	}
	r.record.Started = time.Now().UTC()
	err = experiment.RunSteps(ctx, []experiment.Step{
		{Name: "keeping aside", Do: r.keepAside},
		{Name: "opening the process group", Do: r.openGroup},
		{Name: "starting the cluster", Do: r.startCluster},
		{Name: "starting the control plane", Do: r.startControlPlane},
		{Name: "making fake nodes", Do: r.makeNodes},
		{Name: "starting the recorder", Do: r.startRecorder},
		{Name: "watching", Do: r.startWatching},
		{Name: "baseline", Do: r.baseline},
		{Name: "rollout", Do: r.rollout},
		{Name: "settle", Do: r.settle},
		{Name: "steady", Do: r.steady},
		{Name: "collecting garbage", Do: r.collectGarbage},
		{Name: "probe", Do: r.probe},
		{Name: "certificate storm", Do: r.certificateStorm},
		{Name: "churn", Do: r.churn},
		{Name: "faults", Do: r.faultsInSteady},
		{Name: "finishing", Do: r.complete},
	})
	return r.finish(ctx, err)
}

// prepare gets ready what a run needs and does not start: nothing of it is the
// run's own, so a failure leaves no record.
func (r *rolloutRun) prepare(ctx context.Context) (err error) {
	programs := r.spec.Programs
	programs.Progress = r.progress.say
	names := experiment.RunPrograms(r.driver)
	if r.spec.RealSidecars > 0 {
		names = append(names, r.driver.SidecarPrograms...)
		if r.envoy, err = component.Find(ctx, programs, component.Envoy); err != nil {
			return err
		}
	}
	r.programs, err = component.Paths(ctx, programs, names...)
	if err != nil {
		return err
	}
	if err := askVersions(ctx, r); err != nil {
		return err
	}
	if r.keys, err = experiment.NewKeyPool(); err != nil {
		return err
	}
	return r.calibrate(ctx)
}

// openGroup opens the process group of everything that the run starts. Its
// folder is the cluster's, by which the cluster commands and cleanup find it.
func (r *rolloutRun) openGroup(context.Context) (_ experiment.Undo, err error) {
	dir := filepath.Join(r.spec.State, "clusters", r.clusterName())
	if r.group, err = process.OpenGroup(dir, process.GroupOptions{Keep: r.spec.Keep}); err != nil {
		return nil, err
	}
	return r.stopGroup, nil
}

// stopGroup ends everything that runs, or with --keep leaves it.
func (r *rolloutRun) stopGroup(ctx context.Context) error {
	if r.spec.Keep && r.completed {
		r.progress.say(fmt.Sprintf("cluster %s is kept: KUBECONFIG=%s; 'scaler cluster down %s' stops it", r.clusterName(), r.cluster.Kubeconfig(), r.clusterName()))
		return r.group.MarkKept()
	}
	return r.group.Remove(ctx)
}

func (r *rolloutRun) startCluster(ctx context.Context) (_ experiment.Undo, err error) {
	r.cluster, err = cluster.Up(ctx, cluster.Options{
		Group:      r.group,
		Programs:   experiment.ClusterPrograms(r.programs),
		KwokConfig: kwok.Stages(),
		LogDir:     r.writer.LogDir(),
		Progress:   r.progress.Say,
	})
	if err != nil {
		return nil, err
	}
	r.APIServer, err = experiment.Connect(r.cluster)
	return nil, err // the group stops the cluster
}

func (r *rolloutRun) startControlPlane(ctx context.Context) (func(context.Context) error, error) {
	r.placing = r.place()
	adapter, err := r.driver.Start(ctx, controlplane.StartOptions{
		Programs:     r.programs,
		Versions:     r.versions,
		Scaler:       experiment.Version(),
		Kubeconfig:   r.cluster.Kubeconfig(),
		REST:         r.Config,
		Group:        r.group,
		LogDir:       r.writer.LogDir(),
		Progress:     r.progress.Say,
		Placing:      r.placing,
		RealSidecars: r.spec.RealSidecars > 0,
	})
	if err != nil {
		return nil, err // what it started is in the run's group
	}
	r.adapter = adapter
	r.describeControlPlane()
	return nil, nil
}

// runLabel is the value of the run label on everything the run makes in its
// cluster, and part of the names of its nodes.
func (r *rolloutRun) runLabel() string { return r.spec.Name() }

// clusterName tells the clusters of scalers that run side by side apart.
func (r *rolloutRun) clusterName() string {
	return fmt.Sprintf("%s-%d", r.spec.Name(), os.Getpid())
}
