package istio

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/controlplane"
)

func TestAgentAsksForTheLifetimeAskedFor(t *testing.T) {
	c := &ControlPlane{ports: ports{secure: 15012}, root: []byte("root")}
	for lifetime, want := range map[time.Duration]string{0: "", 90 * time.Second: "1m30s"} {
		proxy, err := c.HostProxy(controlplane.HostWorkload{Namespace: "one", Name: "a", Account: "a", Address: "127.0.1.1"}, controlplane.ProxyPlace{CertificateLifetime: lifetime})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, variable := range proxy.Env {
			if value, ok := strings.CutPrefix(variable, "SECRET_TTL="); ok {
				got = value
			}
		}
		if got != want {
			t.Errorf("asked for %v, the agent's SECRET_TTL is %q: want %q", lifetime, got, want)
		}
	}
}

func TestHostProxyHasTheWorkersAskedFor(t *testing.T) {
	c := &ControlPlane{ports: ports{secure: 15012}, root: []byte("root")}
	for workers, want := range map[int]any{0: nil, 2: 2.0} {
		proxy, err := c.HostProxy(controlplane.HostWorkload{Namespace: "one", Name: "a", Account: "a", Address: "127.0.1.1"}, controlplane.ProxyPlace{Concurrency: workers})
		if err != nil {
			t.Fatal(err)
		}
		var config map[string]any
		for _, variable := range proxy.Env {
			if text, ok := strings.CutPrefix(variable, "PROXY_CONFIG="); ok {
				if err := json.Unmarshal([]byte(text), &config); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := config["concurrency"]; config == nil || got != want {
			t.Errorf("asked for %d, PROXY_CONFIG %v has a concurrency of %v: want %v", workers, config, got, want)
		}
	}
}
