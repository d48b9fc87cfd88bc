//go:build e2e

package e2e

import (
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("a rollout with a worker in another process", func() {
	const pods = 30

	It("has half of the sidecars there, and the record of one process", func() {
		where := newPlace()
		// A worker states once a second how late it ran: a rollout that is shorter may have no such figure.
		session := where.rollout(pods, longSettle, longSteady, "--control-plane", "reference", "--mode", "strict", "--workers", "2",
			"--burst", "10/1s", "--probes", "4", "--certificate-storm", "--fault", "reset-streams:50%@steady")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(known(run.Pods.Converged)).To(Equal(pods))
		Expect(known(run.Latencies.CompleteConfiguration).Count).To(BeEquivalentTo(pods))
		Expect(known(run.Latencies.CompleteConfiguration).Lost).To(BeZero())
		Expect(known(run.Latencies.Certificate).Count).To(BeEquivalentTo(pods))
		Expect(known(run.XDS.Nacks)).To(BeZero())
		Expect(known(run.Certificates.Storm).Issued).To(BeEquivalentTo(pods))
		for _, w := range run.Warnings { // the counts are those of the control plane, of both processes
			Expect(w.Reason).NotTo(BeElementOf(record.ReasonCountsDiffer, record.ReasonStrays, record.ReasonMissingResources, record.ReasonUnexpectedResources), "%s: %s", w.About, w.Text)
		}
		for kind, l := range run.Latencies.Push {
			Expect(l.Lost).To(BeZero(), "%s", kind)
			Expect(l.Count).NotTo(BeZero(), "%s", kind)
		}

		workers := run.Instrument.Workers
		Expect(workers).To(HaveLen(2))
		Expect(workers[0].Name).To(Equal("scaler"))
		Expect(workers[1].Name).To(Equal("worker-1"))
		for _, w := range workers {
			Expect(w.Sidecars).To(BeNumerically(">=", pods/2))
			Expect(known(w.Cores)).To(BeNumerically(">", 0))
			Expect(w.Lag).NotTo(BeNil())
		}
		Expect(known(workers[0].Cores) + known(workers[1].Cores)).To(BeNumerically("~", known(run.Instrument.Cores), 0.1*known(run.Instrument.Cores)))
		Expect(workers[1].Clock.UncertaintySeconds).To(And(BeNumerically(">", 0), BeNumerically("<", 0.05)))
	})

	It("fails when that process is lost, saying so, and leaves nothing", func() {
		where := newPlace()
		session := where.rollout(pods, "--control-plane", "reference", "--workers", "2", "--steady", "10m")
		where.reach(session, record.PhaseSteady)
		sockets := where.sockets(session)
		Expect(syscall.Kill(where.child("worker-1"), syscall.SIGKILL)).To(Succeed())
		Expect(wait(session)).To(Equal(exitFailed))
		Expect(session.Err.Contents()).To(ContainSubstring("worker worker-1 is lost"))
		run := where.recorded()
		Expect(run.Status).To(Equal(record.StatusFailed))
		Expect(run.Reason).To(ContainSubstring("worker worker-1 is lost"))
		where.expectNothingLeft(sockets...)
	})
})
