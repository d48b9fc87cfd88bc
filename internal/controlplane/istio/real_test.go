package istio

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/proxy"
)

// agentVariable returns a variable of the agent of a workload at a place; "" where it is
// not set.
func agentVariable(t *testing.T, name string, at controlplane.ProxyPlace) string {
	t.Helper()
	c := &ControlPlane{reached: reached{address: "127.0.0.1:15012", secure: 15012}, root: []byte("root")}
	proxy, err := (realProxies{c}).HostProxy(controlplane.HostWorkload{Namespace: "one", Name: "a", Account: "a", Address: "127.0.1.1"}, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range proxy.Env {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

func TestAgentAsksForTheLifetimeAskedFor(t *testing.T) {
	for lifetime, want := range map[time.Duration]string{0: "", 90 * time.Second: "1m30s"} {
		if got := agentVariable(t, "SECRET_TTL", controlplane.ProxyPlace{CertificateLifetime: lifetime}); got != want {
			t.Errorf("asked for %v, the agent's SECRET_TTL is %q: want %q", lifetime, got, want)
		}
	}
}

func TestHostProxyHasTheWorkersAskedFor(t *testing.T) {
	for workers, want := range map[int]any{0: nil, 2: 2.0} {
		var config map[string]any
		if err := json.Unmarshal([]byte(agentVariable(t, "PROXY_CONFIG", controlplane.ProxyPlace{Concurrency: workers})), &config); err != nil {
			t.Fatal(err)
		}
		if got := config["concurrency"]; config == nil || got != want {
			t.Errorf("asked for %d, PROXY_CONFIG %v has a concurrency of %v: want %v", workers, config, got, want)
		}
	}
}

// What listens on all addresses of a pod would listen on those of this machine.
func TestAgentsListenOnLoopback(t *testing.T) {
	programs, err := component.Paths(t.Context(), component.Options{CacheDir: t.TempDir()}, component.IstioManifests)
	if err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(filepath.Join(programs[component.IstioManifests], component.IstioBootstrapFile))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(template), "wildcard") {
		t.Fatal("the template has no listeners any more: is localBootstrap needed?")
	}
	for line := range strings.Lines(string(localBootstrap(template))) {
		if strings.Contains(line, "address") && strings.Contains(line, "wildcard") {
			t.Errorf("a listener of the bootstrap has %s", strings.TrimSpace(line))
		}
	}
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{}, ""},
		{map[string]string{capture.DNSCapture: "true"}, "127.0.0.1:0"},
		{map[string]string{"PROXY_CONFIG": `{"proxyMetadata": {"ISTIO_META_DNS_CAPTURE": "true"}}`}, "127.0.0.1:0"},
	} {
		agent, err := (realProxies{&ControlPlane{}}).agent(proxy.Spec{}, "one", c.env, nil, map[string][]byte{}, controlplane.ProxyPlace{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, variable := range agent.Env {
			if value, is := strings.CutPrefix(variable, "DNS_PROXY_ADDR="); is {
				got = value
			}
		}
		if got != c.want {
			t.Errorf("%v: the agent answers DNS queries at %q, want %q: several agents cannot listen on one port", c.env, got, c.want)
		}
	}
	pod := map[string]string{"a": "b"}
	proxy, err := (realProxies{&ControlPlane{}}).agent(proxy.Spec{}, "one", map[string]string{}, pod, map[string][]byte{}, controlplane.ProxyPlace{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(proxy.Files[annotationsAt]), "a=\"b\"\nstatus.sidecar.istio.io/port=\"0\"\n"; got != want {
		t.Errorf("annotations are %q, want %q", got, want)
	}
	if len(pod) != 1 {
		t.Errorf("the pod's own annotations have become %v", pod)
	}
}
