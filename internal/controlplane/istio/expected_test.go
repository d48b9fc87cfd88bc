package istio

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

func TestWantsOfScopeAll(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 4, Services: 2, Namespaces: 2})
	got := (configuration{new(ControlPlane)}).Wants(mesh, controlplane.Modes["permissive"], 0)
	key := func(t convergence.Type, name string) convergence.Key {
		return convergence.Key{Type: t, Name: name}
	}
	const a, b = "svc-0.mesh-0.svc.cluster.local", "svc-1.mesh-1.svc.cluster.local"
	want := []convergence.Want{
		{Key: key(convergence.CDS, "inbound|8080||")},
		{Key: key(convergence.CDS, "outbound|80||"+a)},
		{Key: key(convergence.CDS, "outbound|80||"+b)},
		{Key: key(convergence.EDS, "outbound|80||"+a), Service: "mesh-0/svc-0:http"},
		{Key: key(convergence.EDS, "outbound|80||"+b), Service: "mesh-1/svc-1:http"},
		{Key: key(convergence.LDS, "0.0.0.0_80")},
		{Key: key(convergence.LDS, "virtualInbound"), Members: []string{"plaintext 8080"}},
		{Key: key(convergence.LDS, "virtualOutbound")},
		{Key: key(convergence.RDS, "80"), Members: []string{a, b}},
	}
	byKey := cmpopts.SortSlices(func(x, y convergence.Want) bool { return x.Key.String() < y.Key.String() })
	if diff := cmp.Diff(want, got, byKey, cmpopts.EquateComparable(convergence.Type{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEndpointHealth(t *testing.T) {
	for _, c := range []struct {
		ready, terminating bool
		health             convergence.Health
		ok                 bool
	}{
		{true, false, convergence.Healthy, true},
		{true, true, convergence.Healthy, true}, // publishNotReadyAddresses
		{false, false, convergence.Unhealthy, true},
		{false, true, 0, false},
	} {
		if health, ok := (configuration{&ControlPlane{sendsUnready: true}}).EndpointHealth(c.ready, c.ready, c.terminating); health != c.health || ok != c.ok {
			t.Errorf("EndpointHealth(%t, %t) is %v, %t, want %v, %t", c.ready, c.terminating, health, ok, c.health, c.ok)
		}
	}
}

func TestObjectsAreWhatAHostProcessNeeds(t *testing.T) {
	programs, err := component.Paths(t.Context(), component.Options{CacheDir: t.TempDir()}, component.IstioManifests)
	if err != nil {
		t.Fatal(err)
	}
	c := &ControlPlane{opts: controlplane.StartOptions{Programs: programs}, reached: reached{webhook: 15017}}
	objects, err := c.objects()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, obj := range objects {
		kinds[obj.GetKind()]++
	}
	for kind, want := range map[string]int{
		"CustomResourceDefinition": 15, "ConfigMap": 3, "MutatingWebhookConfiguration": 1,
		"ValidatingWebhookConfiguration": 1, "Deployment": 0, "HorizontalPodAutoscaler": 0,
	} {
		if kinds[kind] != want {
			t.Errorf("%d objects of kind %s, want %d", kinds[kind], kind, want)
		}
	}
}
