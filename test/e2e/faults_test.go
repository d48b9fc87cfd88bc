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
		Expect(*run.Pods.Converged).To(Equal(pods))
		Expect(*run.Certificates.Failed).To(BeZero())
		Expect(*run.ControlPlane.Rollout.Restarts).To(Equal(1))
		Expect(*run.ControlPlane.Steady.Restarts).To(BeZero())
		Expect(*run.ControlPlane.Rollout.CPUSeconds).To(BeNumerically(">", 0))
		Expect(*run.XDS.Reconnects).To(BeNumerically(">", 0))
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
			ContainSubstring("another scaler is writing to it"), ContainSubstring("choose another --out"),
		))
		other.expectNothingLeft()

		By("being listed, and left alone by cleanup")
		status := where.start("cluster", "status")
		Expect(wait(status)).To(Equal(exitDone))
		Expect(status.Out).To(gbytes.Say(fmt.Sprintf("running +process %d", session.Command.Process.Pid)))
		cleanup := where.start("cleanup")
		Expect(wait(cleanup)).To(Equal(exitDone))
		Expect(cleanup.Err).To(gbytes.Say("nothing to clean up"))

		where.reach(session, record.PhaseSteady)
		Expect(where.children()).NotTo(BeEmpty())
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
		Expect(run.Phase(record.PhaseSteady).End).To(BeNil())
		Expect(*run.Pods.Converged).To(Equal(20))
		report := where.start("report", where.out)
		Expect(wait(report)).To(Equal(exitDone))
		Expect(report.Out).To(gbytes.Say("reference-permissive-20: interrupted"))
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
