//go:build e2e

package e2e

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

// The sources of what the mesh has are beside its objects.
var _ = Describe("a mesh of situations that people report", func() {
	It("converges: what refuses injection, ports of one number, a host of a Service and of ServiceEntries, applications without a proxy, proxies with settings of their own, quotas and gates", func() {
		where := newPlace()
		file := filepath.Join(filepath.Dir(where.state), "further.yaml")
		Expect(wait(where.start("capture", "--output-file", file, filepath.Join("testdata", "further.yaml")))).To(Equal(exitDone))
		run, again := replay(where, file, "further")
		Expect([]int{run.Pods.Requested, known(run.Pods.Converged), run.Mesh.Outside}).To(Equal([]int{5, 5, 3}), "two of cart and of payer, and direct; one that refuses, one of the cluster's own, one of gRPC")
		Expect(known(run.Phase(record.PhaseRollout)).EndedBy).To(Equal(record.EndedByConverged))
		Expect(run.Mesh.NotChecked).To(ContainElement(record.NotChecked{What: record.UncheckedEndpoints, Count: 3, Examples: []string{"pay/payer", "shop/bill", "shop/cart"}}))
		Expect(run.Mesh.NotChecked).To(ContainElement(record.NotChecked{What: record.UncheckedProxies, Count: 3, Examples: []string{"pay/direct", "pay/payer", "shop/cart"}}))
		Expect(run.Mesh.NotReproduced).To(ContainElement(HaveField("What", "gRPC without proxies")))
		Expect(text(again)).To(Equal(text(readMesh(file))))
	})
})
