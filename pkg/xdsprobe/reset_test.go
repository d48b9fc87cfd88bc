package xdsprobe

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/proxy"
)

var _ = Describe("a sidecar that is reset", func() {
	for _, variant := range []Variant{Delta, SotW} {
		It("loses its stream, and comes back with what it holds: "+string(variant), func() {
			server, store, sidecar, t := begin(variant)
			Eventually(sidecar.Updates).Should(HaveLen(4))
			held := sidecar.Held()

			sidecar.sidecar.Reset()
			Eventually(t.gone).Should(BeClosed())
			Eventually(sidecar.Ended).Should(HaveLen(1))
			Expect(sidecar.Ended()[0].Class).To(Equal(proxy.Lost))
			Expect(sidecar.Ended()[0].Responses).To(Equal(4))

			server.next()
			Eventually(sidecar.Opened).Should(HaveLen(2))
			Expect(sidecar.Held()).To(Equal(held))
			Expect(store.Counters().Reconnects.Load()).To(BeEquivalentTo(1))
		})
	}

	It("does nothing between two attempts", func() {
		New(Config{}, NewStore(), new(diary)).Reset()
	})
})
