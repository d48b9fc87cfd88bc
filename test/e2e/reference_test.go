//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("a rollout against the reference control plane", func() {
	const pods = 30
	for _, variant := range []string{"delta", "sotw"} {
		It("converges and agrees with its counts, strict and over "+variant, func() {
			where := newPlace()
			session := where.rollout(pods, longSettle, longSteady, "--control-plane", "reference", "--mode", "strict", "--xds", variant)
			Expect(wait(session)).To(Equal(exitDone))
			run := printed(session)
			Expect(run.Status).To(Equal(record.StatusCompleted))
			Expect(*run.Pods.Converged).To(Equal(pods))
			Expect(*run.Certificates.Issued).To(BeEquivalentTo(pods))
			Expect(*run.XDS.Nacks).To(BeZero())
			Expect(run.Environment.ControlPlane.Name).To(Equal("reference"))
			for _, w := range run.Warnings {
				Expect(w.Reason).NotTo(Equal(record.ReasonCountsDiffer), "%s: %s", w.About, w.Text)
			}
			own := run.Own.Steady
			Expect(own).To(HaveKeyWithValue("connected", float64(pods)))
			Expect(own).To(HaveKeyWithValue("totalCertificates", float64(pods)))
			for _, kind := range []string{"CDS", "EDS", "LDS", "RDS"} {
				Expect(own).To(HaveKeyWithValue("totalResponses"+kind, float64(run.XDS.Responses[kind])))
			}
		})
	}

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
		Expect(run.Latencies.Push[record.PolicyChange].Count).To(BeEquivalentTo(probes * pods / run.ServiceCount()))
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(Equal(record.ReasonStrays), "%s: %s", w.About, w.Text)
		}
	})
})
