package reference

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"

	"scaler.mesh/scaler/internal/controlplane"
)

var _ = It("gives a proxy of the host the workers asked for", func() {
	t := GinkgoTB()
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
})
