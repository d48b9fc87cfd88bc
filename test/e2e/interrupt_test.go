//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("ctrl-C", func() {
	DescribeTable("leaves a readable record and nothing else",
		// lasting keeps a run where it is until it is interrupted there: a program that does not come up, or the
		// flags that make the phase long.
		func(ctx SpecContext, phase record.PhaseName, ended string, lasting ...string) {
			where := newPlace()
			if phase == "" {
				where.hold(ctx, lasting[0])
				lasting = nil
			}
			session := where.rollout(20, append([]string{"--calibrate=false", "--settle", "1s", "--steady", "1s"}, lasting...)...)
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
			where.expectNothingLeft(sockets...)

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
		Entry("while the cluster starts", record.PhaseName(""), "starting kube-controller-manager", component.KubeControllerManager),
		Entry("while the control plane starts", record.PhaseName(""), "starting istiod", component.Istiod),
		Entry("in baseline", record.PhaseBaseline, "baseline interrupt", "--control-plane", "reference", "--baseline", "1m"),
		Entry("in rollout", record.PhaseRollout, "baseline duration, rollout interrupt", "--burst", "10/1m"),
		Entry("in settle", record.PhaseSettle, "baseline duration, rollout converged, settle interrupt",
			"--control-plane", "reference", "--settle", "1m"),
		Entry("in steady", record.PhaseSteady, "baseline duration, rollout converged, settle duration, steady interrupt",
			"--control-plane", "reference", "--steady", "1m"),
		Entry("in probe", record.PhaseProbe, "baseline duration, rollout converged, settle duration, steady duration, probe interrupt",
			"--probes", "1000"),
	)
})
