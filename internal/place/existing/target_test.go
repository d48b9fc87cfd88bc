package existing

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"encoding/pem"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// A scaler that runs as a pod reaches the API server with what the kubelet mounts there, and so
// does KWOK with the kubeconfig that is written for it.
func TestInCluster(t *testing.T) {
	var seen []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"gitVersion": "v1.36.3"}`))
	}))
	defer server.Close()
	mount := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: server.Certificate().Raw})
	for name, content := range map[string]string{"token": "secret\n", "ca.crt": string(authority), "namespace": "scaler"} {
		if err := os.WriteFile(filepath.Join(mount, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	host, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	in := pod{mount: mount, getenv: variables("KUBERNETES_SERVICE_HOST", host, "KUBERNETES_SERVICE_PORT", port)}
	c, err := Target{Context: InCluster}.open(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://" + host + ":" + port; c.Context != InCluster || c.Server != want {
		t.Errorf("context %s, server %s, want %s and %s", c.Context, c.Server, InCluster, want)
	}

	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(c.kubeconfig, file); err != nil {
		t.Fatal(err)
	}
	written, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if written.BearerTokenFile != filepath.Join(mount, "token") {
		t.Errorf("KWOK's token is of file %q, want the one that the kubelet replaces", written.BearerTokenFile)
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerVersion(); err != nil || len(seen) == 0 || seen[0] != "Bearer secret" {
		t.Errorf("requests had the authorizations %q, %v", seen, err)
	}
}

func TestInClusterElsewhere(t *testing.T) {
	empty := t.TempDir()
	named := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://elsewhere"}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts[InCluster] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	if err := clientcmd.WriteToFile(*config, named); err != nil {
		t.Fatal(err)
	}
	set := variables("KUBERNETES_SERVICE_HOST", "fd00::1", "KUBERNETES_SERVICE_PORT", "443")
	for _, test := range []struct {
		name       string
		kubeconfig string // KUBECONFIG
		target     Target
		in         pod
		want       string // in the error; "" = the context of the kubeconfig
	}{
		{"outside of a pod", "none", Target{Context: InCluster}, pod{empty, variables()}, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"},
		{"a pod without a token", "none", Target{Context: InCluster}, pod{empty, set}, "automountServiceAccountToken"},
		{"a file that lacks the context", "none", Target{Context: "other"}, pod{empty, set}, `place.context: got "other", want a context of the kubeconfig`},
		{"a kubeconfig with such a context", named, Target{Context: InCluster}, pod{empty, set}, ""},
		{"a file that is named", "none", Target{Kubeconfig: named, Context: InCluster}, pod{empty, set}, ""},
	} {
		t.Setenv("KUBECONFIG", test.kubeconfig)
		c, err := test.target.open(test.in)
		switch {
		case test.want == "" && (err != nil || c.Server != "https://elsewhere"):
			t.Errorf("%s: %v, %v, want the context of the kubeconfig", test.name, c, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// variables has variables, as NAME, VALUE, ...
func variables(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}
