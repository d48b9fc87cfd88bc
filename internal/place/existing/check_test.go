package existing

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/kwok"
)

// A pod of a DaemonSet comes onto a fake node only if it tolerates every taint and selects no
// label that the node lacks.
func TestLands(t *testing.T) {
	node := kwok.PoolOf("r").Node(0, "r")
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for name, c := range map[string]struct {
		pod  corev1.PodSpec
		want bool
	}{
		"plain":                 {corev1.PodSpec{}, false},
		"tolerates everything":  {corev1.PodSpec{Tolerations: []corev1.Toleration{everything}}, true},
		"selects linux":         {corev1.PodSpec{Tolerations: []corev1.Toleration{everything}, NodeSelector: map[string]string{corev1.LabelOSStable: "linux"}}, false},
		"tolerates NoExecute":   {corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}}, false},
		"of shared fake nodes":  {corev1.PodSpec{Tolerations: []corev1.Toleration{kwok.Toleration()}, NodeSelector: kwok.NodeSelector()}, false},
		"of the run":            {corev1.PodSpec{Tolerations: []corev1.Toleration{kwok.PoolOf("r").Toleration()}, NodeSelector: kwok.PoolOf("r").NodeSelector()}, true},
		"of another run":        {corev1.PodSpec{Tolerations: []corev1.Toleration{kwok.PoolOf("s").Toleration()}}, false},
		"tolerates another key": {corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "other", Operator: corev1.TolerationOpExists}}}, false},
	} {
		if got := lands(c.pod, node); got != c.want {
			t.Errorf("%s: comes onto the node: %v, want %v", name, got, c.want)
		}
	}
}

// Simulated pods have addresses of a range that nothing in the cluster is of.
func TestAddresses(t *testing.T) {
	client := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.65.1.0/24"}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "a"}, Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.200.0.1", "None"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "a"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "fd00::1"}, {IP: "10.130.0.7"}}}},
	)
	used, err := addresses(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"10.64.0.0/10": true, "10.128.0.0/10": true, "10.192.0.0/10": true, "100.64.0.0/10": false} {
		overlaps := false
		for _, u := range used {
			overlaps = overlaps || u.Overlaps(netip.MustParsePrefix(text))
		}
		if overlaps != want {
			t.Errorf("%s is used: %v, want %v", text, overlaps, want)
		}
	}
}

// Kinds are asked for by their version; a version that the cluster does not have lacks all of its kinds, and another answer is an error.
func TestLacks(t *testing.T) {
	served := map[string]string{
		"/api/v1":                           `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"services","kind":"Service"}]}`,
		"/apis/networking.istio.io/v1":      `{"kind":"APIResourceList","groupVersion":"networking.istio.io/v1","resources":[{"name":"gateways","kind":"Gateway"}]}`,
		"/apis/broken.example.org/v1alpha1": "",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, there := served[r.URL.Path]
		switch {
		case !there:
			http.NotFound(w, r)
		case text == "":
			http.Error(w, "away", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		}
	}))
	defer server.Close()
	c := &Cluster{Server: "here", Config: &rest.Config{Host: server.URL}}
	of := func(version, kind string) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	}
	lacks, err := c.Lacks([]runtime.Object{
		&corev1.Node{}, of("v1", "Service"), of("networking.istio.io/v1", "Gateway"), of("networking.istio.io/v1", "Sidecar"), of("gateway.networking.k8s.io/v1", "Gateway"),
	})
	if want := []string{"Gateway gateway.networking.k8s.io/v1", "Sidecar networking.istio.io/v1"}; err != nil || !slices.Equal(lacks, want) {
		t.Errorf("got %q, %v, want %q", lacks, err, want)
	}
	if _, err := c.Lacks([]runtime.Object{of("broken.example.org/v1alpha1", "Thing")}); err == nil || !strings.Contains(err.Error(), "asking here for the kinds of broken.example.org/v1alpha1") {
		t.Errorf("got %v", err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("config", `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: b, user: b}}]
clusters: [{name: a, cluster: {server: "https://a:6443"}}, {name: b, cluster: {server: "https://b:6443"}}]
users: [{name: a, user: {token: tx}}, {name: b, user: {token: ty}}]
`)
	c, err := Target{Kubeconfig: path, Context: "b"}.Open()
	if err != nil {
		t.Fatal(err)
	}
	if c.Context != "b" || c.Server != "https://b:6443" || c.Config.BearerToken != "ty" || c.Config.QPS != -1 {
		t.Errorf("opened %+v", c)
	}
	if len(c.kubeconfig.Contexts) != 1 || c.kubeconfig.AuthInfos["a"] != nil {
		t.Error("the kubeconfig for KWOK has what is of other contexts")
	}
	if _, err := (Target{Kubeconfig: path, Context: "c"}).Open(); err == nil || !strings.Contains(err.Error(), `place.context: got "c", want a context of the kubeconfig: a, b`) {
		t.Errorf("error %v, want one that names the field and its value", err)
	}
}
