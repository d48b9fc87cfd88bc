package xdsprobe

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/convergence"
)

// As Envoy 1.40.0 was seen to do, with Istio's agent, on istiod.
var _ = Describe("a listener that is gone", func() {
	begin := func(drain time.Duration) (*script, run, *talk) {
		server := startScript()
		sidecar := start(NewStore(), Config{Address: server.address, Drain: drain})
		t := server.next()
		t.expect("CDS node=test")
		t.answer(cds, "1")
		t.expect("LDS", "CDS nonce=1")
		t.answer(lds, "2", listener("a", manager("ra")), listener("b", manager("rb", "wasm")))
		t.expect("RDS +ra +rb", "ECDS +wasm", "LDS nonce=2")
		t.answer(rds, "3", route("ra", "x"), route("rb", "y"))
		t.expect("RDS nonce=3")
		t.answer(ecds, "4", extension("wasm"))
		t.expect("ECDS nonce=4")
		return server, sidecar, t
	}

	It("needs its routes until it is drained", func() {
		server, sidecar, t := begin(time.Hour)
		t.answer(lds, "5", "-b")
		t.expect("LDS nonce=5")
		t.answer(rds, "6", route("rb", "z"))
		t.expect("RDS nonce=6")
		Eventually(sidecar.Updates).Should(HaveLen(6))
		Expect(sidecar.Held()).To(Equal([]string{"ECDS wasm", "LDS a", "RDS ra", "RDS rb"}))
		Expect(sidecar.Content(rds, "rb").Members).To(Equal([]string{"z"}))
		Expect(sidecar.sidecar.Draining()).To(ConsistOf(convergence.Key{Type: convergence.RDS, Name: "rb"}, convergence.Key{Type: convergence.ECDS, Name: "wasm"}))

		By("coming again meanwhile")
		t.answer(lds, "7", listener("b", manager("rb")))
		t.expect("LDS nonce=7")
		Eventually(sidecar.sidecar.Draining).Should(ConsistOf(convergence.Key{Type: convergence.ECDS, Name: "wasm"}))
		t.answer(lds, "8", "-b")
		t.expect("LDS nonce=8")

		By("reconnecting meanwhile")
		t.finish(nil)
		server.next().expect("CDS node=test", "LDS ~a:2", "RDS +ra +rb ~ra:3 ~rb:6", "ECDS +wasm ~wasm:4")
	})

	It("gives them up then", func() {
		_, sidecar, t := begin(50 * time.Millisecond)
		t.answer(lds, "5", "-b")
		t.expect("LDS nonce=5", "RDS -rb", "ECDS -wasm")
		t.answer(rds, "6", route("ra", "z"))
		t.expect("RDS nonce=6")
		Eventually(sidecar.Held).Should(Equal([]string{"LDS a", "RDS ra"}))
		Expect(sidecar.sidecar.Draining()).To(BeEmpty())
	})
})
