//go:build e2e

package e2e

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("Linkerd", func() {
	It("is measured while its programs end, and changes are followed", func() {
		const pods = 30
		where := newPlace()
		session := where.rollout(pods, "--control-plane", "linkerd", "--services", "5", "--probes", "2",
			"--fault", "kill-control-plane@probe", "--fault", "restart-control-plane:linkerd-identity@steady",
			"--fault", "restart-control-plane:linkerd-proxy-injector@steady", "--no-calibrate")
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

		By("the injector")
		Expect(run.Own.Rollout).To(HaveKeyWithValue("injectedPods", BeEquivalentTo(pods)))
		Expect(run.Cluster["linkerd-proxy-injector"].Rollout.Cores.Mean).To(HaveValue(BeNumerically(">", 0)))

		By("the faults")
		Expect(run.ControlPlane.Probe.Restarts).To(HaveValue(Equal(1)))
		Expect(run.Faults).To(HaveLen(3))
		Expect(run.Faults[0]).To(And(HaveField("Name", "kill-control-plane"), HaveField("Reconnected", HaveValue(Equal(pods)))))

		By("the changes")
		expectFollowed(run, record.EndpointAdd, record.EndpointRemove, record.RouteChange)
		By("the record, which has no keys")
		Expect(filepath.Glob(filepath.Join(where.out, "*", "logs", "*", "*"))).To(BeEmpty())
		where.expectNothingLeft(nil)
	})
})
