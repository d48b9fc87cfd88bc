package latency

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/forward"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/podnet"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
)

// Ports of the variants whose connections are redirected: every pod has its own network.
const (
	servicePort = 80
	appPort     = 8080
)

// podNode is the node name of the pods. The node does not exist: this package does the
// kubelet's part.
const podNode = "scaler-latency"

// podVariant is one variant whose client and servers are pods with a network each.
type podVariant struct {
	variant string
	knobs   scenario.Settings
	mesh    topology.Mesh // the client's service is the first; each calls the next
	tiers   [][]*podPlace // the client's first
	// addresses are the addresses of the services, by index; the client's has none.
	addresses []string
	past      *podnet.Pod // outside all pods of the mesh: its connections are redirected only at servers
}

// podPlace is one pod.
type podPlace struct {
	name    string
	service topology.Service
	net     *podnet.Pod
	pod     *corev1.Pod // as injected; nil before, and without sidecars
}

// planPods makes the pods' networks.
func planPods(net *podnet.Net, tiers []tierSpec, variant string, knobs scenario.Settings) (*podVariant, error) {
	v := &podVariant{variant: variant, knobs: knobs, mesh: podMesh(variant, tiers)}
	for _, s := range v.mesh.Services {
		var tier []*podPlace
		for n := range s.Pods {
			own, err := net.Add()
			if err != nil {
				return nil, err
			}
			tier = append(tier, &podPlace{name: fmt.Sprintf("%s-%s-%d", variant, s.Name, n), service: s, net: own})
		}
		v.tiers = append(v.tiers, tier)
	}
	var err error
	v.past, err = net.Add()
	return v, err
}

// podMesh returns the mesh of one variant: the client's service, and one for each tier.
func podMesh(variant string, tiers []tierSpec) topology.Mesh {
	namespace := "latency-" + variant
	mesh := topology.Mesh{
		Namespaces: []string{namespace},
		Services:   []topology.Service{{Name: clientTier, Namespace: namespace, Account: clientTier, Pods: 1, Headless: true}},
	}
	for i, tier := range tiers {
		mesh.Services[i].Calls = []int{i + 1}
		mesh.Services = append(mesh.Services, topology.Service{
			Name: tier.name, Namespace: namespace, Account: tier.name, Pods: tier.replicas,
			Ports: []topology.Port{{Name: "http", Number: servicePort, Target: appPort}},
		})
	}
	return mesh
}

// startPodMeshes starts a mesh for each variant with sidecars, and makes its objects.
func (r *run) startPodMeshes(ctx context.Context) error {
	for _, variant := range r.spec.Latency.Variants {
		if variant == VariantNone {
			continue
		}
		mode, ok := r.driver.Mode(variant)
		if !ok {
			return fmt.Errorf("starting variant %s: %s has no such mode", variant, r.driver.Name)
		}
		v, err := planPods(r.net, r.tiers, variant, mode.Knobs)
		if err != nil {
			return err
		}
		m, api, err := r.startMesh(ctx, runLabel()+"-"+variant, controlplane.StartOptions{Knobs: mode.Knobs, Mesh: v.mesh})
		if err != nil {
			return fmt.Errorf("variant %s: %w", variant, err)
		}
		m.pods = v
		if err := m.makePods(ctx, api); err != nil {
			return fmt.Errorf("variant %s: %w", variant, err)
		}
	}
	return nil
}

// makePods makes the objects of the variant. The pods run here, with the addresses of their networks.
func (m *sidecarMesh) makePods(ctx context.Context, api place.Clients) error {
	v, adapter := m.pods, m.place.Adapter
	applier := &workload.Applier{
		Client: api.Client, Dynamic: api.Dynamic, Run: runLabel(), Mesh: v.mesh, Objects: adapter.Mesh.Objects(v.mesh, v.knobs),
		NamespaceLabels: func(namespace string) map[string]string { return adapter.NamespaceLabels(v.mesh, namespace) },
	}
	if err := applier.Surroundings(ctx); err != nil {
		return err
	}
	for _, s := range v.mesh.Services {
		made, err := api.Client.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the address of service %s: %w", s.Name, err)
		}
		v.addresses = append(v.addresses, made.Spec.ClusterIP)
	}
	for _, p := range slices.Concat(v.tiers...) {
		if err := p.create(ctx, api, adapter, v.mesh); err != nil {
			return err
		}
	}
	return nil
}

// create creates the pod as a kubelet would run it: ready, with its address.
func (p *podPlace) create(ctx context.Context, api place.Clients, adapter *controlplane.ControlPlane, mesh topology.Mesh) error {
	labels := map[string]string{"app": p.service.Name, kwok.RunLabel: runLabel(), kwok.ServiceLabel: p.service.Name}
	maps.Copy(labels, adapter.Sidecars.PodLabels)
	app := corev1.Container{Name: "app", Image: "scaler.mesh/echo"}
	for _, port := range p.service.Ports {
		app.Ports = append(app.Ports, corev1.ContainerPort{Name: port.Name, ContainerPort: int32(port.Target)})
	}
	pods := api.Client.CoreV1().Pods(p.service.Namespace)
	made, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: p.service.Namespace, Labels: labels, Annotations: adapter.PodAnnotations(mesh, p.service.Namespace)},
		Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: new(int64), NodeName: podNode, ServiceAccountName: p.service.Account, Containers: []corev1.Container{app}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating pod %s: %w", p.name, err)
	}
	ip := p.net.Address.String()
	made.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, HostIP: ip, StartTime: new(metav1.Now()),
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		},
	}
	if p.pod, err = pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the status of pod %s: %w", p.name, err)
	}
	return nil
}

// target returns the address to which the callers of the service with this index send
// their requests.
func (v *podVariant) target(service int) dataplane.Target {
	s, port := v.mesh.Services[service], strconv.Itoa(servicePort)
	return dataplane.Target{
		Addresses: []string{net.JoinHostPort(v.addresses[service], port)},
		Host:      net.JoinHostPort(s.Name+"."+s.Namespace+".svc.cluster.local", port),
	}
}

// at returns the address at which the application of a pod is reached directly, if
// nothing redirects.
func (p *podPlace) at() string {
	return net.JoinHostPort(p.net.Address.String(), strconv.Itoa(appPort))
}

// startPods starts a variant's applications and sidecars, and returns when requests get
// through as expected.
func (m *sidecarMesh) startPods(ctx context.Context, v *podVariant) (*testbed, error) {
	client := v.tiers[0][0]
	bed := &testbed{target: v.target(1), dial: client.net.DialContext}
	for i := len(v.tiers) - 1; i > 0; i-- {
		var next dataplane.Target
		if i+1 < len(v.tiers) {
			next = v.target(i + 1)
		}
		if err := bed.startApplications(ctx, m.run, v.tiers[i], m.run.tiers[i-1].wait, next); err != nil {
			return nil, err
		}
	}
	m.run.logf("starting %d sidecars of variant %s", v.mesh.Sidecars(), v.variant)
	limited, cancel := context.WithTimeout(ctx, sidecarTimeout)
	defer cancel()
	starting, together := errgroup.WithContext(limited)
	w := way{variant: v.variant, to: bed.target, dial: bed.dial, past: v.past.DialContext, header: m.run.driver.Latency.Intercepts.CallerHeader}
	for i, tier := range v.tiers {
		of := m.tier(i, len(tier))
		caller := i == len(v.tiers)-2 // of the last tier, which answers whom it saw
		for _, p := range tier {
			var otherIdentity func(topology.Service) *tls.Config
			s, err := m.place.InPod(ctx, p.pod, p.net, m.run.driver.Latency.Intercepts.User, func(o *sidecar.Options, real controlplane.RealProxy) error {
				m.watch(o)
				otherIdentity = real.Interception.OtherIdentity
				if caller {
					w.identity = real.Sidecar.Identity
				}
				return m.intercept(ctx, p, real.Interception)
			})
			if err != nil {
				return nil, err
			}
			of.names = append(of.names, m.launch(s, starting, together)...)
			if i == 0 {
				continue
			}
			server := checkedServer{
				name: p.name, to: dataplane.Target{Addresses: []string{p.at()}, Host: v.target(i).Host},
				strict: v.knobs.MTLS == "strict", closed: v.knobs.Authz == "declared",
			}
			if otherIdentity != nil {
				server.otherIdentity = otherIdentity(p.service)
			}
			w.servers = append(w.servers, server)
		}
		bed.sidecars = append(bed.sidecars, of)
	}
	if w.header != "" && w.identity == "" {
		return nil, errors.New("the identity of the caller is not known, which the last tier is to see")
	}
	if err := starting.Wait(); err != nil {
		return nil, err
	}
	return bed, m.verify(limited, ctx, w)
}

// intercept sets up a pod's network for its sidecar.
func (m *sidecarMesh) intercept(ctx context.Context, p *podPlace, i *controlplane.Interception) error {
	rules, err := podnet.ParseRules(i.Rules)
	if err != nil {
		return fmt.Errorf("reading the rules of pod %s: %w", p.name, err)
	}
	if err := p.net.Apply(rules); err != nil {
		return fmt.Errorf("redirecting the connections of pod %s: %w", p.name, err)
	}
	for port, to := range i.Reaches {
		listener, err := p.net.Listen(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("passing on what pod %s sends to %s: %w", p.name, to, err)
		}
		f := forward.From(listener)
		f.To([]string{to})
		m.passing = append(m.passing, f)
	}
	return nil
}

// startApplications starts the echo servers of a tier.
func (b *testbed) startApplications(ctx context.Context, r *run, tier []*podPlace, wait time.Duration, next dataplane.Target) error {
	for _, p := range tier {
		server, err := r.startServer(ctx, p.name, serverPlace{host: "0.0.0.0", port: appPort, pod: p.net}, wait, next)
		if err != nil {
			return err
		}
		b.servers = append(b.servers, server)
	}
	return nil
}

// startPlainPods starts the variant none in the same kind of networks: nothing is
// redirected, and each tier calls the pods of the next tier in turn.
func (r *run) startPlainPods(ctx context.Context) (*testbed, error) {
	v, err := planPods(r.net, r.tiers, VariantNone, scenario.Settings{})
	if err != nil {
		return nil, err
	}
	bed := &testbed{dial: v.tiers[0][0].net.DialContext}
	for i := len(v.tiers) - 1; i > 0; i-- {
		if err := bed.startApplications(ctx, r, v.tiers[i], r.tiers[i-1].wait, bed.target); err != nil {
			return nil, err
		}
		bed.target = dataplane.Target{}
		for _, p := range v.tiers[i] {
			bed.target.Addresses = append(bed.target.Addresses, p.at())
		}
	}
	return bed, nil
}
