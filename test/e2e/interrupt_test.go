//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("ctrl-C", func() {
	DescribeTable("leaves a readable record and nothing else",
		// lasting are the flags that keep a run in the phase until it is interrupted there.
		func(phase record.PhaseName, ended string, lasting ...string) {
			where := newPlace()
			session := where.rollout(20, append([]string{"--no-calibrate"}, lasting...)...)
			if phase == "" {
				Eventually(session.Err).Should(gbytes.Say(ended))
			} else {
				where.reach(session, phase)
			}
			Expect(where.children()).NotTo(BeEmpty())
			sockets := where.sockets(session)
			Expect(sockets).NotTo(BeEmpty())
			interrupt(session)
			Expect(wait(session)).To(Equal(exitInterrupted))
			where.expectNothingLeft(sockets)

			run := where.recorded()
			Expect(run.Status).To(Equal(record.StatusInterrupted))
			Expect(run.Reason).NotTo(BeEmpty())
			Expect(run.Finished).NotTo(BeNil())
			if phase == "" {
				Expect(run.Phases).To(BeEmpty())
			} else {
				Expect(endings(run)).To(Equal(ended))
				Expect(run.ControlPlane.Baseline).NotTo(BeNil(), "what was measured is there")
				Expect(printed(session).Status).To(Equal(record.StatusInterrupted))
			}
			report := where.start("report", where.out)
			Expect(wait(report)).To(Equal(exitDone))
			Expect(report.Out).To(gbytes.Say("interrupted"))
		},
		Entry("while the cluster starts", record.PhaseName(""), "starting kube-controller-manager"),
		Entry("while the control plane starts", record.PhaseName(""), "starting istiod"),
		Entry("in baseline", record.PhaseBaseline, "baseline interrupt", "--baseline", "1m"),
		Entry("in rollout", record.PhaseRollout, "baseline duration, rollout interrupt", "--burst", "10/1m"),
		Entry("in settle", record.PhaseSettle, "baseline duration, rollout converged, settle interrupt", "--settle", "1m"),
		Entry("in steady", record.PhaseSteady, "baseline duration, rollout converged, settle duration, steady interrupt",
			"--steady", "1m"),
		Entry("in probe", record.PhaseProbe, "baseline duration, rollout converged, settle duration, steady duration, probe interrupt",
			"--probes", "1000"),
	)
})
