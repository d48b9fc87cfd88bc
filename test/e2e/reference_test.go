//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("a rollout against the reference control plane", func() {
	const pods = 30
	It("converges and agrees with its counts, strict, over delta and state-of-the-world xDS side by side", acceptance, func() {
		delta, sotw := newPlace(), newPlace()
		sotw.state = delta.state // one user
		places := map[string]place{"delta": delta, "sotw": sotw}
		sessions := map[string]*gexec.Session{}
		for variant, where := range places {
			sessions[variant] = where.rollout(pods, longSettle, longSteady, "--control-plane", "reference", "--mode", "strict", "--xds", variant)
		}
		for variant, session := range sessions {
			Expect(wait(session)).To(Equal(exitDone), variant)
			run := printed(session)
			Expect(places[variant].recorded().Status).To(Equal(record.StatusCompleted), variant)
			Expect(run.Status).To(Equal(record.StatusCompleted), variant)
			Expect(run.Scenario.Mesh.Sidecars.XDS).To(BeEquivalentTo(variant))
			Expect(known(run.Pods.Converged)).To(Equal(pods), variant)
			Expect(known(run.Certificates.Issued)).To(BeEquivalentTo(pods), variant)
			Expect(known(run.XDS.Nacks)).To(BeZero(), variant)
			Expect(run.Environment.ControlPlane.Name).To(Equal("reference"))
			for _, w := range run.Warnings {
				Expect(w.Reason).NotTo(Equal(record.ReasonCountsDiffer), "%s: %s: %s", variant, w.About, w.Text)
			}
			own := known(run.Own).Steady
			Expect(own).To(HaveKeyWithValue("connected", float64(pods)), variant)
			Expect(own).To(HaveKeyWithValue("totalCertificates", float64(pods)), variant)
			for _, kind := range []string{"CDS", "EDS", "LDS", "RDS"} {
				Expect(own).To(HaveKeyWithValue("totalResponses"+kind, float64(run.XDS.Responses[kind])), variant)
			}
		}
		delta.expectNothingLeft()
	})

	It("follows probes of every kind to all whom they concern, and to no other", func() {
		const probes = 4
		where := newPlace()
		session := where.rollout(pods, "--control-plane", "reference", "--mode", "strict", "--probes", "4")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		for kind, l := range run.Latencies.Push {
			Expect(l.Lost).To(BeZero(), "%s", kind)
			Expect(l.Count).NotTo(BeZero(), "%s", kind)
		}
		Expect(known(run.Latencies.Push[record.PolicyChange]).Count).To(BeEquivalentTo(probes * pods / run.ServiceCount()))
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(Equal(record.ReasonStrays), "%s: %s", w.About, w.Text)
		}
	})
})
