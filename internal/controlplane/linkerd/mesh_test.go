package linkerd

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// mesh returns a service that calls another one of another namespace, and a third that nobody calls.
func mesh() topology.Mesh {
	port := []topology.Port{{Name: "http", Number: 80, Target: 8080}}
	return topology.Mesh{Namespaces: []string{"m", "n"}, Services: []topology.Service{
		{Name: "a", Namespace: "m", Account: "a", Pods: 1, Ports: port, Calls: []int{1}},
		{Name: "b", Namespace: "n", Account: "b", Pods: 1, Ports: port},
		{Name: "c", Namespace: "m", Account: "c", Pods: 1, Ports: port},
	}}
}

func TestWants(t *testing.T) {
	c := new(controlPlane)
	for service, want := range map[int][]string{
		0: {"Profile a.m.svc.cluster.local:80", "Profile b.n.svc.cluster.local:80", "Addresses b.n.svc.cluster.local:80"},
		1: {"Profile b.n.svc.cluster.local:80"},
	} {
		var got []string
		for _, key := range c.Holds(mesh(), modes()[0].Knobs, service) {
			got = append(got, key.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("a proxy of service %d holds %v, want %v", service, got, want)
		}
	}
	if got := c.Wants(mesh(), modes()[0].Knobs, 0)[2].Service; got != "n/b:http" {
		t.Errorf("endpoints are compared with those of %q", got)
	}
}

// A route probe concerns the service and those who call it; there are no policies.
func TestProbe(t *testing.T) {
	c := new(controlPlane)
	object, concerned := c.Probe(controlplane.RouteProbe, mesh(), modes()[0].Knobs, 1, "marker")
	if !slices.Equal(concerned, []int{0, 1}) {
		t.Errorf("it concerns %v", concerned)
	}
	if object.GetName() != "b.n.svc.cluster.local" || object.GetNamespace() != "n" || object.GetKind() != "ServiceProfile" {
		t.Errorf("it is %v", object)
	}
	for _, kind := range []controlplane.ProbeKind{controlplane.PolicyProbe, controlplane.MeshProbe} {
		if object, _ := c.Probe(kind, mesh(), modes()[0].Knobs, 1, "marker"); object != nil {
			t.Errorf("%s: %v", kind, object)
		}
	}
}

func TestSpec(t *testing.T) {
	services, err := watchServices(t.Context(), fake.NewClientset(
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7"}},
	))
	if err != nil {
		t.Fatal(err)
	}
	c := &controlPlane{
		options: controlplane.StartOptions{Mesh: mesh()}, services: services,
		destination: &program{grpc: 1}, identity: &program{grpc: 2},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "a-1", UID: "u", Labels: map[string]string{kwok.ServiceLabel: "a"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "a", NodeName: "node-1", Containers: []corev1.Container{{Name: "app"}, {Name: proxyContainer, Env: injected()}}},
	}
	spec, err := c.Spec(pod)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(spec.Targets, []string{"10.96.0.7:80"}) || !slices.Equal(spec.Inbound, []string{"a.m.svc.cluster.local:80"}) {
		t.Errorf("it looks up %v and %v", spec.Targets, spec.Inbound)
	}
	if spec.ID != "m/a-1" || spec.Address != "127.0.0.1:1" || spec.Authority != "127.0.0.1:2" || string(spec.RootPEM) != "roots" ||
		spec.Identity != "a.m.serviceaccount.identity.linkerd.cluster.local" || spec.Metadata["ns"] != "m" || spec.Metadata["nodeName"] != "node-1" ||
		spec.Token != (proxy.TokenRequest{Namespace: "m", Pod: "a-1", UID: "u", ServiceAccount: "a"}) {
		t.Errorf("its specification is %+v", spec)
	}
	set := func(name, value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			env := pod.Spec.Containers[1].Env
			env[slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })].Value = value
		}
	}
	for want, change := range map[string]func(*corev1.Pod){
		"pod m/a-1 is of no service of the mesh":                                          func(pod *corev1.Pod) { pod.Labels = nil },
		"pod m/a-1 has no container linkerd-proxy: the injector has not changed it":       func(pod *corev1.Pod) { pod.Spec.Containers = pod.Spec.Containers[:1] },
		`reading the proxy of pod m/a-1: parsing ` + envIdentity + ` "x:1": want linkerd`: set(envIdentity, "x:1"),
		`reading ` + envContext + ` "{" of pod m/a-1`:                                     set(envContext, "{"),
		`reading ` + envNetworks + ` of pod m/a-1`:                                        set(envNetworks, "10"),
	} {
		changed := pod.DeepCopy()
		change(changed)
		if _, err := c.Spec(changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	set(envNetworks, "10.0.0.0/16,192.168.0.0/16")(pod)
	if spec, err := c.Spec(pod); err != nil || spec.Targets != nil {
		t.Errorf("of a service of no network it looks up %v, %v", spec.Targets, err)
	}
}

// injected returns the environment of a proxy as charts/partials/templates/_proxy.tpl of the module has it, of what
// is read.
func injected() []corev1.EnvVar {
	from := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	return []corev1.EnvVar{
		{Name: envDestination, Value: "linkerd-dst-headless.linkerd.svc.cluster.local.:8086"},
		{Name: envNetworks, Value: "10.0.0.0/8,192.168.0.0/16"},
		{Name: "_pod_ns", ValueFrom: from("metadata.namespace")},
		{Name: "_pod_nodeName", ValueFrom: from("spec.nodeName")},
		{Name: envContext, Value: "{\"ns\":\"$(_pod_ns)\", \"nodeName\":\"$(_pod_nodeName)\"}\n"},
		{Name: envAnchors, Value: "roots"},
		{Name: envIdentity, Value: "linkerd-identity-headless.linkerd.svc.cluster.local.:8080"},
		{Name: "_pod_sa", ValueFrom: from("spec.serviceAccountName")},
		{Name: "_l5d_ns", Value: "linkerd"},
		{Name: "_l5d_trustdomain", Value: "cluster.local"},
		{Name: envLocalName, Value: "$(_pod_sa).$(_pod_ns).serviceaccount.identity.$(_l5d_ns).$(_l5d_trustdomain)"},
	}
}

// The limit is that of token reviews: 200 certificates take 38 s.
func TestLimits(t *testing.T) {
	if bound := record.StormBoundBy(Driver().Figures.Limits(nil), 1, 200, 40); bound == nil || bound.Seconds != 38 {
		t.Errorf("200 certificates are bound by %+v", bound)
	}
}
