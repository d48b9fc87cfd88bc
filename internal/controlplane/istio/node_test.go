package istio

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/component"
)

func injectedPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "svc-0-7c9-abcde", Namespace: "mesh-0",
			Labels:      map[string]string{"app": "svc-0", "pod-template-hash": "7c9"},
			Annotations: map[string]string{"sidecar.istio.io/status": "injected"},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-0", ServiceAccountName: "svc-0",
			InitContainers: []corev1.Container{{Name: "istio-init"}, {
				Name:      "istio-proxy",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2500m")}},
				Env: []corev1.EnvVar{
					{Name: "PROXY_CONFIG", Value: `{"proxyHeaders":{}}`},
					{Name: "ISTIO_META_CLUSTER_ID", Value: "Kubernetes"},
					{Name: "ISTIO_META_POD_PORTS", Value: "[\n {\"containerPort\":8080}\n]"},
					{Name: "ISTIO_META_NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
					{Name: "ISTIO_METAJSON_EXTRA", Value: `{"EXTRA":true}`},
				},
			}},
		},
		Status: corev1.PodStatus{PodIP: "10.1.0.7"},
	}
}

func TestSidecar(t *testing.T) {
	c := &ControlPlane{report: component.Report{Version: "1.31.0", Text: "1.31-abc"}, reached: reached{address: "127.0.0.1:15012", secure: 15012}, root: []byte("root")}
	got, err := c.Spec(injectedPod())
	if err != nil {
		t.Fatal(err)
	}
	if want := "sidecar~10.1.0.7~svc-0-7c9-abcde.mesh-0~mesh-0.svc.cluster.local"; got.NodeID != want {
		t.Errorf("NodeID is %q, want %q", got.NodeID, want)
	}
	if want := "spiffe://cluster.local/ns/mesh-0/sa/svc-0"; got.Identity != want {
		t.Errorf("Identity is %q, want %q", got.Identity, want)
	}
	if want := "127.0.0.1:15012"; got.Address != want {
		t.Errorf("Address is %q, want %q", got.Address, want)
	}
	if diff := cmp.Diff(map[string]string{"ClusterID": "Kubernetes"}, got.Headers); diff != "" {
		t.Errorf("Headers (-want +got):\n%s", diff)
	}
	want := map[string]any{
		"NAME": "svc-0-7c9-abcde", "NAMESPACE": "mesh-0", "SERVICE_ACCOUNT": "svc-0",
		"INSTANCE_IPS": "10.1.0.7", "ISTIO_VERSION": "1.31-abc", "NODE_NAME": "node-0",
		"CLUSTER_ID": "Kubernetes", "POD_PORTS": `[{"containerPort":8080}]`, "EXTRA": true,
		"LABELS":      map[string]any{"app": "svc-0"},
		"ANNOTATIONS": map[string]any{"sidecar.istio.io/status": "injected"},
		"PROXY_CONFIG": map[string]any{
			"binaryPath": "/usr/local/bin/envoy", "configPath": "./etc/istio/proxy", "controlPlaneAuthPolicy": "MUTUAL_TLS",
			"discoveryAddress": "istiod.istio-system.svc:15012", "drainDuration": "45s", "proxyAdminPort": float64(15000),
			"serviceCluster": "istio-proxy", "statNameLength": float64(189), "statusPort": float64(15020), "terminationDrainDuration": "5s",
			"concurrency": float64(3), "proxyHeaders": map[string]any{},
		},
		"ENVOY_SKIP_DEPRECATED_LOGS": "true", "METADATA_DISCOVERY": "false", "WORKLOAD_IDENTITY_SOCKET_FILE": "socket",
		"PILOT_SAN": []any{"istiod.istio-system.svc"}, "ENVOY_STATUS_PORT": float64(15021), "ENVOY_PROMETHEUS_PORT": float64(15090),
	}
	if diff := cmp.Diff(want, got.Metadata); diff != "" {
		t.Errorf("Metadata (-want +got):\n%s", diff)
	}
}

func TestSidecarErrors(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.Pod){
		"no IP":            func(p *corev1.Pod) { p.Status.PodIP = "" },
		"not injected":     func(p *corev1.Pod) { p.Spec.InitContainers = nil },
		"bad proxy config": func(p *corev1.Pod) { p.Spec.InitContainers[1].Env[0].Value = "{" },
		"bad JSON":         func(p *corev1.Pod) { p.Spec.InitContainers[1].Env[4].Value = "[]" },
	} {
		t.Run(name, func(t *testing.T) {
			pod := injectedPod()
			spoil(pod)
			if s, err := (&ControlPlane{}).Spec(pod); err == nil {
				t.Errorf("Sidecar is %+v, want an error", s)
			}
		})
	}
}
