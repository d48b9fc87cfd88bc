package run

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure/containers"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/place/guard"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workerjob"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// Existing is a cluster, with its control plane, that a run uses and leaves as it was.
type Existing struct {
	attach.Place
	AbortIf guard.Conditions // end a run
	// RefuseIf are conditions with which a run does not start.
	RefuseIf guard.Conditions
	// WorkerImage is a container image of this scaler, with which the simulated sidecars run in the
	// cluster; "" = they run here.
	WorkerImage string
	// KwokImage is a container image of KWOK's controller, with which it runs in the cluster; "" = it runs here.
	KwokImage string

	found    *Found // what Inspect found
	anew     bool   // the cluster is inspected when the run begins: others were made there meanwhile
	env      *existing.Environment
	requests *guard.Requests
}

// Found describes an existing cluster, and the objects that a run would make there.
type Found struct {
	*attach.Found
	Mesh topology.Mesh
	// Lacks are the parts of a captured mesh that the run would not make.
	Lacks []capture.Difference
}

// Inspect looks at the existing cluster of a specification and fails when a run must not
// start there. It creates nothing. The run of the specification uses what it found.
func Inspect(ctx context.Context, s Spec) (*Found, error) {
	driver, err := s.Driver()
	if err != nil {
		return nil, err
	}
	if s, err = s.placed(); err != nil {
		return nil, err
	}
	e := s.Existing
	e.Target.Inside, e.Target.InsideKwok, e.Target.Replays = e.WorkerImage != "", e.KwokImage != "", s.Captured != nil
	there, err := e.Inspect(ctx, driver, e.Label(s.shortName()), s.Knobs())
	if err != nil {
		return nil, err
	}
	f := &Found{Found: there, Mesh: s.placedMesh()}
	if s.Captured != nil {
		f.Lacks = s.Captured.lacks
	}
	if err := f.describeObjects(ctx, s, driver); err != nil {
		return nil, err
	}
	e.found = f
	return f, nil
}

// ofSeveral returns the place of the n-th of several runs, which are made one after the other.
func (e *Existing) ofSeveral(n int) *Existing {
	one := *e
	one.ID, one.anew = fmt.Sprintf("%s-%d", e.ID, n), true
	return &one
}

// describeObjects makes a list of what the run creates.
func (f *Found) describeObjects(ctx context.Context, s Spec, driver controlplane.Driver) error {
	adapter, err := f.Adapter(ctx, driver, s.Mesh.Sidecars.Version)
	if err != nil {
		return err
	}
	if s.Existing.KwokImage != "" {
		f.Objects = append(f.Objects, s.Existing.kwokPod(f.Run, f.Neighbours.Addresses).Objects()...)
	}
	pool := s.place().pool(f.Run)
	for n, zone := range s.nodeLabels() {
		node := pool.Node(n, f.Run)
		maps.Copy(node.Labels, zone)
		f.Objects = append(f.Objects, node)
	}
	workers, err := s.Existing.workerObjects(s, f.Run, f.Mesh)
	if err != nil {
		return err
	}
	if s.Existing.WorkerImage != "" {
		f.Objects = append(f.Objects, s.Existing.workers(s, f.Run).Objects()...)
	}
	applier := &workload.Applier{
		Run: f.Run, Mesh: f.Mesh, Nodes: pool, PodLabels: adapter.Sidecars.PodLabels,
		NamespaceLabels: func(namespace string) map[string]string { return adapter.NamespaceLabels(f.Mesh, namespace) },
		RealImage:       s.Mesh.Sidecars.Image,
	}
	objects := adapter.Mesh.Objects(f.Mesh, s.Knobs())
	if s.Captured != nil {
		injection, err := adapter.Captured.Templates(ctx)
		if err != nil {
			return err
		}
		templates, _ := s.Captured.templates(injection)
		s.Captured.replay(applier, templates, adapter.Sidecars.NamespaceLabels)
		objects = s.Captured.Mesh.Objects
	}
	applier.Objects = append(workers, objects...)
	f.Objects = append(f.Objects, applier.Manifests()...)
	if s.Captured == nil { // the control plane's own kinds are there
		return nil
	}
	lacks, err := f.Cluster.Lacks(f.Objects)
	if err == nil && lacks != nil {
		err = scenario.Refuse("mesh.file", s.Captured.File, "one with kinds that the cluster has: it lacks %s", output.FirstOf(lacks, namedKinds))
	}
	return err
}

// namedKinds is the most kinds that an error names.
const namedKinds = 10

// kwokPod specifies KWOK as a pod of the cluster.
func (e *Existing) kwokPod(run string, addresses netip.Prefix) existing.KwokPod {
	return existing.KwokPod{Run: run, Namespace: "scaler-kwok-" + e.ID, Image: e.KwokImage, Addresses: addresses}
}

// workers specifies the workers of a run that are pods of the cluster.
func (e *Existing) workers(s Spec, run string) workerjob.Spec {
	return workerjob.Spec{Run: run, Namespace: "scaler-" + e.ID, Image: e.WorkerImage, Workers: s.Instrument.Workers, Sidecars: s.Pods()}
}

// workerObjects returns the objects that workers in the cluster need in the mesh's namespaces; nil if there
// are no such workers.
func (e *Existing) workerObjects(s Spec, run string, mesh topology.Mesh) ([]*unstructured.Unstructured, error) {
	if e == nil || e.WorkerImage == "" {
		return nil, nil
	}
	return e.workers(s, run).Rights(mesh.Namespaces)
}

// checkExisting checks what goes with an existing cluster.
func (s Spec) checkExisting(d controlplane.Driver) error {
	if s.Existing == nil && s.Mesh.Sidecars.Image != "" {
		return scenario.Refuse("mesh.sidecars.image", s.Mesh.Sidecars.Image, "it with place.context")
	}
	if s.Existing == nil {
		return nil
	}
	if d.Installed == nil {
		return scenario.Refuse("controlPlane.name", s.ControlPlane.Name, "one that can be found in a cluster, with place.context")
	}
	for _, refused := range []struct {
		given bool
		path  string
		why   string
	}{
		{s.ControlPlane.Replicas > 1, "controlPlane.replicas", "whose control plane has its own"},
		{s.ControlPlane.Processors > 0, "controlPlane.processors", "whose control plane is not changed"},
		{s.ControlPlane.Memory > 0, "controlPlane.memory", "whose control plane is not changed"},
		{len(s.ControlPlane.Env) > 0, "controlPlane.env", "whose control plane is not changed"},
		{len(s.ControlPlane.Set) > 0, "controlPlane.set", "whose control plane is not changed"},
		{s.Profile() != scenario.Parts{}, "mesh.profile", "where it is not supported yet"},
		{s.Captured != nil && s.Mesh.Sidecars.Real > 0, "mesh.sidecars.real", "if the mesh is captured"},
		{s.Instrument.Workers > 1 && s.Existing.WorkerImage == "", "instrument.workers", "without place.workerImage, from which they run in the cluster"},
		{s.Phases.Cycle > 0, "phases.cycle", "where it is not supported yet"},
		{s.Load.CertificateStorm, "load.certificateStorm", "where it is not supported yet"},
	} {
		if refused.given {
			return s.Scenario.Refuse(refused.path, "none with place.context, "+refused.why)
		}
	}
	if err := s.checkOwnObjects(); err != nil {
		return err
	}
	if s.Keep {
		return scenario.Refuse("keep", true, "none with place.context, where a run deletes what it made")
	}
	if err := s.checkReal(d); err != nil {
		return err
	}
	switch {
	case !s.WithSidecars():
		return scenario.Refuse("mesh.dataplane", s.Dataplane(), "%s with place.context, where others are not supported yet", controlplane.Sidecars)
	case s.upgrade() != nil:
		return scenario.Refuse("place.context", nil, "none in an upgrade")
	case s.Existing.Target.Metrics != "" && s.Existing.Target.Address == "":
		return scenario.Refuse("place.metrics", s.Existing.Target.Metrics, "it with place.address; without, the metrics of each pod are read")
	}
	return nil
}

// checkOwnObjects checks that faults and changes are of nothing but what the run made.
func (s Spec) checkOwnObjects() error {
	for _, fault := range s.Load.Faults {
		if !ownObjects(fault.Described()) {
			return scenario.Refuse("load.faults", fault, "%s with place.context, where nothing is broken but what the run made", ownFaults())
		}
	}
	switch c := s.Load.Changes; {
	case c.PerSecond == 0:
	case c.Kind == scenario.MeshWideChange:
		return scenario.Refuse("load.changes", c, "another kind with place.context, where nothing is changed but what the run made")
	case c.Kind == scenario.EndpointChange:
		return scenario.Refuse("load.changes", c, "another kind with place.context, as in %v:%s: the rights of a run do not include writing EndpointSlices", c.PerSecond, scenario.RouteChange)
	}
	return nil
}

// ownObjects reports whether a fault concerns only sidecars and workloads of the run, while it goes on watching the cluster.
func ownObjects(k scenario.FaultKind) bool {
	return k.On == scenario.OnSidecars || k.On == scenario.OnWorkloads
}

// ownFaults lists the faults of own objects.
func ownFaults() string {
	var names []string
	for _, k := range scenario.FaultKinds {
		if ownObjects(k) {
			names = append(names, string(k.Name))
		}
	}
	return strings.Join(names, " or ")
}

func (e *Existing) programs(controlplane.Driver) []string {
	if e.KwokImage != "" {
		return []string{component.Prometheus}
	}
	return []string{component.Kwok, component.Prometheus}
}

func (e *Existing) kubernetes(context.Context, programs) (string, error) {
	if e.found == nil {
		return "", attach.ErrNotInspected
	}
	return e.found.Kubernetes, nil
}

func (*Existing) pool(label string) kwok.Pool { return kwok.PoolOf(label) }

// mesh gives the namespaces names that no other run's have.
func (e *Existing) mesh(mesh topology.Mesh) topology.Mesh {
	rename := func(namespace string) string {
		return "mesh-" + e.ID + strings.TrimPrefix(namespace, "mesh")
	}
	mesh.Namespaces, mesh.Services = slices.Clone(mesh.Namespaces), slices.Clone(mesh.Services)
	for i := range mesh.Namespaces {
		mesh.Namespaces[i] = rename(mesh.Namespaces[i])
	}
	for i := range mesh.Services {
		mesh.Services[i].Namespace = rename(mesh.Services[i].Namespace)
	}
	return mesh
}

func (e *Existing) startCluster(ctx context.Context, s clusterStart) (place.Environment, error) {
	if e.found == nil {
		return nil, attach.ErrNotInspected
	}
	if e.KwokImage == "" {
		s.progress.say("starting KWOK for the nodes of run " + s.label)
	}
	e.requests = guard.NewRequests()
	var err error
	e.env, err = existing.Start(ctx, existing.Options{
		Wrap:    e.requests.Wrap,
		Cluster: e.found.Cluster, Run: s.label, Addresses: e.found.Neighbours.Addresses,
		Kwok: s.programs[component.Kwok], Group: s.group, LogDir: s.logs,
	})
	return e.env, err
}

// startKwokPod has KWOK run in the cluster, if it is to. Taking it back ends the connection to it; the objects are the run's.
func (r *run) startKwokPod(ctx context.Context) (steps.Undo, error) {
	e := r.spec.Existing
	if e == nil || e.KwokImage == "" {
		return nil, nil
	}
	r.progress.say("starting KWOK in the cluster for the nodes of run " + r.runLabel())
	disconnect, err := e.env.StartKwok(ctx, e.kwokPod(r.runLabel(), e.found.Neighbours.Addresses))
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { disconnect(); return nil }, nil
}

func (e *Existing) startControlPlane(ctx context.Context, r *run) (*controlplane.ControlPlane, steps.Undo, error) {
	found := e.found
	how := record.ExistingCluster{
		Context: found.Cluster.Context, Server: found.Cluster.Server, Run: r.runLabel(), Access: record.AccessAddress, Address: e.Target.Address,
		PodAddresses: found.Neighbours.Addresses.String(), Pods: found.Installation.Pods, DaemonSets: found.Neighbours.DaemonSets,
		AbortIf: e.AbortIf.String(), RefuseIf: e.RefuseIf.String(), WorkerImage: e.WorkerImage, KwokImage: e.KwokImage,
	}
	switch {
	case e.Target.Address != "":
	case e.WorkerImage != "":
		how.Access, how.Address = record.AccessService, found.Installation.ServiceAddress
	default:
		how.Access = record.AccessPortForward
		r.progress.say("forwarding ports of the control plane's pods through the API server")
	}
	c, err := attach.Connect(ctx, e.Target, found.Found, r.fail)
	if err != nil {
		return nil, nil, err
	}
	if err := e.RefuseIf.Refuse(ctx, attach.Load(r.api.Client, c.Instances)); err != nil {
		c.Close()
		return nil, nil, err
	}
	undo := func(context.Context) error { c.Close(); return nil }
	if c.Instances != nil {
		how.Usage = record.UsageOfOwnMetrics
	} else {
		r.journal.Warn(record.Warning{
			About: "controlPlane", Reason: record.ReasonNotSupported, Component: r.driver.Name,
			Detail: "the cluster has no pods of it, and place.metrics does not say where its own metrics are",
		})
	}
	r.journal.Update(func(run *record.Run) { run.Environment.Existing = &how })
	if err = r.journal.Save(); err == nil && r.spec.Mesh.Sidecars.Real > 0 { // by the label in it, what a killed run left is found
		r.containers, err = containers.NewSidecars(ctx, found.Cluster, *r.driver.Installed.Sidecar, r.journal.Warn)
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	adapter, err := r.driver.Installed.Attach(ctx, controlplane.AttachOptions{
		REST: r.api.Config, Installation: found.Installation, Address: c.Address, Instances: c.Instances, ProxyVersion: r.spec.Mesh.Sidecars.Version,
	})
	return adapter, undo, err
}

// guard ends the run when one of its conditions holds. cores is what the control plane uses now, if
// that is known.
func (e *Existing) guard(client kubernetes.Interface, cores func() (float64, bool)) *guard.Guard {
	return &guard.Guard{
		Conditions: e.AbortIf, Requests: e.requests,
		Pending: func(ctx context.Context) (int, error) { return existing.PendingPods(ctx, client) },
		Cores:   cores,
	}
}
