package xdsprobe

import (
	"context"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"scaler.mesh/scaler/pkg/convergence"
)

// Types of which nothing is known here but their URLs: those of Istio's ztunnel.
const (
	addressURL       = "type.googleapis.com/istio.workload.Address"
	authorizationURL = "type.googleapis.com/istio.security.Authorization"
)

var _ = Describe("types that are not Envoy's", func() {
	It("are subscribed to as wildcards, delta", func() {
		addresses := cache.NewLinearCache(addressURL, cache.WithInitialResources(map[string]types.Resource{
			"Kubernetes//Pod/one/a": wrapperspb.String("Kubernetes//Pod/one/a"), "Kubernetes//Pod/one/b": wrapperspb.String("Kubernetes//Pod/one/b"),
		}))
		authorizations := cache.NewLinearCache(authorizationURL, cache.WithInitialResources(map[string]types.Resource{"one/allow": wrapperspb.String("one/allow")}))
		all := &cache.MuxCache{
			Classify:      func(r *cache.Request) string { return r.GetTypeUrl() },
			ClassifyDelta: func(r *cache.DeltaRequest) string { return r.GetTypeUrl() },
			Caches:        map[string]cache.Cache{addressURL: addresses, authorizationURL: authorizations},
		}
		ctx, cancel := context.WithCancel(context.Background())
		listener, _ := cuttable()
		g := grpc.NewServer()
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, all, nil))
		done := make(chan error, 1)
		go func() { done <- g.Serve(listener) }()
		DeferCleanup(func() {
			cancel()
			g.Stop()
			Eventually(done).Should(Receive())
		})

		ztunnel, err := NewTypes([]ResourceType{{Name: convergence.TypeOf("Address"), URL: addressURL}, {Name: convergence.TypeOf("Authorization"), URL: authorizationURL}})
		Expect(err).NotTo(HaveOccurred())
		store := NewStoreOf(ztunnel)
		sidecar := start(store, Config{Address: listener.Addr().String()})
		Eventually(sidecar.Held).Should(Equal([]string{"Address Kubernetes//Pod/one/a", "Address Kubernetes//Pod/one/b", "Authorization one/allow"}))
		Eventually(func() bool {
			updates := sidecar.Updates()
			return updates[len(updates)-1].Complete
		}).Should(BeTrue())

		Expect(addresses.UpdateResource("Kubernetes//Pod/one/c", wrapperspb.String("Kubernetes//Pod/one/c"))).To(Succeed())
		Expect(authorizations.DeleteResource("one/allow")).To(Succeed())
		Eventually(sidecar.Held).Should(Equal([]string{"Address Kubernetes//Pod/one/a", "Address Kubernetes//Pod/one/b", "Address Kubernetes//Pod/one/c"}))
		Expect(store.Counters().Now().Subscribed()).To(HaveExactElements(
			HaveField("Type", convergence.TypeOf("Address")), HaveField("Type", convergence.TypeOf("Authorization"))))
		Expect(received(store.Counters(), convergence.TypeOf("Address"))()).To(BeNumerically(">=", 2))
		Expect(sidecar.sidecar.Holdings()).To(HaveKeyWithValue(convergence.TypeOf("Address"), HaveField("Resources", 3)))
		Expect(store.Counters().Nacks.Load()).To(BeZero())
	})
})
