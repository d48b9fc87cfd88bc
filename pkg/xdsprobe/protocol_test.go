package xdsprobe

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/convergence"
)

var (
	cds  = convergence.CDS
	eds  = convergence.EDS
	lds  = convergence.LDS
	rds  = convergence.RDS
	ecds = convergence.ECDS
)

// begin takes a new sidecar through its first set: clusters a and b, listener l
// with routes r1 and r2. The nonces are 1 to 4.
func begin(variant Variant) (*script, *Store, run, *talk) {
	server, store := startScript(), NewStore()
	sidecar := start(store, Config{Address: server.address, Variant: variant})
	t := server.next()
	Expect(<-t.requests).To(Equal("CDS node=test"))
	t.answer(cds, "1", edsCluster("a", "", 1), edsCluster("b", "", 1))
	t.answer(eds, "2", assignment("a", endpoint("10.0.0.1", 80, 1)), assignment("b"))
	t.answer(lds, "3", listener("l", manager("r1"), manager("r2")))
	t.answer(rds, "4", route("r1", "x"), route("r2", "y"))
	return server, store, sidecar, t
}

// These conversations, except for what is stated with them, were recorded from Envoy
// 1.40.0 with go-control-plane's server.
var _ = Describe("a conversation", func() {
	It("has Envoy's order, delta", func() {
		server := startScript()
		sidecar := start(NewStore(), Config{Address: server.address, Variant: Delta})
		t := server.next()

		By("beginning")
		t.expect("CDS node=test")
		t.answer(cds, "1", edsCluster("a", "", 1), edsCluster("b", "", 1))
		t.expect("EDS +a +b", "CDS nonce=1")
		t.answer(eds, "2", assignment("a"), assignment("b"))
		t.expect("LDS", "EDS nonce=2")
		t.answer(lds, "3", listener("l", manager("r1"), manager("r2")))
		t.expect("RDS +r1 +r2", "LDS nonce=3")
		t.answer(rds, "4", route("r1", "x"), route("r2", "y"))
		t.expect("RDS nonce=4")

		By("adding a cluster, whose ACK waits until it is warm")
		t.answer(cds, "5", edsCluster("c", "", 1))
		t.expect("EDS +c")
		t.answer(eds, "6", assignment("c"))
		t.expect("CDS nonce=5", "EDS nonce=6")

		By("removing a cluster")
		t.answer(cds, "7", "-a")
		t.expect("EDS -a", "CDS nonce=7")
		t.answer(eds, "8", "-a")
		t.expect("EDS nonce=8")

		By("changing the routes of a listener")
		t.answer(lds, "9", listener("l", manager("r1"), manager("r3", "wasm")))
		t.expect("RDS +r3 -r2", "ECDS +wasm", "LDS nonce=9")
		t.answer(ecds, "10", extension("wasm"))
		t.expect("ECDS nonce=10")

		By("reconnecting")
		t.finish(nil)
		t = server.next()
		t.expect("CDS ~b:1 ~c:5 node=test", "EDS +b +c ~b:2 ~c:6", "LDS ~l:9", "RDS +r1 +r3 ~r1:4", "ECDS +wasm ~wasm:10")
		t.answer(rds, "1", route("r3", "x"))
		t.expect("RDS nonce=1")
		Eventually(sidecar.Held).Should(Equal([]string{"CDS b", "CDS c", "ECDS wasm", "EDS b", "EDS c", "LDS l", "RDS r1", "RDS r3"}))

		By("removing everything")
		t.answer(cds, "2", "-b", "-c")
		t.expect("EDS -b -c", "CDS nonce=2")
		t.answer(lds, "3", "-l")
		t.expect("RDS -r1 -r3", "ECDS -wasm", "LDS nonce=3")
		Eventually(sidecar.Held).Should(BeEmpty())
		t.finish(nil)
		server.next().expect("CDS node=test", "LDS")
	})

	It("has Envoy's order, state of the world", func() {
		server := startScript()
		sidecar := start(NewStore(), Config{Address: server.address, Variant: SotW})
		t := server.next()

		By("beginning")
		t.expect("CDS node=test")
		t.answer(cds, "1", edsCluster("a", "", 1), edsCluster("b", "", 1))
		t.expect("EDS =a =b", "CDS version=1 nonce=1")
		t.answer(eds, "2", assignment("a"), assignment("b"))
		t.expect("LDS", "EDS =a =b version=2 nonce=2")
		t.answer(lds, "3", listener("l", manager("r1"), manager("r2")))
		t.expect("RDS =r1 =r2", "LDS version=3 nonce=3")
		t.answer(rds, "4", route("r1", "x"), route("r2", "y"))
		t.expect("RDS =r1 =r2 version=4 nonce=4")

		By("changing a cluster and adding one")
		t.answer(cds, "5", edsCluster("a", "", 2), edsCluster("b", "", 1), edsCluster("c", "", 1))
		t.expect("EDS =a =b =c version=2 nonce=2")
		t.answer(eds, "6", assignment("a"), assignment("b"), assignment("c"))
		t.expect("CDS version=5 nonce=5", "EDS =a =b =c version=6 nonce=6")

		By("removing a cluster by not naming it")
		t.answer(cds, "7", edsCluster("b", "", 1), edsCluster("c", "", 1))
		t.expect("EDS =b =c version=6 nonce=6", "CDS version=7 nonce=7")

		By("sending a part of the assignments, which leaves the others alone")
		t.answer(eds, "8", assignment("c", endpoint("10.0.0.1", 80, 1)))
		t.expect("EDS =b =c version=8 nonce=8")
		Eventually(sidecar.Updates).Should(HaveLen(8))
		Expect(sidecar.Content(eds, "c").Endpoints).To(HaveLen(1))
		Expect(sidecar.Held()).To(Equal([]string{"CDS b", "CDS c", "EDS b", "EDS c", "LDS l", "RDS r1", "RDS r2"}))

		By("reconnecting")
		t.finish(nil)
		t = server.next()
		t.expect("CDS version=7 node=test", "EDS =b =c version=8", "LDS version=3", "RDS =r1 =r2 version=4")

		By("removing everything")
		t.answer(lds, "1")
		t.expect("RDS version=4", "LDS version=1 nonce=1")
		t.answer(cds, "2")
		t.expect("EDS version=8", "CDS version=2 nonce=2")
		Eventually(sidecar.Held).Should(BeEmpty())
	})

	DescribeTable("asks for listeners at once where no cluster needs endpoints", func(variant Variant, ack string) {
		server := startScript()
		start(NewStore(), Config{Address: server.address, Variant: variant})
		t := server.next()
		t.expect("CDS node=test")
		t.answer(cds, "1", staticCluster("a"))
		t.expect("LDS", ack)
	}, Entry("delta", Delta, "CDS nonce=1"), Entry("state of the world", SotW, "CDS version=1 nonce=1"))

	It("covers clusters that wait with one ACK in the state of the world", func() {
		_, store, sidecar, t := begin(SotW)
		Eventually(sidecar.Updates).Should(HaveLen(4))
		drain(t)
		t.answer(cds, "5", edsCluster("a", "", 1), edsCluster("c", "", 1))
		t.answer(cds, "6", edsCluster("a", "", 1), edsCluster("c", "", 1), edsCluster("d", "", 1))
		t.expect("EDS =a =c version=2 nonce=2", "EDS =a =c =d version=2 nonce=2")
		Expect(sidecar.Updates()).To(HaveLen(4))
		t.answer(eds, "7", assignment("c"), assignment("d"))
		t.expect("CDS version=6 nonce=6", "EDS =a =c =d version=7 nonce=7")
		Eventually(sidecar.Updates).Should(HaveLen(7))
		Expect(store.Counters().Acks.Load()).To(BeEquivalentTo(7))
	})

	It("reports an assignment that went and came while clusters waited", func() {
		_, _, sidecar, t := begin(Delta)
		Eventually(sidecar.Updates).Should(HaveLen(4))
		t.answer(cds, "5", edsCluster("c", "", 1), "-a")
		t.answer(cds, "6", edsCluster("a", "", 1))
		t.answer(eds, "7", assignment("a"))
		Eventually(sidecar.Updates).Should(HaveLen(5))
		t.answer(eds, "8", assignment("c"))
		Eventually(sidecar.Updates).Should(HaveLen(8))
		Expect(sidecar.Held()).To(ContainElements("EDS a", "EDS b", "EDS c"))
	})

	It("gives up on an assignment when its cluster does", func() {
		server := startScript()
		sidecar := start(NewStore(), Config{Address: server.address})
		t := server.next()
		t.expect("CDS node=test")
		impatient := edsCluster("a", "", 1)
		impatient.EdsClusterConfig.EdsConfig.InitialFetchTimeout.Nanos = 1e6
		t.answer(cds, "1", impatient)
		t.expect("EDS +a", "CDS nonce=1", "LDS")

		By("taking it all the same when it comes")
		t.answer(eds, "2", assignment("a"))
		t.expect("EDS nonce=2")
		Eventually(sidecar.Held).Should(Equal([]string{"CDS a", "EDS a"}))
	})

	It("gives up on the first clusters when its bootstrap does", func() {
		server := startScript()
		sidecar := start(storeWithTimeout(time.Millisecond), Config{Address: server.address, Variant: SotW})
		t := server.next()
		t.expect("CDS node=test", "LDS")

		By("taking them all the same when they come")
		t.answer(lds, "1", listener("l"))
		t.expect("LDS version=1 nonce=1")
		Eventually(sidecar.Updates).Should(ConsistOf(HaveField("Complete", true)))
		t.answer(cds, "2", edsCluster("a", "", 1))
		t.expect("EDS =a")
		t.answer(eds, "3", assignment("a"))
		Eventually(sidecar.Held).Should(Equal([]string{"CDS a", "EDS a", "LDS l"}))
	})

	It("waits for the assignment of a cluster that came just before its bootstrap would have given up", func() {
		server := startScript()
		start(storeWithTimeout(time.Hour), Config{Address: server.address, Variant: SotW})
		t := server.next()
		t.expect("CDS node=test")
		impatient := edsCluster("a", "", 1)
		impatient.EdsClusterConfig.EdsConfig.InitialFetchTimeout.Nanos = 1e6
		t.answer(cds, "1", impatient)
		t.expect("EDS =a", "CDS version=1 nonce=1", "LDS") // after its own limit, not that of the bootstrap
	})

	DescribeTable("keeps what two parents name until neither does", func(variant Variant) {
		server := startScript()
		sidecar := start(NewStore(), Config{Address: server.address, Variant: variant})
		t := server.next()
		one, other := edsCluster("one", "shared", 1), edsCluster("other", "shared", 1)
		t.answer(cds, "1", one, other)
		t.answer(eds, "2", assignment("shared"))
		t.answer(lds, "3", listener("one", manager("80", "wasm")), listener("other", manager("80", "wasm")))
		t.answer(rds, "4", route("80", "x"))
		t.answer(ecds, "5", extension("wasm"))
		children := []string{"ECDS wasm", "EDS shared", "RDS 80"}
		Eventually(sidecar.Held).Should(ContainElements(children))

		if variant == Delta {
			t.answer(cds, "6", "-one")
			t.answer(lds, "7", "-one")
		} else {
			t.answer(cds, "6", other)
			t.answer(lds, "7", listener("other", manager("80", "wasm")))
		}
		Eventually(sidecar.Held).ShouldNot(ContainElement(ContainSubstring("one")))
		Expect(sidecar.Held()).To(ContainElements(children))

		By("the other naming something else")
		t.answer(cds, "8", edsCluster("other", "own", 1))
		t.answer(lds, "9", listener("other", manager("81")))
		t.answer(eds, "10", assignment("own"))
		t.answer(rds, "11", route("81", "x"))
		Eventually(sidecar.Held).Should(Equal([]string{"CDS other", "EDS own", "LDS other", "RDS 81"}))
	}, Entry("delta", Delta), Entry("state of the world", SotW))
})

// drain forgets the requests of begin, the last of which acknowledges the routes.
func drain(t *talk) {
	GinkgoHelper()
	var got string
	for !strings.HasPrefix(got, "RDS") || !strings.HasSuffix(got, "nonce=4") {
		Eventually(t.requests).Should(Receive(&got))
	}
	Consistently(t.requests, "5ms").ShouldNot(Receive())
}

// storeWithTimeout returns the store of sidecars that wait for so long for the first clusters.
func storeWithTimeout(d time.Duration) *Store {
	all := EnvoyTypesWithSecrets()
	all[0].FetchTimeout = d
	types, err := NewTypes(all)
	Expect(err).NotTo(HaveOccurred())
	return NewStoreOf(types)
}
