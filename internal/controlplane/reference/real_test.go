package reference

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/internal/controlplane"
)

func TestHostProxyHasTheWorkersAskedFor(t *testing.T) {
	c := &ControlPlane{ports: ports{secure: 15012}, root: []byte("root")}
	for workers, want := range map[int]string{0: "1", 2: "2"} {
		proxy, err := c.HostProxy(controlplane.HostWorkload{Namespace: "one", Name: "a", Account: "a"}, controlplane.ProxyPlace{Concurrency: workers})
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.Index(proxy.Args, "--concurrency"); i < 0 || proxy.Args[i+1] != want {
			t.Errorf("asked for %d, Envoy is started with %q: want --concurrency %s", workers, proxy.Args, want)
		}
	}
}
