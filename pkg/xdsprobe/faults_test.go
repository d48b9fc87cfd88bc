package xdsprobe

import (
	"crypto/tls"
	"runtime"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

var _ = Describe("a server at fault", func() {
	for _, variant := range []Variant{Delta, SotW} {
		Context(string(variant), func() {
			DescribeTable("has a response rejected, and the next one taken", func(bad ...any) {
				_, store, sidecar, t := begin(variant)
				Eventually(sidecar.Updates).Should(HaveLen(4))
				held := sidecar.Held()
				drain(t)

				t.answer(rds, "5", bad...)
				Eventually(t.requests).Should(Receive(And(ContainSubstring("nonce=5"), ContainSubstring("rejects"), Not(ContainSubstring("version=5")))))
				Eventually(sidecar.Updates).Should(HaveLen(5)) // which are reported when the request is on its way
				Expect(sidecar.Held()).To(Equal(held))
				Expect(sidecar.Content(rds, "r1").Members).To(Equal([]string{"x"}))
				rejected := sidecar.Updates()[4]
				Expect(rejected.Rejected).To(HaveOccurred())
				Expect(rejected.Set).To(BeEmpty())
				Expect(store.Counters().Nacks.Load()).To(BeEquivalentTo(1))

				t.answer(rds, "6", route("r1", "z"))
				Eventually(t.requests).Should(Receive(And(ContainSubstring("nonce=6"), Not(ContainSubstring("rejects")))))
				Eventually(func() []string { return sidecar.Content(rds, "r1").Members }).Should(Equal([]string{"z"}))
			},
				Entry("a resource that is no message", route("r1", "y"), &anypb.Any{TypeUrl: typeURLs[rds], Value: []byte{0x0a, 0x7f}}),
				Entry("a resource of another type", route("r1", "y"), pack(listener("l"))),
				Entry("a resource without type and content", &discoveryv3.Resource{Name: "r1", Version: "new"}),
				Entry("a resource named twice", route("r1", "y"), route("r1", "z")),
				Entry("a resource without a name", &anypb.Any{TypeUrl: typeURLs[rds]}, &discoveryv3.Resource{Resource: pack(route(""))}),
			)

			It("breaks in mid-set, and the set is finished on the next stream", func() {
				server, store := startScript(), NewStore()
				sidecar := start(store, Config{Address: server.address, Variant: variant})
				t := server.next()
				t.answer(cds, "1", edsCluster("a", "", 1), edsCluster("b", "", 1))
				if variant == Delta { // a part of them
					t.answer(eds, "2", assignment("a"))
					Eventually(sidecar.Held).Should(HaveLen(3))
				} else {
					Eventually(sidecar.Held).Should(HaveLen(2))
				}
				server.cut()
				t = server.next()
				if variant == Delta {
					t.expect("CDS ~a:1 ~b:1 node=test", "EDS +a +b ~a:2")
				} else {
					t.expect("CDS version=1 node=test", "EDS =a =b")
				}
				t.answer(eds, "1", assignment("a"), assignment("b"))
				t.answer(lds, "2")
				Eventually(sidecar.Held).Should(Equal([]string{"CDS a", "CDS b", "EDS a", "EDS b"}))
				ended := sidecar.Ended()
				Expect(ended).To(HaveLen(1))
				Expect(ended[0].Class).To(Equal(proxy.Lost))
				Expect(ended[0].Responses).To(BeNumerically(">", 0))
				Expect(store.Counters().Reconnects.Load()).To(BeEquivalentTo(1))
				Expect(store.Counters().Failures.Load()).To(BeEquivalentTo(1))
				Expect(store.Counters().Refusals.Load()).To(BeZero())
			})

			It("loses an ACK that waited, which the next stream makes good", func() {
				server, _, sidecar, t := begin(variant)
				Eventually(sidecar.Updates).Should(HaveLen(4))
				drain(t)
				t.answer(cds, "5", edsCluster("a", "", 1), edsCluster("b", "", 1), edsCluster("c", "", 1))
				Eventually(t.requests).Should(Receive(HavePrefix("EDS")))
				Expect(sidecar.Updates()).To(HaveLen(4))
				before := time.Now()
				t.finish(status.Error(codes.Unavailable, "draining"))
				server.next()
				Eventually(sidecar.Updates).Should(HaveLen(5))
				late := sidecar.Updates()[4]
				Expect(late.Set).To(ConsistOf(HaveField("Key", convergence.Key{Type: cds, Name: "c"})))
				Expect(late.AckedAt).To(BeTemporally(">", before))
				Expect(sidecar.Held()).To(ContainElement("CDS c"))
			})

			It("keeps a sidecar from reading what others wait for, which is counted", func() {
				server := startScript()
				busy := start(NewStore(), Config{Address: server.address, Variant: variant})
				first := server.next()
				sidecar := start(NewStore(), Config{Address: server.address, Variant: variant})
				second := server.next()
				has, wants := busy.sidecar.store.Counters(), sidecar.sidecar.store.Counters()

				// Its observer does not return from the answer, so it keeps what it was sent.
				// The opened stream is reported before: it must not wait for the lock.
				Eventually(busy.Opened).Should(HaveLen(1))
				busy.mu.Lock()
				release := sync.OnceFunc(busy.mu.Unlock)
				DeferCleanup(release)
				large := staticCluster("large")
				large.AltStatName = strings.Repeat("x", 5<<20)
				first.answer(cds, "1", large)
				Eventually(received(has, cds)).Should(BeEquivalentTo(1))

				before := time.Now()
				large.AltStatName = strings.Repeat("x", 20<<10)
				second.answer(cds, "1", large)
				Eventually(stacks).Should(ContainSubstring("onecall.(*Conn).take"))
				Expect(received(wants, cds)()).To(BeZero())
				release()
				Eventually(received(wants, cds)).Should(BeEquivalentTo(1))

				Expect(wants.Waits.Load()).To(BeEquivalentTo(1))
				Expect(wants.LongestWait.Load()).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Since(before))))
				Expect(wants.Waited.Load()).To(Equal(wants.LongestWait.Load()))
				Expect(has.Waits.Load()).To(BeZero())
			})

			It("repeats itself, which is acknowledged and counted as wasted", func() {
				_, store, sidecar, t := begin(variant)
				Eventually(sidecar.Updates).Should(HaveLen(4))
				drain(t)
				for range 2 {
					t.answer(eds, "2", assignment("a", endpoint("10.0.0.1", 80, 1)), assignment("b"))
					Eventually(t.requests).Should(Receive(ContainSubstring("nonce=2")))
				}
				Eventually(sidecar.Updates).Should(HaveLen(6))
				Expect(store.Counters().Wasted.Load()).To(BeEquivalentTo(2))
				Expect(received(store.Counters(), eds)()).To(BeEquivalentTo(3))
				Expect(sidecar.Updates()[5].Wasted).To(BeTrue())
				Expect(sidecar.Updates()[5].Set).To(BeEmpty())
			})

			It("sends what was not asked for, which is dropped", func() {
				server := startScript()
				sidecar := start(NewStore(), Config{Address: server.address, Variant: variant})
				t := server.next()
				t.answer(lds, "1", listener("l"))
				t.answer(cds, "2", edsCluster("a", "", 1))
				t.answer(eds, "3", assignment("a"), assignment("other"))
				Eventually(sidecar.Held).Should(Equal([]string{"CDS a", "EDS a"}))
				Eventually(sidecar.Updates).Should(HaveLen(2))
			})

			It("answers with a service that has no endpoints", func() {
				_, _, sidecar, _ := begin(variant)
				Eventually(sidecar.Updates).Should(HaveLen(4))
				Expect(sidecar.Content(eds, "b").Endpoints).To(BeEmpty())
				Expect(sidecar.Content(eds, "a").Endpoints).To(HaveLen(1))
			})

			DescribeTable("refuses, which is distinguished from other failures", func(code codes.Code, class proxy.Class) {
				server, store := startScript(), NewStore()
				sidecar := start(store, Config{Address: server.address, Variant: variant})
				for range 3 {
					t := server.next()
					Expect(<-t.requests).To(Equal("CDS node=test"))
					t.finish(status.Error(code, "no"))
				}
				t := server.next()
				t.answer(cds, "1")
				Eventually(sidecar.Updates).Should(HaveLen(1))

				ended := sidecar.Ended()
				Expect(ended).To(HaveLen(3))
				for i, e := range ended {
					Expect(e.Class).To(Equal(class))
					Expect(e.Attempt).To(Equal(i + 1))
					Expect(status.Code(e.Err)).To(Equal(code))
					Expect(e.Connected).To(BeTemporally(">", e.Dialed))
				}
				c := store.Counters()
				Expect(c.Attempts.Load()).To(BeEquivalentTo(4))
				Expect(c.Refusals.Load() + c.Failures.Load()).To(BeEquivalentTo(3))
				if class == proxy.Refused {
					Expect(c.Refusals.Load()).To(BeEquivalentTo(3))
				}
				Expect(c.Reconnects.Load()).To(BeZero()) // never served, so never lost
				Expect(c.Connected.Load()).To(BeEquivalentTo(1))
			},
				Entry("by its limiter", codes.ResourceExhausted, proxy.Refused),
				Entry("while it is not ready", codes.Unavailable, proxy.Refused),
				Entry("for want of a token", codes.Unauthenticated, proxy.Unauthorized),
				Entry("by closing", codes.OK, proxy.Lost),
			)
		})
	}

	It("is not there", func() {
		address, err := process.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		store := NewStore()
		sidecar := start(store, Config{Address: address})
		Eventually(func() int { return len(sidecar.Ended()) }).Should(BeNumerically(">", 3))
		Expect(sidecar.Ended()[0].Class).To(Equal(proxy.Unreachable))
		Expect(sidecar.Ended()[0].Connected).To(BeZero())
		Expect(sidecar.Opened()).To(BeEmpty())
	})

	It("repeats what a delta sidecar holds with a heartbeat", func() {
		_, _, sidecar, t := begin(Delta)
		Eventually(sidecar.Updates).Should(HaveLen(4))
		drain(t)
		t.answer(rds, "5", &discoveryv3.Resource{Name: "r1", Version: "4"})
		t.expect("RDS nonce=5")
		Eventually(sidecar.Updates).Should(HaveLen(5))
		Expect(sidecar.Content(rds, "r1").Members).To(Equal([]string{"x"}))
	})
})

// stacks states where all goroutines are.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

var _ = Describe("a configuration", func() {
	DescribeTable("that cannot be ends Run", func(c Config, reason string) {
		s := New(c, NewStore(), nil)
		Expect(s.Run(GinkgoT().Context())).To(MatchError(ContainSubstring(reason)))
	},
		Entry("an unknown variant", Config{Variant: "rest"}, "want delta or sotw"),
		Entry("roots that are none", Config{RootPEM: []byte("x")}, "no certificate"),
		Entry("metadata that is no JSON", Config{ID: "a", Metadata: map[string]any{"x": make(chan int)}}, "metadata of a"),
		Entry("a client certificate without TLS", Config{Certificate: func() (*tls.Certificate, error) { return nil, nil }}, "needs TLS"),
	)
})
