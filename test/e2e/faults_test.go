//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("a control plane that is killed in mid-rollout", func() {
	It("is started again once, and the run is measured through", func() {
		const pods = 60
		where := newPlace()
		session := where.rollout(pods, "--burst", "20/5s") // for the rollout to last
		Eventually(func() (string, error) {
			events, err := os.ReadFile(filepath.Join(where.out, "istiod-permissive-60", "events.jsonl"))
			if errors.Is(err, os.ErrNotExist) {
				return "", nil
			}
			return string(events), err
		}).WithTimeout(2 * time.Minute).Should(ContainSubstring(`"kind":"podReady"`)) // the cluster starts first
		Expect(where.phase()).To(Equal(record.PhaseRollout))
		Expect(syscall.Kill(where.child("istiod"), syscall.SIGKILL)).To(Succeed())
		Expect(wait(session)).To(Equal(exitDone))
		Expect(session.Err).To(gbytes.Say("istiod ended and is started again"))

		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(known(run.Pods.Converged)).To(Equal(pods))
		Expect(known(run.Certificates.Failed)).To(BeZero())
		Expect(known(known(run.ControlPlane.Rollout).Restarts)).To(Equal(1))
		Expect(known(known(run.ControlPlane.Steady).Restarts)).To(BeZero())
		Expect(known(known(run.ControlPlane.Rollout).CPUSeconds)).To(BeNumerically(">", 0))
		Expect(known(run.XDS.Reconnects)).To(BeNumerically(">", 0))
		Expect(run.Warnings).To(ContainElement(And(
			HaveField("About", "controlPlane.rollout"), HaveField("Reason", record.ReasonCrashed), HaveField("Detail", ContainSubstring("signal: killed")),
		)))
		where.expectNothingLeft()
	})
})

var _ = Describe("scaler killed in steady", Ordered, func() {
	var where place
	BeforeAll(func() {
		where = newPlace()
		session := where.start(where.referenceArgs("--pods", "20", "--steady", "10m")...)
		where.begin(session)

		By("meeting another scaler with the same --out")
		other := where
		other.state = where.state + "-other"
		second := other.start(other.referenceArgs("--pods", "30")...)
		Expect(wait(second)).To(Equal(exitFailed))
		Expect(string(second.Err.Contents())).To(And(
			ContainSubstring("another scaler is writing to it"), ContainSubstring("choose another output folder"),
		))
		other.expectNothingLeft()
		latency := where.start("latency", "--control-plane", "reference", "--variants", "none", "--out", where.out)
		Expect(wait(latency)).To(Equal(exitFailed))
		Expect(latency.Err).To(gbytes.Say("choose another output folder"))

		By("being listed, and left alone by cleanup")
		status := where.start("cluster", "status")
		Expect(wait(status)).To(Equal(exitDone))
		Expect(status.Out).To(gbytes.Say(fmt.Sprintf("running +process %d", session.Command.Process.Pid)))
		cleanup := where.start("cleanup")
		Expect(wait(cleanup)).To(Equal(exitDone))
		Expect(cleanup.Err).To(gbytes.Say("nothing to clean up"))

		where.reach(session, record.PhaseSteady)
		Expect(where.children()).NotTo(BeEmpty())
		Eventually(where.samplesInSteady).Should(BeNumerically(">", 3))
		session.Kill()
		Expect(wait(session)).NotTo(Equal(exitDone))
	})

	It("takes all its children with it", func() {
		Eventually(where.children).Should(BeEmpty())
	})

	It("leaves a record that reads as interrupted", func() {
		run := where.recorded()
		Expect(run.Status).To(Equal(record.StatusInterrupted))
		Expect(run.Finished).To(BeNil())
		Expect(known(run.Phase(record.PhaseSteady)).End).To(BeNil())
		Expect(known(run.Pods.Converged)).To(Equal(20))
		report := where.start("report", where.out)
		Expect(wait(report)).To(Equal(exitDone))
		Expect(report.Out).To(gbytes.Say("reference-permissive-20 did not complete: interrupted"))
	})

	It("leaves what was measured, which is on disk as it arrives", func() {
		report := where.start("report", where.out, "-o", "json")
		Expect(wait(report)).To(Equal(exitDone))
		run := printed(report)
		Expect(run.Status).To(Equal(record.StatusInterrupted))
		for _, usage := range []*record.Usage{run.ControlPlane.Baseline, run.ControlPlane.Rollout, run.ControlPlane.Steady, run.Cluster["kube-apiserver"].Rollout} {
			Expect(known(known(usage).CPUSeconds)).To(BeNumerically(">", 0))
			Expect(known(known(known(usage).MemoryBytes).Mean)).To(BeNumerically(">", 1<<20))
		}
		Expect(known(run.Instrument.MemoryBytes)).To(BeNumerically(">", 1<<20))
		Expect(run.Warnings).To(ContainElement(HaveField("Reason", record.ReasonFromSamples)))
	})

	It("leaves a record into which no other run writes", func() {
		path := filepath.Join(where.recorded().Dir, "run.json")
		before, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		third := where.start(where.referenceArgs("--pods", "20")...)
		Expect(wait(third)).To(Equal(exitFailed))
		Expect(third.Err).To(gbytes.Say("choose another output folder"))
		Expect(os.ReadFile(path)).To(Equal(before))
	})

	It("leaves a folder, which cleanup removes", func() {
		Expect(where.groups()).To(HaveLen(1))
		dir := where.groups()[0]
		dry := where.start("cleanup", "--dry-run")
		Expect(wait(dry)).To(Equal(exitDone))
		Expect(string(dry.Out.Contents())).To(ContainSubstring(dir))
		Expect(dir).To(BeADirectory())

		cleanup := where.start("cleanup")
		Expect(wait(cleanup)).To(Equal(exitDone))
		Expect(string(cleanup.Out.Contents())).To(ContainSubstring(dir))
		where.expectNothingLeft()
		Expect(where.recorded().Name).To(Equal("reference-permissive-20"), "records are left alone")
	})
})

// samplesInSteady returns the number of samples since steady began.
func (p place) samplesInSteady() (n int, err error) {
	run := p.recorded()
	begin := known(run.Phase(record.PhaseSteady)).Start
	err = run.Samples(func(s record.Sample) error {
		if s.Time.After(begin) {
			n++
		}
		return nil
	})
	return n, err
}
