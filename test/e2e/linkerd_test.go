//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("Linkerd", func() {
	It("is measured while its programs end, and changes are followed", func() {
		const pods = 20
		where := newPlace()
		session := where.rollout(pods, "--control-plane", "linkerd", "--services", "5", "--probes", "2",
			"--fault", "kill-control-plane@probe", "--fault", "restart-control-plane:linkerd-identity@steady", "--no-calibrate")
		Expect(wait(session)).To(Equal(exitDone))

		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Pods.Converged).To(HaveValue(Equal(pods)))
		Expect(run.Certificates.Failed).To(HaveValue(BeZero()))
		Expect(run.Latencies.Certificate.Count).To(BeEquivalentTo(pods))
		Expect(run.Spec.XDS).To(BeEmpty())
		Expect(run.XDS.Acks).To(BeNil())
		Expect(run.XDS.Responses).To(And(HaveKey("Profile"), HaveKey("Addresses")))
		Expect(run.Warnings).To(ContainElement(And(HaveField("About", "spec.xds"), HaveField("Reason", record.ReasonNotSupported))))

		By("the faults")
		Expect(run.ControlPlane.Probe.Restarts).To(HaveValue(Equal(1)))
		Expect(run.Faults).To(HaveLen(2))
		Expect(run.Faults[0]).To(And(HaveField("Name", "kill-control-plane"), HaveField("Reconnected", HaveValue(Equal(pods)))))

		By("the changes")
		for _, kind := range []record.ChangeKind{record.EndpointAdd, record.EndpointRemove, record.RouteChange} {
			Expect(run.Latencies.Push[kind]).NotTo(BeNil(), "%s", kind)
			Expect(run.Latencies.Push[kind].Count).NotTo(BeZero(), "%s", kind)
			Expect(run.Latencies.Push[kind].Lost).To(BeZero(), "%s", kind)
		}
		where.expectNothingLeft(nil)
	})
})
