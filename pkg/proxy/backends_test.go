package proxy_test

import (
	"math/rand/v2"
	"testing"

	"scaler.mesh/scaler/pkg/proxy"
)

func TestBackends(t *testing.T) {
	const service = "istiod.istio-system.svc:15012"
	var none *proxy.Backends
	if got, err := none.Choose(service); got != service || err != nil {
		t.Errorf("without a table %s goes to %q, %v", service, got, err)
	}
	b := proxy.NewBackends(rand.New(rand.NewPCG(1, 2)).IntN)
	if got, err := b.Choose("127.0.0.1:1"); got != "127.0.0.1:1" || err != nil {
		t.Errorf("an address that is no service goes to %q, %v", got, err)
	}
	b.Set(service, []string{"a:1", "b:1", "c:1"})
	seen := map[string]int{}
	for range 3000 {
		to, err := b.Choose(service)
		if err != nil {
			t.Fatal(err)
		}
		seen[to]++
	}
	for _, to := range []string{"a:1", "b:1", "c:1"} {
		if n := seen[to]; n < 900 || n > 1100 { // 1000 and four standard deviations, of this seed
			t.Errorf("%s was chosen %d times of 3000, want about 1000", to, n)
		}
	}
	b.Set(service, nil)
	if to, err := b.Choose(service); err == nil {
		t.Errorf("a service without endpoints goes to %q, want an error", to)
	}
}
