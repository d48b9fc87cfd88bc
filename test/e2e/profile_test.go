//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("a mesh with a profile", func() {
	It("converges to exactly what its parts call for, and loses nothing", func() {
		session := newPlace().rollout(20, longSettle, longSteady, "--services", "6", "--profile", "typical", "--set", "mesh.parts.virtualServices=9", "--set", "mesh.parts.serviceEntries=2",
			"--set", "mesh.parts.tcpServices=2", "--set", "mesh.parts.headlessServices=1", "--set", "mesh.parts.externalNames=2", "--set", "mesh.parts.gateways=1", "--set", "mesh.parts.outsidePods=10", "--probes", "2", "--set", "mesh.parts.gracePeriod=2s", "--churn", "1/s", "--calibrate=false")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Scenario.Mesh.Profile).To(Equal("typical"))
		Expect(run.Parts).To(And(HaveField("VirtualServices", HaveValue(Equal(9))), HaveField("Zones", HaveValue(Equal(3))), HaveField("OutsidePods", HaveValue(Equal(10)))))
		Expect(run.XDS.Nacks).To(HaveValue(BeZero()))
		Expect(known(run.Churn).Replaced).To(HaveValue(BeNumerically(">", 0)), "pods that are deleted run on, and the mesh is as it was")
		Expect(known(run.Churn).Seconds).NotTo(BeNil())
		for kind, push := range run.Latencies.Push {
			Expect(push.Lost).To(BeZero(), "%s", kind)
			Expect(push.Count).NotTo(BeZero(), "%s", kind)
		}
		for _, w := range run.Warnings {
			Expect(w.Reason).NotTo(BeElementOf(record.ReasonUnexpectedResources, record.ReasonMissingResources, record.ReasonStrays), w.Sentence())
		}
	})
})
