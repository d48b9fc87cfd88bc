//go:build e2e

package e2e

import (
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/pkg/record"
)

// expectInterrupted holds when a rollout that was ended by a signal left a readable record, with these endings of its phases,
// "" for none, and the reason, and nothing else.
func (p place) expectInterrupted(session *gexec.Session, sockets []string, ended, reason string) {
	GinkgoHelper()
	Expect(wait(session)).To(Equal(exitInterrupted))
	Expect(session.Err).To(gbytes.Say("everything that was started is stopped"))
	p.expectNothingLeft(sockets...)

	run := p.recorded()
	Expect(run.Status).To(Equal(record.StatusInterrupted))
	Expect(run.Reason).To(ContainSubstring(reason))
	Expect(run.Finished).NotTo(BeNil())
	Expect(endings(run)).To(Equal(ended))
	if ended != "" {
		Expect(run.ControlPlane.Baseline).NotTo(BeNil(), "what was measured is there")
		Expect(printed(session).Status).To(Equal(record.StatusInterrupted))
	}
	report := p.start("report", p.out)
	Expect(wait(report)).To(Equal(exitDone))
	Expect(report.Out).To(gbytes.Say("interrupted"))
}

// listening returns the sockets of a scaler that has started something.
func (p place) listening(session *gexec.Session) []string {
	GinkgoHelper()
	Expect(p.children()).NotTo(BeEmpty())
	sockets := p.sockets(session)
	Expect(sockets).NotTo(BeEmpty())
	return sockets
}

var _ = Describe("a signal", func() {
	DescribeTable("leaves a readable record that says which, and nothing else: ctrl-C while",
		func(ctx SpecContext, program, message string) {
			where := newPlace()
			where.hold(ctx, program)
			session := where.rollout(20, "--calibrate=false")
			Eventually(session.Err).Should(gbytes.Say(message))
			sockets := where.listening(session)
			interrupt(session)
			where.expectInterrupted(session, sockets, "", "ctrl-C")
		},
		Entry("the cluster starts", component.KubeControllerManager, "starting kube-controller-manager"),
		Entry("the control plane starts", component.Istiod, "starting istiod"),
	)

	// Against the reference control plane, but in probe, which is among the specs of probes.
	DescribeTable("leaves a readable record that says which, and nothing else:",
		// lasting are the flags that make the phase long.
		func(send func(*gexec.Session), reason string, phase record.PhaseName, ended string, lasting ...string) {
			where := newPlace()
			session := where.rollout(20, append([]string{"--control-plane", "reference", "--calibrate=false", "--settle", "1s", "--steady", "1s"}, lasting...)...)
			if phase == record.PhaseChurn {
				// It is as short as steady, but for an API server that does not answer.
				Eventually(where.phase, "2m").Should(BeElementOf(record.PhaseSettle, record.PhaseSteady, record.PhaseChurn))
				server := where.child("kube-apiserver")
				Expect(syscall.Kill(server, syscall.SIGSTOP)).To(Succeed())
				DeferCleanup(func() { _ = syscall.Kill(server, syscall.SIGCONT) }) // it may have ended
			}
			where.reach(session, phase)
			sockets := where.listening(session)
			send(session)
			if phase == record.PhaseChurn {
				Expect(syscall.Kill(where.child("kube-apiserver"), syscall.SIGCONT)).To(Succeed())
			}
			where.expectInterrupted(session, sockets, ended, reason)
		},
		Entry("SIGTERM in baseline", acceptance, sends(syscall.SIGTERM), "SIGTERM", record.PhaseBaseline, "baseline interrupt", "--baseline", "1m"),
		Entry("ctrl-C in rollout", interrupt, "ctrl-C", record.PhaseRollout, "baseline duration, rollout interrupt", "--burst", "10/1m"),
		Entry("SIGHUP in settle", sends(syscall.SIGHUP), "terminal", record.PhaseSettle, "baseline duration, rollout converged, settle interrupt", "--settle", "1m"),
		Entry("SIGQUIT in steady", acceptance, sends(syscall.SIGQUIT), "SIGQUIT", record.PhaseSteady,
			"baseline duration, rollout converged, settle duration, steady interrupt", "--steady", "1m"),
		Entry("ctrl-C in change", acceptance, interrupt, "ctrl-C", record.PhaseChange,
			"baseline duration, rollout converged, settle duration, steady duration, change interrupt", "--change", "5/s:meshwide", "--change-duration", "1m"),
		Entry("ctrl-C in churn", acceptance, interrupt, "ctrl-C", record.PhaseChurn,
			"baseline duration, rollout converged, settle duration, steady duration, churn interrupt", "--churn", "2/s"),
	)
})

// sends sends a signal to a scaler alone.
func sends(number syscall.Signal) func(*gexec.Session) {
	return func(session *gexec.Session) { signal(session, number) }
}
