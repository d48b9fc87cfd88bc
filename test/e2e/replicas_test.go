//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("two replicas of a control plane, one of which is killed", func() {
	It("serves all sidecars by the other", func() {
		const pods = 20
		where := newPlace()
		session := where.rollout(pods, longSettle, longSteady, "--replicas", "2", "--fault", "kill-replica@steady")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		where.expectNothingLeft()

		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(run.Environment.ControlPlane.Replicas).To(Equal(2))
		Expect(known(run.Pods.Converged)).To(Equal(pods))
		Expect(known(run.Replicas).Each).To(And(HaveLen(2), HaveKey("istiod-0"), HaveKey("istiod-1")))
		var streams int
		var own, cpu, memory float64
		for name, one := range known(run.Replicas).Each {
			streams += known(one.Streams.Steady)
			own += known(one.OwnStreams.Steady)
			cpu += known(known(one.Usage.Rollout).CPUSeconds)
			memory += known(known(known(one.Usage.Rollout).MemoryBytes).Peak)
			Expect(known(one.OwnStreams.Steady)).To(BeEquivalentTo(known(one.Streams.Steady)), name)
		}
		Expect(streams).To(Equal(pods))
		Expect(own).To(BeEquivalentTo(pods))
		together := known(run.ControlPlane.Rollout)
		Expect(known(together.CPUSeconds)).To(BeNumerically("~", cpu, 1e-6))
		Expect(known(known(together.MemoryBytes).Peak)).To(BeNumerically("<=", memory))
		Expect(known(known(run.Replicas).Balance.Steady).Streams).To(Equal(pods))

		fault := run.Faults[0]
		Expect(fault.Seconds).NotTo(BeNil())
		gone, left := fault.Replicas["istiod-0"], fault.Replicas["istiod-1"]
		Expect(*gone).To(And(HaveField("Serves", false), HaveField("After", 0)))
		Expect(*left).To(And(HaveField("Serves", true), HaveField("After", pods)))
		Expect(known(fault.Reconnected)).To(Equal(gone.Before))

		report := where.start("report", where.out, "-o", "wide")
		Expect(wait(report)).To(Equal(exitDone))
		Expect(report.Out).To(gbytes.Say("STREAMS TO REPLICAS"))
	})
})
