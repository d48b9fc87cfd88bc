//go:build e2e

package e2e

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("changes at a rate", func() {
	const pods, changes = 20, 20
	// With istiod: what the reference control plane pushes may come before scaler sees the change made, and is not known then.
	DescribeTable("are followed to every sidecar that they concern", func(plane, kind string, sidecars func(record.Run) int) {
		where := newPlace()
		session := where.rollout(pods, "--control-plane", plane, "--change", "5/s:"+kind, "--change-duration", "4s", "--calibrate=false")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(endings(run)).To(Equal("baseline duration, rollout converged, settle duration, steady duration, change duration"))
		c := known(run.Change)
		Expect(c.Kind).To(Equal(kind))
		Expect(known(c.OfferedPerSecond)).To(Equal(5.0))
		made := changesOf(run, changes)
		Expect(float64(made)/known(c.AchievedPerSecond)).To(And(BeNumerically(">=", 3.999), BeNumerically("<", 12)), "seconds; a busy machine makes the last changes late")
		Expect(run.ControlPlane.Change).NotTo(BeNil())
		if kind == "metadata" {
			Expect(c.Push).To(BeNil())
			return
		}
		Expect(known(c.Push).Lost).To(BeZero())
		Expect(known(c.Push).Count).To(BeEquivalentTo(made * sidecars(run)))
		Expect(known(c.Last).Count).To(BeEquivalentTo(made))
		// On a busy machine the answer to a write can come after its push. A few of these make the push unknown.
		if c.Push.Unknown() {
			Expect(c.Push.Clamped).To(BeNumerically(">", 1))
		} else {
			Expect(known(known(c.FromDue).Mean)).To(BeNumerically(">=", known(c.Push.Mean)))
		}
		Expect(known(c.Push).P99).To(BeNil(), "of fewer than 100 changes")
		Expect(known(c.ResponsesPerChange)).To(BeNumerically(">", 0))
		Expect(c.BacklogSeconds).NotTo(BeNil())
		Expect(filepath.Join(where.out, run.Name, "latencies", "change.push.hgrm")).To(BeAnExistingFile())
	},
		Entry("an endpoint", acceptance, "istiod", "endpoint", func(record.Run) int { return pods }),
		Entry("a route", acceptance, "istiod", "route", func(record.Run) int { return pods }),
		Entry("a policy", "istiod", "policy", func(r record.Run) int { return pods / r.ServiceCount() }),
		Entry("mesh-wide", acceptance, "istiod", "meshwide", func(record.Run) int { return pods }),
		Entry("metadata", acceptance, "istiod", "metadata", nil),
	)

	It("go on while pods are replaced", func() {
		where := newPlace()
		session := where.rollout(pods, longSettle, longSteady, "--change", "5/s", "--change-duration", "4s", "--churn", "1/s", "--calibrate=false")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(run.Status).To(Equal(record.StatusCompleted))
		Expect(endings(run)).To(HaveSuffix("change duration"))
		Expect(known(known(run.Churn).Replaced)).To(Equal(4))
		Expect(known(run.Churn).Seconds).NotTo(BeNil())
		Expect(known(known(run.Change).Push).Count).To(BeNumerically(">", changesOf(run, changes)*(pods-4)))
		Expect(known(known(run.Change).Push).Lost).To(BeZero())
		Expect(run.ControlPlane.Churn).To(BeNil())
	})
})

// changesOf returns how many changes a run made, of those that were due. A change is made when it is due or, on a busy
// machine, later; one whose time passed while another was written is missed.
func changesOf(run record.Run, due int) int {
	GinkgoHelper()
	made := known(known(run.Change).Changes)
	Expect(made + known(run.Change.Missed)).To(Equal(due))
	Expect(made).To(BeNumerically(">", due/2))
	return made
}
