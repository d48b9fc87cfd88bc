package latency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/loadagent"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
)

const (
	// agentPort is the port of agents, on loopback of their pods.
	agentPort = 15910
	// podTimeout limits the time until all pods are ready, including image pulls, and
	// then the time until requests get through.
	podTimeout = 3 * time.Minute
	// podGrace is the termination grace period of a pod, in seconds.
	podGrace = 10
	// podUser is the user of images without a system, such as distroless ones.
	podUser = 65532
)

// clusterVariant is one variant in a cluster: a namespace with a client, and for each placement the tiers behind it.
type clusterVariant struct {
	variant string
	knobs   scenario.Settings
	applier *workload.Applier // of all but the pods
	client  *clusterPod
	tiers   [][][]*clusterPod // by placement and tier
}

// clusterPod is a pod of a client or a server.
type clusterPod struct {
	manifest *corev1.Pod
	service  topology.Service

	made  *corev1.Pod // its state when it is ready
	agent *loadagent.Agent
}

// pods returns all pods of a variant, the client's first.
func (v *clusterVariant) pods() []*clusterPod {
	all := []*clusterPod{v.client}
	for _, tiers := range v.tiers {
		all = append(all, slices.Concat(tiers...)...)
	}
	return all
}

// plan prepares the objects of a variant. A variant that was not asked for has only a
// client, from which requests are tried that others must refuse.
func (v *clusterVariant) plan(s Spec, f *Found, objects dynamic.Interface, sidecar *controlplane.InjectedSidecar) {
	namespace := f.Run + "-" + v.variant
	mesh := topology.Mesh{
		Namespaces: []string{namespace},
		Services:   []topology.Service{{Name: clientTier, Namespace: namespace, Account: clientTier, Pods: 1, Headless: true}},
	}
	injected := v.variant != VariantNone
	labels := sidecar.NotInjected
	if injected {
		labels = f.adapter.Sidecars.PodLabels
	}
	pod := func(service topology.Service, n, node int, containers ...corev1.Container) *clusterPod {
		made := podManifest(fmt.Sprintf("%s-%d", service.Name, n), f.Run, service, f.Nodes[node], append(containers, agentContainer(s.Latency.Image)))
		maps.Copy(made.Labels, labels)
		if injected {
			made.Annotations = f.adapter.PodAnnotations(mesh, namespace)
		}
		return &clusterPod{manifest: made, service: service}
	}
	v.client = pod(mesh.Services[0], 0, 0)
	if slices.Contains(s.Latency.Variants, v.variant) {
		for _, placement := range s.Latency.Placement {
			first, tiers := len(mesh.Services), [][]*clusterPod{}
			mesh.Services[0].Calls = append(mesh.Services[0].Calls, first)
			for i, tier := range s.tiers() {
				name := tier.name + "-" + placement
				service := topology.Service{
					Name: name, Namespace: namespace, Account: name, Pods: tier.replicas,
					Ports: []topology.Port{{Name: portName(s.Latency.HTTP), Number: servicePort, Target: appPort}},
				}
				next := ""
				if i+1 < len(s.tiers()) {
					next = s.tiers()[i+1].name + "-" + placement
					service.Calls = []int{first + i + 1}
				}
				node := 0
				if placement == TwoNodes {
					node = (i + 1) % 2
				}
				var pods []*clusterPod
				for n := range tier.replicas {
					pods = append(pods, pod(service, n, node, echoContainer(s, service, tier.wait, next)))
				}
				mesh.Services, tiers = append(mesh.Services, service), append(tiers, pods)
			}
			v.tiers = append(v.tiers, tiers)
		}
	}
	v.applier = &workload.Applier{Client: f.client, Dynamic: objects, Run: f.Run, Mesh: mesh}
	if injected {
		v.applier.Objects = f.adapter.Mesh.Objects(mesh, v.knobs)
		v.applier.NamespaceLabels = func(namespace string) map[string]string { return f.adapter.NamespaceLabels(mesh, namespace) }
	}
}

// podManifest returns a pod of a service on a node. Its containers share the process
// namespace, so that an agent can read the sidecar's usage.
func podManifest(name, run string, service topology.Service, node corev1.Node, containers []corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: service.Namespace, Labels: map[string]string{
			"app": service.Name, kwok.RunLabel: run, kwok.ServiceLabel: service.Name, kwok.RealLabel: "true",
		}},
		Spec: corev1.PodSpec{
			ServiceAccountName: service.Account, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(podGrace)),
			NodeSelector:          map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]},
			ShareProcessNamespace: new(true),
			Containers:            containers,
		},
	}
}

// container returns a container of this scaler, without a processor limit: throttling
// would be measured as latency.
func container(name, image string, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(podUser)), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func agentContainer(image string) corev1.Container {
	return container("agent", image, loadagent.Command, "--listen", net.JoinHostPort("127.0.0.1", strconv.Itoa(agentPort)))
}

// echoContainer returns a server. next is the service that it forwards to, at the address
// that the kubelet puts into the environment, so that the cluster needs no DNS; "" means
// that the server answers itself.
func echoContainer(s Spec, service topology.Service, wait time.Duration, next string) corev1.Container {
	args := []string{dataplane.EchoCommand, "--listen", ":" + strconv.Itoa(appPort), "--name", service.Name, "--wait", wait.String(), "--http", strconv.Itoa(s.Latency.HTTP)}
	if next != "" {
		variable := strings.ToUpper(strings.ReplaceAll(next, "-", "_")) + "_SERVICE_HOST"
		args = append(args, "--next", fmt.Sprintf("$(%s):%d", variable, servicePort), "--next-host", serviceHost(next, service.Namespace))
	}
	c := container("app", s.Latency.Image, args...)
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: appPort}}
	return c
}

// portName returns the name of a service's port, from which a mesh derives the protocol
// between its sidecars.
func portName(http int) string {
	if http == 2 {
		return "http2"
	}
	return "http"
}

// serviceHost returns the Host of requests to a service.
func serviceHost(name, namespace string) string {
	return net.JoinHostPort(name+"."+namespace, strconv.Itoa(servicePort))
}

// clusterPods manages the pods of a run in a cluster.
type clusterPods struct {
	run   *run
	found *Found

	forwards []*existing.Forwarded
}

// create creates all objects.
func (p *clusterPods) create(ctx context.Context) (steps.Undo, error) {
	r, f := p.run, p.found
	r.record.Cluster = r.spec.cluster()
	r.record.Environment.ControlPlane = f.controlPlane(r.driver.Name)
	r.record.Environment.Kubernetes = f.Kubernetes
	if err := r.writer.Save(&r.record); err != nil { // by its label, what a killed run left is found
		return nil, err
	}
	undo := place.Deletion{Env: f.Cluster, Run: f.Run, Stays: r.spec.Existing.Stays(f.Run)}.Undo
	for _, v := range f.variants {
		if err := v.applier.Surroundings(ctx); err != nil {
			return undo, err
		}
		r.logf("creating %s of variant %s in namespace %s", output.Many(len(v.pods()), "pod"), v.variant, v.client.manifest.Namespace)
		for _, pod := range v.pods() {
			made, err := f.client.CoreV1().Pods(pod.manifest.Namespace).Create(ctx, pod.manifest, metav1.CreateOptions{})
			if err != nil {
				return undo, fmt.Errorf("creating pod %s/%s: %w", pod.manifest.Namespace, pod.manifest.Name, err)
			}
			if err := errSidecar(made, r.driver.Installed.Sidecar.Container, v.variant != VariantNone); err != nil {
				return undo, err
			}
		}
	}
	return undo, nil
}

// connect waits until all pods are ready, and connects to their agents.
func (p *clusterPods) connect(ctx context.Context) (steps.Undo, error) {
	undo := func(context.Context) error {
		for _, f := range p.forwards {
			f.Close()
		}
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, podTimeout, fmt.Errorf("not ready after %v", podTimeout))
	defer cancel()
	for _, v := range p.found.variants {
		for _, pod := range v.pods() {
			if err := p.await(limited, pod); err != nil {
				return undo, err
			}
		}
	}
	for _, v := range p.found.variants {
		for _, pod := range v.pods() {
			if err := p.reach(limited, pod); err != nil {
				return undo, err
			}
		}
	}
	return undo, nil
}

// retryEvery is the time between two checks of a pod, or attempts to connect to it.
const retryEvery = 200 * time.Millisecond

// await waits until a pod is ready.
func (p *clusterPods) await(ctx context.Context, pod *clusterPod) error {
	namespace, name := pod.manifest.Namespace, pod.manifest.Name
	for {
		made, err := p.found.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		state := ""
		if err == nil {
			var ready bool
			if state, ready = usable(made); ready {
				pod.made = made
				return nil
			}
			err = task.WaitUntil(ctx, time.Now().Add(retryEvery))
		}
		if ctx.Err() != nil {
			return fmt.Errorf("waiting for pod %s/%s: %w: %s", namespace, name, context.Cause(ctx), state)
		}
		if err != nil {
			return fmt.Errorf("waiting for pod %s/%s: %w", namespace, name, err)
		}
	}
}

// reach connects to the agent of a pod, which may start a moment after the pod is ready,
// because no probe asks it. A port forward ends when nothing accepts its connection, so
// each attempt uses a new one.
func (p *clusterPods) reach(ctx context.Context, pod *clusterPod) error {
	for {
		forwarded, err := p.found.Cluster.Forward(ctx, pod.made.Namespace, pod.made.Name, agentPort)
		if err != nil {
			return err
		}
		pod.agent, err = loadagent.Connect(ctx, pod.made.Namespace+"/"+pod.made.Name, forwarded.Address(agentPort), component.ScalerVersion())
		if err == nil {
			p.forwards = append(p.forwards, forwarded)
			return nil
		}
		forwarded.Close()
		if errors.Is(err, loadagent.ErrBuild) || task.WaitUntil(ctx, time.Now().Add(retryEvery)) != nil {
			return err
		}
	}
}

// start checks the pods of each variant, and starts sampling what they use.
func (p *clusterPods) start(ctx context.Context) (steps.Undo, error) {
	for i := range p.run.spec.Latency.Placement {
		for _, variant := range p.run.spec.Latency.Variants {
			at := slices.IndexFunc(p.found.variants, func(v *clusterVariant) bool { return v.variant == variant })
			bed, err := p.bed(ctx, p.found.variants[at], i)
			if err != nil {
				return nil, fmt.Errorf("variant %s, %s: %w", variant, p.run.spec.Latency.Placement[i], err)
			}
			p.run.beds = append(p.run.beds, bed)
		}
	}
	return nil, nil
}

// bed returns the testbed of a variant and placement, after requests get through as
// expected.
func (p *clusterPods) bed(ctx context.Context, v *clusterVariant, placement int) (_ *testbed, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, podTimeout, fmt.Errorf("not as they should after %v", podTimeout))
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}()
	r, tiers := p.run, v.tiers[placement]
	first := tiers[0][0].service
	service, err := p.found.client.CoreV1().Services(first.Namespace).Get(ctx, first.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the address of service %s: %w", first.Name, err)
	}
	bed := &testbed{
		generator: v.client.agent, sampled: "client-" + v.variant,
		target: dataplane.Target{
			Addresses: []string{net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(servicePort))}, Host: serviceHost(first.Name, first.Namespace),
		},
	}
	source, err := v.client.agent.Process(ctx, loadagent.Own)
	if err != nil {
		return nil, err
	}
	if err := r.sampler.Watch(bed.sampled, source); err != nil {
		return nil, err
	}
	w := way{variant: v.variant, to: bed.target, dial: v.client.agent.DialContext, past: p.found.variants[0].client.agent.DialContext}
	if v.variant == VariantNone {
		// A cluster without a mesh chooses a server for each connection, an Envoy for
		// each request.
		if servers := tiers[0]; len(servers) > 1 {
			bed.target.Addresses = nil
			for _, pod := range servers {
				bed.target.Addresses = append(bed.target.Addresses, net.JoinHostPort(pod.made.Status.PodIP, strconv.Itoa(appPort)))
			}
		}
		w.to = bed.target
		return bed, w.awaitAnswers(ctx, &r.spec)
	}
	caller := v.client.service
	if n := len(tiers); n > 1 {
		caller = tiers[n-2][0].service
	}
	w.header, w.identity = spiffeHeader, fmt.Sprintf("/ns/%s/sa/%s", caller.Namespace, caller.Account)
	for i, tier := range append([][]*clusterPod{{v.client}}, tiers...) {
		of := tierSidecars{tier: clientTier, count: len(tier)}
		if i > 0 {
			of.tier = r.tiers[i-1].name
		}
		for _, pod := range tier {
			names, err := p.sample(ctx, v.variant, pod)
			if err != nil {
				return nil, err
			}
			of.names = append(of.names, names...)
			if i > 0 {
				w.servers = append(w.servers, checkedServer{
					name: pod.made.Namespace + "/" + pod.made.Name, strict: v.knobs.MTLS == "strict",
					to: dataplane.Target{Addresses: []string{net.JoinHostPort(pod.made.Status.PodIP, strconv.Itoa(appPort))}, Host: serviceHost(pod.service.Name, pod.service.Namespace)},
				})
			}
		}
		bed.sidecars = append(bed.sidecars, of)
	}
	if bed.workers, err = p.workers(ctx, v.client); err != nil {
		return nil, err
	}
	if err := w.awaitAnswers(ctx, &r.spec); err != nil {
		return nil, fmt.Errorf("sending requests through the sidecars: %w", err)
	}
	check, err := w.check(ctx, &r.spec)
	if err != nil {
		return nil, err
	}
	check.Placement = r.spec.Latency.Placement[placement]
	r.record.Checks = append(r.record.Checks, check)
	return bed, nil
}

// sample starts sampling the programs of a pod's sidecar, and returns the names under
// which they are sampled.
func (p *clusterPods) sample(ctx context.Context, variant string, pod *clusterPod) (names []string, err error) {
	for _, program := range p.run.driver.Installed.Sidecar.Processes {
		source, err := pod.agent.Process(ctx, program)
		if err != nil {
			return nil, err
		}
		name := variant + "/" + pod.made.Name + "/" + program
		if err := p.run.sampler.Watch(name, source); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// workers returns the number of worker threads of the pod's Envoy, as Envoy reports it.
func (p *clusterPods) workers(ctx context.Context, pod *clusterPod) (int, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: pod.agent.DialContext, DisableKeepAlives: true}}
	admin := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.run.driver.Installed.Sidecar.AdminPort))
	text, err := get(ctx, client, dataplane.Target{Addresses: []string{admin}}, "/server_info")
	if err != nil {
		return 0, fmt.Errorf("asking the Envoy of pod %s: %w", pod.made.Name, err)
	}
	var info struct {
		Options struct {
			Concurrency int `json:"concurrency"`
		} `json:"command_line_options"`
	}
	if err := json.Unmarshal(text, &info); err != nil || info.Options.Concurrency < 1 {
		return 0, fmt.Errorf("asking the Envoy of pod %s for its worker threads: it answers %.200q", pod.made.Name, text)
	}
	return info.Options.Concurrency, nil
}
