package server

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/xdsprobe"
)

// request returns a certificate request in PEM for these URIs.
func request(uris ...string) []byte {
	GinkgoHelper()
	key, err := newKey()
	Expect(err).NotTo(HaveOccurred())
	return requestWith(key, uris...)
}

// requestWith returns a certificate request with a given key.
func requestWith(key any, uris ...string) []byte {
	GinkgoHelper()
	template := &x509.CertificateRequest{}
	for _, u := range uris {
		uri, err := url.Parse(u)
		Expect(err).NotTo(HaveOccurred())
		template.URIs = append(template.URIs, uri)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	Expect(err).NotTo(HaveOccurred())
	return encode("CERTIFICATE REQUEST", der)
}

var _ = Describe("faults", func() {
	for _, variant := range []xdsprobe.Variant{xdsprobe.Delta, xdsprobe.SotW} {
		It("hold back every push for the set time, and no first configuration, over "+string(variant), func() {
			const delay = 300 * time.Millisecond
			p := startPlane(Options{Faults: Faults{Delay: delay}}, "a")
			store := xdsprobe.NewStore()
			var all []*sidecar
			for i := range 5 {
				all = append(all, startSidecar(store, i, "a", xdsprobe.Config{Address: p.plain, Variant: variant}))
			}
			for _, s := range all {
				Eventually(s.Held).Should(ConsistOf(ofAll("a")))
			}
			for n := range 3 {
				changed := time.Now()
				p.list("a", fmt.Sprintf("10.0.0.%d", 2+n))
				for _, s := range all {
					Eventually(func() []string { return s.Endpoints("a") }).Should(HaveExactElements(fmt.Sprintf("10.0.0.%d", 2+n)))
					Expect(s.received("a").Sub(changed)).To(BeNumerically(">=", delay))
				}
			}
			// 5 sidecars and 3 changes; what came first was not among them.
			Expect(p.metrics(
				"# HELP reference_xds_delayed_pushes_total Pushes that were held back because of --delay, by resource type.",
				"# TYPE reference_xds_delayed_pushes_total counter",
				`reference_xds_delayed_pushes_total{type="CDS"} 0`,
				`reference_xds_delayed_pushes_total{type="EDS"} 15`,
				`reference_xds_delayed_pushes_total{type="LDS"} 0`,
				`reference_xds_delayed_pushes_total{type="RDS"} 0`)).To(Succeed())
		})

		It("drop exactly the pushes that the seed says, over "+string(variant), func() {
			const sidecars, changes = 40, 5
			set := Faults{Drop: 0.25, Seed: 7}
			// A service that comes later would be a push, and might be dropped.
			p := startPlane(Options{Faults: set}, "a")
			store := xdsprobe.NewStore()
			var all []*sidecar
			for i := range sidecars {
				all = append(all, startSidecar(store, i, "a", xdsprobe.Config{Address: p.plain, Variant: variant}))
			}
			for _, s := range all { // first configuration is not touched
				Eventually(s.Held).Should(ConsistOf(ofAll("a")))
			}
			foreseen, drops := newFaults(set), 0
			for n := range changes {
				address := fmt.Sprintf("10.0.0.%d", n)
				p.list("a", address)
				var dropped []*sidecar
				for _, s := range all {
					if foreseen.drops(&corev3.Node{Id: s.id}) {
						dropped = append(dropped, s)
					} else {
						Eventually(func() []string { return s.Endpoints("a") }).Should(HaveExactElements(address), "%s, change %d", s.id, n)
					}
				}
				drops += len(dropped)
				// The next change must not come before all pushes of this one: two would be one.
				Eventually(func() error {
					return p.metrics(
						"# HELP reference_xds_dropped_pushes_total Pushes that were not sent because of --drop, by resource type.",
						"# TYPE reference_xds_dropped_pushes_total counter",
						`reference_xds_dropped_pushes_total{type="CDS"} 0`,
						fmt.Sprintf(`reference_xds_dropped_pushes_total{type="EDS"} %d`, drops),
						`reference_xds_dropped_pushes_total{type="LDS"} 0`,
						`reference_xds_dropped_pushes_total{type="RDS"} 0`)
				}).Should(Succeed())
				Consistently(func(g Gomega) {
					for _, s := range dropped {
						g.Expect(s.Endpoints("a")).NotTo(ContainElement(address), "%s, change %d", s.id, n)
					}
				}, 20*time.Millisecond).Should(Succeed())
			}
			Expect(drops).To(BeNumerically("~", sidecars*changes/4, 20))
		})

		It("leave out what was dropped until it changes again, even when the sidecar asks for more, over "+string(variant), func() {
			p := startPlane(Options{})
			p.serve("a")
			p.list("a", "10.0.0.1")
			s := startSidecar(xdsprobe.NewStore(), 1, "a", xdsprobe.Config{Address: p.plain, Variant: variant})
			Eventually(func() []string { return s.Endpoints("a") }).Should(HaveExactElements("10.0.0.1"))

			Expect(p.call(http.MethodPut, "faults", `{"drop": 1}`)).To(Succeed())
			p.list("a", "10.0.0.2")
			Eventually(func() error {
				return p.metrics(
					"# HELP reference_xds_dropped_pushes_total Pushes that were not sent because of --drop, by resource type.",
					"# TYPE reference_xds_dropped_pushes_total counter",
					`reference_xds_dropped_pushes_total{type="CDS"} 0`,
					`reference_xds_dropped_pushes_total{type="EDS"} 1`,
					`reference_xds_dropped_pushes_total{type="LDS"} 0`,
					`reference_xds_dropped_pushes_total{type="RDS"} 0`)
			}).Should(Succeed())
			Expect(p.call(http.MethodPut, "faults", `{}`)).To(Succeed())

			p.serve("b") // the sidecar now asks for the endpoints of b too
			Eventually(s.Held).Should(ConsistOf(ofAll("a", "b")))
			Expect(s.Endpoints("a")).To(HaveExactElements("10.0.0.1"))
			p.list("a", "10.0.0.3")
			Eventually(func() []string { return s.Endpoints("a") }).Should(HaveExactElements("10.0.0.3"))
		})
	}
})
