package run

import (
	"context"
	"time"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
)

// location is a kind of cluster that a run happens in: one that it starts, or an existing one.
type location interface {
	// programs returns the components that the run starts.
	programs(controlplane.Driver) []string
	// kubernetes returns the version of the cluster.
	kubernetes(ctx context.Context, p programs) (string, error)
	// Label returns the value of the run label on everything that a run makes.
	Label(name string) string
	// pool returns the nodes of the run's pods.
	pool(label string) kwok.Pool
	// mesh returns a mesh under the names that it has there.
	mesh(topology.Mesh) topology.Mesh
	// startCluster starts what is missing of the cluster.
	startCluster(context.Context, clusterStart) (place.Environment, error)
	// startControlPlane starts the control plane, or connects to it.
	startControlPlane(ctx context.Context, r *run) (*controlplane.ControlPlane, steps.Undo, error)
	// placeSidecars states where the real sidecars of a run are.
	placeSidecars(*run, *fleet.RealOptions)
	// Stays says how what a run left there is deleted; "" where the cluster ends with the run.
	Stays(label string) string
}

// place returns the cluster that a run of the specification happens in.
func (s Spec) place() location {
	if s.Existing != nil {
		return s.Existing
	}
	return embeddedPlace{}
}

// programs returns the names of the components that the run starts, those of real sidecars included.
func (s Spec) programs(d controlplane.Driver) []string {
	names := s.place().programs(d)
	if s.sidecarProcesses() > 0 {
		names = append(names, d.SidecarPrograms...)
	}
	return names
}

// clusterStart holds the options that the programs of a cluster are started with.
type clusterStart struct {
	label       string // of the run
	group       *process.Group
	programs    map[string]string // paths
	controllers []string          // that the control plane needs, in addition to those of any cluster
	slowdown    float64
	logs        string // folder
	progress    Progress
}

// embeddedPlace is a cluster, and a control plane, that the run starts for itself.
type embeddedPlace struct{}

func (embeddedPlace) programs(d controlplane.Driver) []string { return drivers.RunPrograms(d) }

func (embeddedPlace) kubernetes(ctx context.Context, p programs) (string, error) {
	server, err := p.versions.Of(ctx, component.KubeAPIServer, p.paths[component.KubeAPIServer])
	return server.Version, err
}

func (embeddedPlace) Label(name string) string { return name }

func (embeddedPlace) pool(string) kwok.Pool { return kwok.Shared }

func (embeddedPlace) mesh(mesh topology.Mesh) topology.Mesh { return mesh }

func (embeddedPlace) Stays(string) string { return "" }

func (embeddedPlace) startCluster(ctx context.Context, s clusterStart) (place.Environment, error) {
	return embedded.Start(ctx, cluster.Options{
		Group:      s.group,
		Programs:   embedded.Programs(s.programs),
		KwokConfig: kwok.SlowedStages(s.slowdown), Controllers: s.controllers,
		LogDir:   s.logs,
		Progress: s.progress.Say,
	})
}

func (embeddedPlace) startControlPlane(ctx context.Context, r *run) (*controlplane.ControlPlane, steps.Undo, error) {
	o := r.startOptions()
	o.Revision, _ = r.spec.revisions()
	o.Resources.Env = scenario.MergeEnv(r.spec.capturedEnv(r.driver), o.Resources.Env)
	o.Remote, o.RealSidecars = r.spec.remote(), r.spec.Mesh.Sidecars.Real > 0
	if r.spec.replicated() {
		o.Replicas, o.SpareReplicas = max(1, r.spec.ControlPlane.Replicas), r.spec.spareReplicas()
	}
	adapter, err := r.driver.Start(ctx, o)
	if err != nil || adapter.Replicas == nil {
		return adapter, nil, err // what it started is in the run's group
	}
	return adapter, func(context.Context) error { return adapter.Replicas.Close() }, nil
}

// deletionTime returns the limit of the deletion of a run's objects.
func deletionTime(p location) time.Duration {
	if p.Stays("") != "" {
		return place.StayingDeletionTime
	}
	return place.DeletionTime
}
