package xdsprobe

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/durationpb"
)

// randomMesh returns a consistent mesh: every name that a resource names is
// there, and nothing else.
func randomMesh(r *rand.Rand) mesh {
	const most = 6
	m := mesh{}
	assignments := map[string]bool{}
	for i := range r.IntN(most) {
		name := ""
		switch r.IntN(4) {
		case 0:
			m[resource.ClusterType] = append(m[resource.ClusterType], staticCluster(fmt.Sprint("cluster", i)))
			continue
		case 1: // shared with others
			name = fmt.Sprint("shared", r.IntN(2))
		}
		c := edsCluster(fmt.Sprint("cluster", i), name, r.IntN(2))
		// The server may move on before it has answered, and answers no more
		// before it has its ACK: as with Envoy, only giving up ends that.
		c.EdsClusterConfig.EdsConfig.InitialFetchTimeout = durationpb.New(20 * time.Millisecond)
		if name == "" {
			name = c.Name
		}
		m[resource.ClusterType] = append(m[resource.ClusterType], c)
		assignments[name] = true
	}
	for name := range assignments {
		var endpoints []*endpointv3.LbEndpoint
		for i := range r.IntN(3) { // none is an answer too
			endpoints = append(endpoints, endpoint(fmt.Sprintf("10.0.0.%d", i), 80, corev3.HealthStatus(r.IntN(4))))
		}
		m[resource.EndpointType] = append(m[resource.EndpointType], assignment(name, endpoints...))
	}
	routes, extensions := map[string]bool{}, map[string]bool{}
	for i := range r.IntN(3) {
		var filters []*listenerv3.Filter
		for range r.IntN(3) {
			name, wasm := fmt.Sprint("route", r.IntN(4)), fmt.Sprint("wasm", r.IntN(3))
			routes[name] = true
			if r.IntN(2) == 0 {
				filters = append(filters, manager(name))
				continue
			}
			extensions[wasm] = true
			filters = append(filters, manager(name, wasm))
		}
		m[resource.ListenerType] = append(m[resource.ListenerType], listener(fmt.Sprint("listener", i), filters...))
	}
	for name := range routes {
		m[resource.RouteType] = append(m[resource.RouteType], route(name, fmt.Sprint("host", r.IntN(5))))
	}
	for name := range extensions {
		m[resource.ExtensionConfigType] = append(m[resource.ExtensionConfigType], extension(name))
	}
	return m
}

// settled returns a mesh that holds every type, so that all that is held in the
// end can be distinguished.
func settled(r *rand.Rand) mesh {
	for {
		m := randomMesh(r)
		if len(m[resource.EndpointType]) > 0 && len(m[resource.RouteType]) > 0 && len(m[resource.ExtensionConfigType]) > 0 {
			return m
		}
	}
}

// count returns how many resources a mesh holds.
func count(m mesh) (n int) {
	for _, resources := range m {
		n += len(resources)
	}
	return n
}

var _ = Describe("random changes of a mesh", func() {
	sequences := 1000
	if testing.Short() { // as under the race detector, which is many times slower
		sequences = 100
	}
	for _, variant := range []Variant{Delta, SotW} {
		It(fmt.Sprintf("end in the state of a fresh client, %s", variant), func() {
			// Without the order of ADS: with it, go-control-plane drops a watch whose names
			// are not those of the snapshot, though they may be those of the next one.
			p, store := startPlaneOf(cache.NewSnapshotCache(false, cache.IDHash{}, nil)), NewStore()
			numbers := make(chan int)
			var work sync.WaitGroup
			for range 8 {
				work.Go(func() {
					defer GinkgoRecover()
					for n := range numbers {
						sequence(p, store, variant, uint64(n))
					}
				})
			}
			for n := range sequences {
				numbers <- n
			}
			close(numbers)
			work.Wait()
			Expect(store.Counters().Connected.Load()).To(BeZero())
			Expect(store.Counters().Nacks.Load()).To(BeZero())
		})
	}
})

// sequence runs a sidecar through some random meshes, with streams lost on the
// way, and compares it with one that sees only the last.
func sequence(p *plane, store *Store, variant Variant, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	node := fmt.Sprint("node", seed)
	c := Config{ID: node, NodeID: node, Address: p.address, Variant: variant}
	old := start(store, c)
	for i := range 2 + r.IntN(5) {
		m, marker := randomMesh(r), fmt.Sprint("marker", i)
		m[resource.ClusterType] = append(m[resource.ClusterType], staticCluster(marker))
		p.serve(node, m)
		switch r.IntN(5) {
		case 0:
			p.cut()
		case 1, 2: // let it get somewhere
			Eventually(old.Held).Should(ContainElement("CDS "+marker), "seed %d", seed)
		}
	}
	last := settled(r)
	p.serve(node, last)
	fresh := start(store, c)
	Eventually(fresh.Held).Should(HaveLen(count(last)), "seed %d", seed)
	Eventually(old.Resources).Should(ConsistOf(fresh.Resources()), "seed %d", seed)
	Eventually(old.Held).Should(Equal(fresh.Held()), "seed %d", seed) // the events follow
	old.stop()
	fresh.stop()
	p.cache.ClearSnapshot(node)
}
