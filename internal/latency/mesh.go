package latency

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/forward"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// sidecarTimeout limits the start of a variant's sidecars, until requests get through.
const sidecarTimeout = time.Minute

// envoyWorkers is the number of worker threads of each Envoy, whatever the control plane:
// the number that Istio gives an injected one.
const envoyWorkers = 2

// workers returns the number of worker threads of a sidecar.
func workers(d controlplane.Driver) int {
	if i := d.Latency.Intercepts; i != nil && i.Workers > 0 {
		return i.Workers
	}
	return envoyWorkers
}

// clientTier is the load generator's sidecar.
const clientTier = "client"

// sidecarMesh is a cluster with a control plane, for one or more variants with sidecars.
type sidecarMesh struct {
	run   *run
	group *process.Group // of cluster and control plane
	env   place.Environment
	place controlplane.RealSidecars

	variants map[string]*meshVariant // whose sidecars are addressed directly
	pods     *podVariant             // or the one whose connections are redirected

	life    context.Context // of the sidecars
	end     context.CancelFunc
	running sync.WaitGroup
	passing []*forward.Forwarder // to what sidecars reach outside their pod

	all []*sidecar.Sidecar

	deleteObjects steps.Undo // nil: none was made
}

// meshVariant is one variant's part of the mesh.
type meshVariant struct {
	services []controlplane.HostService // of each tier
	client   controlplane.HostWorkload
	tiers    [][]controlplane.HostWorkload
}

// startMeshes starts clusters and control planes, and makes the objects of all variants.
// Variants whose sidecars are addressed directly share one cluster, with a namespace
// each. The others have a cluster each, because a mode applies to a whole mesh.
func (r *run) startMeshes(ctx context.Context) (steps.Undo, error) {
	undo := func(ctx context.Context) error {
		var errs []error
		for _, m := range r.meshes {
			errs = append(errs, m.stop(ctx))
		}
		return errors.Join(errs...)
	}
	if r.driver.Latency.Intercepts != nil {
		return undo, r.startPodMeshes(ctx)
	}
	if !r.spec.withMesh() {
		return nil, nil
	}
	m, api, err := r.startMesh(ctx, runLabel(), controlplane.StartOptions{})
	if err != nil {
		return undo, err
	}
	for _, variant := range r.spec.Latency.Variants {
		if variant == VariantNone {
			continue
		}
		if m.variants[variant], err = r.planVariant(variant, len(m.variants)); err != nil {
			return undo, err
		}
	}
	return undo, m.makeObjects(ctx, api)
}

// startMesh starts a cluster of this name and its control plane. The options are those
// that differ between meshes.
func (r *run) startMesh(ctx context.Context, name string, o controlplane.StartOptions) (*sidecarMesh, place.Clients, error) {
	m := &sidecarMesh{run: r, variants: map[string]*meshVariant{}}
	m.life, m.end = context.WithCancel(context.WithoutCancel(ctx))
	_, variant, _ := strings.Cut(name, runLabel()+"-")
	logs := filepath.Join(r.writer.LogDir(), variant)
	m.place = controlplane.RealSidecars{Group: r.group, Dir: filepath.Join(r.dir, "sidecars"), Logs: logs, Concurrency: workers(r.driver), Expiry: &controlplane.CertificateExpiry{}}
	none := place.Clients{}
	var err error
	m.place.Programs, err = component.Paths(ctx, r.spec.Programs, append(drivers.RunPrograms(r.driver), r.driver.SidecarPrograms...)...)
	if err != nil {
		return nil, none, err
	}
	if given := r.driver.GivenProxy(); given != "" {
		m.place.Proxy = given
		if m.place.Programs[given], err = filepath.Abs(r.spec.Latency.Proxy); err != nil { // each runs in its own folder
			return nil, none, err
		}
	}
	if m.group, err = process.OpenGroup(filepath.Join(r.spec.State, "clusters", name), process.GroupOptions{}); err != nil {
		return nil, none, err
	}
	r.meshes = append(r.meshes, m) // stopped with the run
	m.env, err = embedded.Start(ctx, cluster.Options{
		Group: m.group, LogDir: logs, KwokConfig: kwok.Stages(), Progress: r.progress.Log, Controllers: r.driver.Programs.Controllers,
		WithoutPodGC: true, // pods run here, on no node that the API server knows
		Programs:     embedded.Programs(m.place.Programs),
	})
	if err != nil {
		return nil, none, err
	}
	api, err := place.Connect(m.env)
	if err != nil {
		return nil, none, err
	}
	if m.place.Adapter, err = m.startControlPlane(ctx, r.driver, api.Config, logs, o); err != nil {
		return nil, none, err
	}
	m.deleteObjects = place.Deletion{Env: m.env, Run: runLabel(), Say: r.progress.Log}.Undo
	return m, api, nil
}

func (m *sidecarMesh) startControlPlane(ctx context.Context, driver controlplane.Driver, config *rest.Config, logs string, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
	versions := new(component.Versions)
	o.Programs, o.Versions, o.Scaler, o.Kubeconfig, o.REST = m.place.Programs, versions, component.ScalerVersion(), m.env.API().Kubeconfig, config
	o.Group, o.LogDir, o.Progress, o.RealSidecars = m.group, logs, m.run.progress.Log, true
	adapter, err := driver.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	d := adapter.Server.Describe()
	m.run.retries = d.Retries
	env := &m.run.record.Environment
	if env.Kubernetes, env.Kwok, err = component.ClusterVersions(ctx, versions, m.place.Programs); err != nil {
		return nil, err
	}
	if env.Programs, err = component.ProgramOrigins(m.run.spec.Programs, m.place.Programs); err != nil {
		return nil, err
	}
	if warning := controlplane.VersionWarning(d); warning != nil && len(m.run.meshes) == 1 {
		m.run.warn(*warning)
	}
	if asked := m.run.spec.ControlPlane.Version; asked != "" && len(m.run.meshes) == 1 {
		if want, err := component.IstioRelease(asked); err == nil && want != d.Version {
			m.run.warn(record.Warning{About: record.AboutVersion, Reason: record.ReasonReplacedVersion, Component: d.Version, Detail: want})
		}
	}
	env.ControlPlane = record.ControlPlaneSource{Name: d.Name, Version: d.Version, Replicas: d.Replicas, GOMAXPROCS: d.MaxProcs, Settings: d.Settings, Limits: d.Limits}
	return adapter, nil
}

// planVariant assigns addresses and ports to the workloads. Each has its own address
// among those of this host, and no port is used twice.
func (r *run) planVariant(variant string, index int) (*meshVariant, error) {
	namespace := "latency-" + variant
	workloads := 1
	for _, tier := range r.tiers {
		workloads += tier.replicas
	}
	ports, err := process.FreePorts(len(r.tiers) + 2*workloads)
	if err != nil {
		return nil, err
	}
	port := func() int { p := ports[0]; ports = ports[1:]; return p }
	number := index * workloads
	address := func() string { number++; return "127.0.1." + strconv.Itoa(number) }

	v := &meshVariant{}
	caller := clientTier
	for _, tier := range r.tiers {
		v.services = append(v.services, controlplane.HostService{
			Namespace: namespace, Name: tier.name, Host: tier.name + "." + namespace + ".host", Port: port(), HTTP2: r.spec.Latency.HTTP == 2,
			Strict: variant == VariantStrict, Callers: []string{caller},
		})
		caller = tier.name
	}
	v.client = controlplane.HostWorkload{
		Namespace: namespace, Name: variant + "-" + clientTier, Account: clientTier, Address: address(), Egress: v.services[:1],
	}
	for i, tier := range r.tiers {
		var replicas []controlplane.HostWorkload
		for n := range tier.replicas {
			w := controlplane.HostWorkload{
				Namespace: namespace, Name: fmt.Sprintf("%s-%s-%d", variant, tier.name, n), Account: tier.name, Address: address(),
				Serves: tier.name, ListenPort: port(), AppPort: port(),
			}
			if i+1 < len(r.tiers) {
				w.Egress = v.services[i+1 : i+2]
			}
			replicas = append(replicas, w)
		}
		v.tiers = append(v.tiers, replicas)
	}
	return v, nil
}

// workloads returns all workloads of a variant, the client's first.
func (v *meshVariant) workloads() []controlplane.HostWorkload {
	all := []controlplane.HostWorkload{v.client}
	for _, tier := range v.tiers {
		all = append(all, tier...)
	}
	return all
}

func (m *sidecarMesh) makeObjects(ctx context.Context, api place.Clients) error {
	var namespaces []string
	var objects []*unstructured.Unstructured
	for _, v := range m.variants {
		namespaces = append(namespaces, v.client.Namespace)
		objects = append(objects, m.place.Adapter.Real.Host.HostObjects(v.services, v.workloads())...)
	}
	applier := &workload.Applier{
		Client: api.Client, Dynamic: api.Dynamic, Run: runLabel(),
		Mesh: topology.Mesh{Namespaces: namespaces}, Objects: objects,
		NamespaceLabels: func(string) map[string]string { return m.place.Adapter.Sidecars.NamespaceLabels },
	}
	return applier.Surroundings(ctx)
}

// runLabel returns the value of the run label on everything that is made in the cluster.
func runLabel() string { return "latency-" + strconv.Itoa(os.Getpid()) }

// stop ends the sidecars, deletes the objects made in the cluster, and stops the control
// plane and the cluster.
func (m *sidecarMesh) stop(ctx context.Context) error {
	m.end()
	m.running.Wait()
	var err error
	for _, f := range m.passing {
		err = errors.Join(err, f.Close())
	}
	if m.deleteObjects != nil {
		err = errors.Join(err, m.deleteObjects(ctx))
	}
	return errors.Join(err, m.group.Remove(ctx))
}

// start starts a variant's applications and sidecars, and returns when requests get
// through as expected.
func (m *sidecarMesh) start(ctx context.Context, variant string) (*testbed, error) {
	v := m.variants[variant]
	bed := &testbed{target: egress(v.client, v.services[0])}
	for i := len(v.tiers) - 1; i >= 0; i-- {
		for _, w := range v.tiers[i] {
			var next dataplane.Target
			if i+1 < len(v.services) {
				next = egress(w, v.services[i+1])
			}
			server, err := m.run.startServer(ctx, w.Name, here(w.AppPort), m.run.tiers[i].wait, next)
			if err != nil {
				return nil, err
			}
			bed.servers = append(bed.servers, server)
		}
	}
	m.run.logf("starting %d sidecars of variant %s", len(v.workloads()), variant)
	limited, cancel := context.WithTimeout(ctx, sidecarTimeout)
	defer cancel()
	starting, together := errgroup.WithContext(limited)
	for i, tier := range append([][]controlplane.HostWorkload{{v.client}}, v.tiers...) {
		of := m.tier(i, len(tier))
		for _, w := range tier {
			s, err := m.place.ForHost(ctx, w, m.watch)
			if err != nil {
				return nil, err
			}
			of.names = append(of.names, m.launch(s, starting, together)...)
		}
		bed.sidecars = append(bed.sidecars, of)
	}
	if err := starting.Wait(); err != nil {
		return nil, err
	}
	return bed, m.verify(limited, ctx, v.way(variant))
}

// tier returns the tier with this number; the client's is 0.
func (m *sidecarMesh) tier(number, count int) tierSidecars {
	if number == 0 {
		return tierSidecars{tier: clientTier, count: count}
	}
	return tierSidecars{tier: m.run.tiers[number-1].name, count: count}
}

// launch runs a sidecar as long as the mesh lasts. starting also waits until the sidecar
// is ready. It returns the names under which its processes are sampled.
func (m *sidecarMesh) launch(s *sidecar.Sidecar, starting *errgroup.Group, together context.Context) []string {
	m.all = append(m.all, s)
	m.running.Go(func() { _ = s.Run(m.life) }) // AwaitReady states why it failed
	starting.Go(func() error {
		if err := s.AwaitReady(together); err != nil {
			return err
		}
		return m.sample(s.Name(), s.Life())
	})
	return m.sampled(s.Name())
}

// egress returns the address at which a workload calls a service: its own sidecar.
func egress(w controlplane.HostWorkload, s controlplane.HostService) dataplane.Target {
	port := strconv.Itoa(s.Port)
	return dataplane.Target{Addresses: []string{net.JoinHostPort(w.Address, port)}, Host: net.JoinHostPort(s.Host, port)}
}

// sampled returns the names of a sidecar's processes.
func (m *sidecarMesh) sampled(name string) []string {
	if m.place.Programs[component.PilotAgent] != "" {
		return []string{name, name + "-envoy"}
	}
	return []string{name}
}

// watch samples a sidecar's processes in each of its lives.
func (m *sidecarMesh) watch(o *sidecar.Options) {
	o.Started = func(l sidecar.Life) {
		// A process cannot be read while it is being replaced by Envoy; sampling is tried
		// again when the sidecar is ready. A process that has ended is reported next.
		_ = m.sample(o.Name, l)
	}
	o.Crashed = func(c sidecar.Crash) { m.run.sampler.Ended(o.Name, measure.OfProcess(c.Process)) }
}

// sample samples the processes of one life. Those that are sampled already stay so.
func (m *sidecarMesh) sample(name string, l sidecar.Life) error {
	err := m.run.sampler.Watch(name, measure.OfProcess(l.Process))
	if l.Envoy != l.Process {
		err = errors.Join(err, m.run.sampler.Watch(name+"-envoy", measure.OfProcess(l.Envoy)))
	}
	return err
}

// addWarnings warns of sidecars that crashed or whose certificates expired.
func (m *sidecarMesh) addWarnings() {
	if expired := m.place.Expiry.Warning("rows", time.Now()); expired != nil {
		m.run.warn(*expired)
	}
	for _, s := range m.all {
		if all := s.Crashes(); len(all) > 0 {
			m.run.warn(record.Warning{
				About: "rows", Reason: record.ReasonSidecarCrashed, Component: s.Name(), Detail: output.FirstLine(all[0].Err),
				Values: map[string]float64{"times": float64(len(all))},
			})
		}
	}
}

// refusals returns the configuration that Envoys refused, in their words.
func (m *sidecarMesh) refusals(ctx context.Context) error {
	var refused []error
	for _, s := range m.all {
		held, err := s.Configuration(ctx)
		if err != nil {
			continue // it does not run, which is reported elsewhere
		}
		for _, r := range held.Refused {
			refused = append(refused, fmt.Errorf("%s refused %s", s.Name(), r))
		}
	}
	return errors.Join(refused...)
}
