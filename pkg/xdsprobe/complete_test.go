package xdsprobe

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// completes are, of each update, whether it made the sidecar complete.
func completes(r run) (all []bool) {
	for _, u := range r.Updates() {
		all = append(all, u.Complete)
	}
	return all
}

var _ = Describe("being complete", func() {
	for _, variant := range []Variant{Delta, SotW} {
		It("is when all that was asked for was answered and acknowledged, "+string(variant), func() {
			_, _, sidecar, t := begin(variant)
			Eventually(func() []bool { return completes(sidecar) }).Should(Equal([]bool{false, false, false, true}))

			By("adding a cluster, whose load assignment is asked for")
			t.answer(cds, "5", edsCluster("a", "", 1), edsCluster("b", "", 1), edsCluster("c", "", 1))
			Consistently(func() []bool { return completes(sidecar) }, "50ms").Should(HaveLen(4))
			t.answer(eds, "6", assignment("c"))
			Eventually(func() []bool { return completes(sidecar) }).Should(HaveLen(6))
			Expect(completes(sidecar)[5]).To(BeTrue())
		})

		It("takes an answer of each wildcard, if an empty one, "+string(variant), func() {
			server := startScript()
			sidecar := start(NewStore(), Config{Address: server.address, Variant: variant})
			t := server.next()
			t.answer(cds, "1")
			t.answer(lds, "2")
			Eventually(func() []bool { return completes(sidecar) }).Should(Equal([]bool{false, true}))
		})
	}
})
