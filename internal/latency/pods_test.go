package latency

import (
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"

	"scaler.mesh/scaler/internal/topology"
)

var _ = It("gives pods of a mesh their addresses", func() {
	t := GinkgoTB()
	got := podMesh("strict", []tierSpec{{"hop1", 3, 0}, {"hop2", 2, 0}})
	http := []topology.Port{{Name: "http", Number: 80, Target: 8080}}
	want := topology.Mesh{Namespaces: []string{"latency-strict"}, Services: []topology.Service{
		{Name: "client", Namespace: "latency-strict", Account: "client", Pods: 1, Headless: true, Calls: []int{1}},
		{Name: "hop1", Namespace: "latency-strict", Account: "hop1", Pods: 3, Ports: http, Calls: []int{2}},
		{Name: "hop2", Namespace: "latency-strict", Account: "hop2", Pods: 2, Ports: http},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	v := podVariant{mesh: got, addresses: []string{"None", "10.0.0.7", "10.0.0.8"}}
	if to := v.target(1); to.Addresses[0] != "10.0.0.7:80" || to.Host != "hop1.latency-strict.svc.cluster.local:80" {
		t.Errorf("hop1 is called at %+v", to)
	}
})
