package xdsprobe

import (
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

var _ = Describe("what a sidecar holds", func() {
	It("is counted by type, in resources and bytes, as it comes and goes", func() {
		p := startPlane()
		a, b, loadA, l := edsCluster("a", "", 1), staticCluster("b"), assignment("a"), listener("l")
		p.serve("test", mesh{
			resource.ClusterType: {a, b}, resource.EndpointType: {loadA}, resource.ListenerType: {l},
		})
		sidecar := start(NewStore(), Config{Address: p.address}).sidecar
		size := func(all ...types.Resource) (bytes int64) {
			for _, m := range all {
				bytes += int64(proto.Size(m))
			}
			return bytes
		}
		Eventually(sidecar.Holdings).Should(Equal(map[convergence.Type]proxy.Holding{
			convergence.CDS: {Resources: 2, Bytes: size(a, b)}, convergence.EDS: {Resources: 1, Bytes: size(loadA)}, convergence.LDS: {Resources: 1, Bytes: size(l)},
		}))
		Expect(sidecar.Held()).To(HaveLen(4))

		p.serve("test", mesh{resource.ClusterType: {b}})
		Eventually(sidecar.Holdings).Should(Equal(map[convergence.Type]proxy.Holding{convergence.CDS: {Resources: 1, Bytes: size(b)}}))
	})

	It("is known at once when something was given up", func() {
		s := New(Config{}, NewStore(), nil)
		s.state.tables[kindOf(convergence.RDS).index] = table{names: []string{"r"}, held: []*Resource{{Resource: proxy.Resource{Key: convergence.Key{Type: convergence.RDS, Name: "r"}, Size: 5}}}}
		s.giveUpDrained()
		Expect(s.Held()).To(BeEmpty())
	})
})
