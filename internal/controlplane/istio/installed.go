package istio

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// Ports of istiod's Service and container that a run uses.
const (
	securePort     = 15012
	monitoringPort = 15014
)

// discoveryContainer is the name of istiod's container.
const discoveryContainer = "discovery"

// installed states how scaler uses an istiod that a cluster has already.
func installed() *controlplane.Installed {
	// The names are those of Istio's bootstrap template and injection template.
	sidecar := &controlplane.InjectedSidecar{
		Container: proxyContainer, AdminPort: 15000, Cluster: "xds-grpc", Certificate: "default",
		Processes: []string{"pilot-agent", "envoy"}, NotInjected: map[string]string{"sidecar.istio.io/inject": "false"},
	}
	return &controlplane.Installed{
		Find: find, Attach: attach, Check: checkInstallation, Sidecar: sidecar,
		Rights: []rbacv1.PolicyRule{
			existing.Rule("networking.istio.io", existing.Own(), "sidecars"),
			existing.Rule("networking.istio.io", existing.Changed(), "virtualservices"),
			existing.Rule("security.istio.io", existing.Changed(), "authorizationpolicies"),
			existing.Rule("security.istio.io", existing.Own(), "peerauthentications"),
		},
		MeshRights: []rbacv1.PolicyRule{
			existing.Rule("networking.istio.io", existing.Own(), "destinationrules", "envoyfilters", "gateways", "proxyconfigs", "serviceentries", "workloadentries", "workloadgroups"),
			existing.Rule("security.istio.io", existing.Own(), "requestauthentications"),
			existing.Rule("telemetry.istio.io", existing.Own(), "telemetries"),
			existing.Rule("extensions.istio.io", existing.Own(), "trafficextensions", "wasmplugins"),
		},
	}
}

// find looks for istiod by the label of its Deployments and Services, app=istiod, in the namespace
// that is asked for. Where there are several revisions, one must be named.
func find(ctx context.Context, o controlplane.FindOptions) (controlplane.Installation, error) {
	client, err := kubernetes.NewForConfig(o.REST)
	if err != nil {
		return controlplane.Installation{}, err
	}
	objects, err := dynamic.NewForConfig(o.REST)
	if err != nil {
		return controlplane.Installation{}, err
	}
	i, err := findWith(ctx, client, cmp.Or(o.Namespace, namespace), o.Revision)
	if err != nil {
		return i, err
	}
	return i, findRootSidecar(ctx, objects, &i)
}

func findWith(ctx context.Context, client kubernetes.Interface, home, wanted string) (i controlplane.Installation, err error) {
	i = controlplane.Installation{Namespace: home, ProxyPort: securePort, MetricsPort: monitoringPort, Settings: map[string]string{}}
	ofIstiod := metav1.ListOptions{LabelSelector: "app=istiod"}
	services, err := client.CoreV1().Services(home).List(ctx, ofIstiod)
	if err != nil {
		return i, fmt.Errorf("looking for istiod in namespace %s: %w", home, err)
	}
	var found []string
	for _, s := range services.Items {
		if revision := revisionOf(s.Labels); s.Labels[tagLabel] == "" && !slices.Contains(found, revision) {
			found = append(found, revision)
		}
	}
	slices.Sort(found)
	switch {
	case len(found) == 0:
		return i, fmt.Errorf("finding istiod: want a Service labelled app=istiod in namespace %s, and there is none: place.namespace names another", home)
	case wanted == "" && len(found) > 1:
		return i, scenario.Refuse("place.revision", "", "one of the revisions that the cluster has: %s", strings.Join(names(found), ", "))
	case wanted != "" && !slices.Contains(found, revisionNamed(wanted)):
		return i, scenario.Refuse("place.revision", wanted, "one that the cluster has: %s", strings.Join(names(found), ", "))
	}
	i.Revision = found[0]
	if wanted != "" {
		i.Revision = revisionNamed(wanted)
	}
	named := &ControlPlane{home: home, opts: controlplane.StartOptions{Revision: i.Revision}}
	i.ServiceAddress = net.JoinHostPort(named.serverName(), strconv.Itoa(securePort))
	if len(found) > 1 || found[0] != "" {
		i.Revisions = names(found)
	}
	deployments, err := client.AppsV1().Deployments(home).List(ctx, ofIstiod)
	if err != nil {
		return i, fmt.Errorf("looking for istiod in namespace %s: %w", home, err)
	}
	for _, d := range deployments.Items {
		if revisionOf(d.Labels) == i.Revision {
			if err := describeDeployment(ctx, client, &i, d); err != nil {
				return i, err
			}
		}
	}
	return i, readMeshConfig(ctx, client, &i)
}

// revisionOf returns the revision that an object is of; "" of the one that has no name.
func revisionOf(labels map[string]string) string { return revisionNamed(labels[revisionLabel]) }

func revisionNamed(name string) string {
	if name == "default" {
		return ""
	}
	return name
}

// names are revisions as people name them.
func names(revisions []string) []string {
	var all []string
	for _, r := range revisions {
		all = append(all, cmp.Or(r, "default"))
	}
	return all
}

// describeDeployment reads how istiod runs in the cluster.
func describeDeployment(ctx context.Context, client kubernetes.Interface, i *controlplane.Installation, d appsv1.Deployment) error {
	i.Deployment, i.Replicas, i.Ready = d.Name, 1, int(d.Status.ReadyReplicas)
	if d.Spec.Replicas != nil {
		i.Replicas = int(*d.Spec.Replicas)
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if container.Name != discoveryContainer {
			continue
		}
		i.Version = capture.ImageVersion(container.Image)
		i.Requests, i.Limits = quantities(container.Resources.Requests), quantities(container.Resources.Limits)
		for _, e := range container.Env {
			if e.ValueFrom == nil {
				i.Env = append(i.Env, e.Name+"="+e.Value)
			}
			if strings.HasPrefix(e.Name, "PILOT_") && e.ValueFrom == nil {
				i.Settings[e.Name] = e.Value
			}
		}
		for _, arg := range container.Args {
			if value, ok := strings.CutPrefix(arg, "--keepaliveMaxServerConnectionAge="); ok {
				i.Settings["keepaliveMaxServerConnectionAge"] = value
			}
		}
		if at := slices.Index(container.Args, "--keepaliveMaxServerConnectionAge"); at >= 0 && at+1 < len(container.Args) {
			i.Settings["keepaliveMaxServerConnectionAge"] = container.Args[at+1]
		}
	}
	scalers, err := client.AutoscalingV2().HorizontalPodAutoscalers(i.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("looking for istiod's autoscaler: %w", err)
	}
	for _, s := range scalers.Items {
		if s.Spec.ScaleTargetRef.Kind == "Deployment" && s.Spec.ScaleTargetRef.Name == d.Name {
			i.Autoscaler = &controlplane.Autoscaler{Min: 1, Max: int(s.Spec.MaxReplicas)}
			if s.Spec.MinReplicas != nil {
				i.Autoscaler.Min = int(*s.Spec.MinReplicas)
			}
		}
	}
	if d.Spec.Selector == nil {
		return nil
	}
	pods, err := client.CoreV1().Pods(i.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
	if err != nil {
		return fmt.Errorf("listing istiod's pods: %w", err)
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && observe.Ready(&pod) {
			i.Pods = append(i.Pods, pod.Name)
		}
	}
	slices.Sort(i.Pods)
	return nil
}

func quantities(list corev1.ResourceList) map[string]string {
	all := map[string]string{}
	for name, quantity := range list {
		all[string(name)] = quantity.String()
	}
	return all
}

// readMeshConfig reads the mesh's configuration, and refuses one that a run's expectations are not of.
func readMeshConfig(ctx context.Context, client kubernetes.Interface, i *controlplane.Installation) error {
	name := (&ControlPlane{opts: controlplane.StartOptions{Revision: i.Revision}}).named("istio")
	object, err := client.CoreV1().ConfigMaps(i.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the mesh's configuration: %w", err)
	}
	var mesh struct {
		TrustDomain        string `json:"trustDomain"`
		RootNamespace      string `json:"rootNamespace"`
		DiscoverySelectors []any  `json:"discoverySelectors"`
	}
	if err := yaml.Unmarshal([]byte(object.Data["mesh"]), &mesh); err != nil {
		return fmt.Errorf("reading the mesh's configuration, ConfigMap %s/%s: %w", i.Namespace, name, err)
	}
	refuse := func(field string, value any, want string) error {
		return fmt.Errorf("reading the mesh's configuration, ConfigMap %s/%s: %s is %v: want %s; others are not supported yet", i.Namespace, name, field, value, want)
	}
	root := cmp.Or(mesh.RootNamespace, namespace) // istiod's default, wherever it runs
	switch {
	case mesh.TrustDomain != "" && mesh.TrustDomain != trustDomain:
		return refuse("trustDomain", mesh.TrustDomain, trustDomain)
	case root != i.Namespace:
		return refuse("rootNamespace", root, i.Namespace+", istiod's own")
	case len(mesh.DiscoverySelectors) > 0:
		return refuse("discoverySelectors", len(mesh.DiscoverySelectors), "none, with which istiod sees the run's namespaces")
	}
	i.Settings["ConfigMap"] = i.Namespace + "/" + name
	return nil
}

// checkInstallation refuses knobs whose expectations the installation's own configuration
// would break.
func checkInstallation(i controlplane.Installation, knobs scenario.Settings) string {
	if i.Deployment != "" && i.Ready < i.Replicas {
		return fmt.Sprintf("Deployment %s/%s has %d of %d replicas ready: want all", i.Namespace, i.Deployment, i.Ready, i.Replicas)
	}
	if knobs.Scope == topology.Captured && slices.Contains(i.Env, ambientSetting+"=true") {
		return "istiod serves ztunnels (" + ambientSetting + "), which see what is exported to other namespaces: want a cluster without ambient mode for a captured mesh"
	}
	switch {
	case i.Settings[rootSidecar] == "", knobs.Scope == scenario.ScopeDeclared:
	case knobs.Scope == topology.Captured:
		return fmt.Sprintf("Sidecar %s/%s applies to every namespace: want a cluster without one for a captured mesh", i.Namespace, i.Settings[rootSidecar])
	default:
		return fmt.Sprintf("Sidecar %s/%s applies to every namespace: want mesh.settings.scope declared, with which each workload has its own", i.Namespace, i.Settings[rootSidecar])
	}
	return ""
}

// rootSidecar is the setting that has the name of a Sidecar of the root namespace.
const rootSidecar = "Sidecar of the root namespace"

// attached is an istiod that somebody else has installed and runs.
type attached struct {
	configuration
	installation controlplane.Installation
	metrics      string             // URL of its first program's; "" = not known
	sync         *controlplane.Sync // of all its programs; nil = not known
}

func attach(ctx context.Context, o controlplane.AttachOptions) (*controlplane.ControlPlane, error) {
	client, err := kubernetes.NewForConfig(o.REST)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(o.REST)
	if err != nil {
		return nil, err
	}
	a := attached{installation: o.Installation, configuration: configuration{&ControlPlane{
		opts: controlplane.StartOptions{
			Revision: o.Installation.Revision, ProxyVersion: o.ProxyVersion, Resources: controlplane.Resources{Env: o.Installation.Env},
		},
		home: o.Installation.Namespace, client: client, dynamic: objects, reached: reached{address: o.Address},
	}}}
	version := o.Installation.Version
	if version == "" && len(o.Instances) > 0 {
		if version, err = reportedVersion(ctx, o.Instances[0].Metrics); err != nil {
			return nil, err
		}
	}
	version = cmp.Or(version, "unknown")
	a.report = component.Report{Version: version, Text: version}
	a.sendsUnready = sendsUnready(version, o.Installation.Env)
	if len(o.Instances) > 0 {
		a.metrics, a.sync = o.Instances[0].Metrics, syncOfAll(o)
	}
	root, err := client.CoreV1().ConfigMaps(o.Installation.Namespace).Get(ctx, rootConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading istiod's root certificate: %w", err)
	}
	if a.root = []byte(root.Data[rootKey]); len(a.root) == 0 {
		return nil, fmt.Errorf("reading istiod's root certificate: ConfigMap %s/%s has no %s", o.Installation.Namespace, rootConfigMap, rootKey)
	}
	if err := a.findInjector(ctx); err != nil {
		return nil, err
	}
	return &controlplane.ControlPlane{
		Server: a, Mesh: a, Proxies: a.ControlPlane, Running: controlplane.Running{Instances: o.Instances},
		Sidecars: a.membership(), Probes: a.configuration, Revision: a.revisions(), Captured: captured{a.ControlPlane}.parts(), MakeGateway: makeGateway,
	}, nil
}

// syncOfAll returns how all programs of an installation report which proxies are behind; nil where one is not reached at loopback. istiod serves
// its status on the port of its metrics, too, to connections from its own host, as forwarded ones are (InitDebug in
// pilot/pkg/bootstrap/server.go, allowAuthenticatedOrLocalhost in pilot/pkg/xds/debug.go). What it counts is of others, too, and left out.
func syncOfAll(o controlplane.AttachOptions) *controlplane.Sync {
	var all []*controlplane.Sync
	for _, one := range o.Instances {
		address := strings.TrimSuffix(one.Metrics, "/metrics")
		if at, err := url.Parse(address); err != nil || !net.ParseIP(at.Hostname()).IsLoopback() {
			return nil
		}
		all = append(all, syncOf(one.Name, address, address, o.Installation.Env))
	}
	return &controlplane.Sync{Debounce: all[0].Debounce, Read: func(ctx context.Context) (state controlplane.SyncState, err error) {
		for _, one := range all {
			of, err := one.Read(ctx)
			if err != nil {
				return state, err
			}
			of.Work = ""
			state.Add(of)
		}
		return state, nil
	}}
}

// findInjector fails where pods of the run would not be injected.
func (a attached) findInjector(ctx context.Context) error {
	_, err := a.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, a.mutatingWebhook(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("finding istiod's injector: want the MutatingWebhookConfiguration %s, and there is none", a.mutatingWebhook())
	}
	if err != nil {
		return fmt.Errorf("finding istiod's injector: %w", err)
	}
	return nil
}

// Describe is part of controlplane.Server.
func (a attached) Describe() controlplane.Description {
	d := controlplane.Description{
		Name: Name, Version: a.report.Version, Unchecked: unchecked(a.report.Version), ProxyVersion: a.proxyVersion(),
		Replicas: max(1, len(a.installation.Pods)), Settings: maps.Clone(a.installation.Settings), Retries: inboundRetries,
	}
	for name, value := range a.installation.Requests {
		d.Settings["resources.requests."+name] = value
	}
	for name, value := range a.installation.Limits {
		d.Settings["resources.limits."+name] = value
	}
	if hpa := a.installation.Autoscaler; hpa != nil {
		d.Settings["HorizontalPodAutoscaler"] = strconv.Itoa(hpa.Min) + " to " + strconv.Itoa(hpa.Max)
	}
	if expected(a.report.Version) && a.installation.Deployment != "" {
		d.Limits = Limits(a.installation.Env)
	}
	return d
}

// Endpoints is part of controlplane.Server. It is not asked to collect its garbage: others use it.
func (a attached) Endpoints() controlplane.Endpoints {
	return controlplane.Endpoints{Proxies: a.reached.address, Metrics: a.metrics, Sync: a.sync}
}

// Objects returns the objects of configuration, with one PeerAuthentication for each namespace of the
// run in place of that of the mesh, which would reach the cluster's own workloads. Both
// modes have one, since the cluster's own may state the other mode.
func (a attached) Objects(mesh topology.Mesh, knobs scenario.Settings) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, o := range a.configuration.Objects(mesh, knobs) {
		if o.GetNamespace() != namespace {
			objects = append(objects, o)
		}
	}
	for _, ns := range mesh.Namespaces {
		objects = append(objects, object("security.istio.io/v1", "PeerAuthentication", ns, "default", map[string]any{
			"mtls": map[string]any{"mode": strings.ToUpper(knobs.MTLS)},
		}))
	}
	return objects
}

// Holds is not known: the cluster has services of its own, which come and go.
func (a attached) Holds(topology.Mesh, scenario.Settings, int) []convergence.Key { return nil }

// reportedVersion returns the version that an istiod states at the path /version of the port of its
// metrics; "" where that is not the number of a release.
func reportedVersion(ctx context.Context, metrics string) (string, error) {
	text, err := httpget.Get(ctx, &http.Client{Timeout: versionTimeout}, strings.TrimSuffix(metrics, "/metrics")+"/version")
	if err != nil {
		return "", fmt.Errorf("asking istiod for its version: %w", err)
	}
	return capture.Released(string(text)), nil
}

const versionTimeout = 10 * time.Second

// findRootSidecar finds a Sidecar that applies to every namespace.
func findRootSidecar(ctx context.Context, client dynamic.Interface, i *controlplane.Installation) error {
	list, err := client.Resource(sidecars).Namespace(i.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the Sidecars of namespace %s: %w", i.Namespace, err)
	}
	for _, s := range list.Items {
		if _, selects, _ := unstructured.NestedMap(s.Object, "spec", "workloadSelector"); !selects {
			i.Settings[rootSidecar] = s.GetName()
		}
	}
	return nil
}

var serviceEntries = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"}

var sidecars = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "sidecars"}
