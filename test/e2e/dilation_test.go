//go:build e2e

package e2e

import (
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("a rollout whose factor nobody gave", func() {
	It("chooses it by a trial, and again without one", func() {
		// A call graph of its own, of which no earlier test has kept a choice.
		seed := strconv.FormatInt(time.Now().UnixNano(), 10)
		rollout := func() (record.Run, string) {
			where := newPlace()
			session := where.start("rollout", "--pods", "20", "--seed", seed, "--out", where.out, "-o", "json",
				"--baseline", "2s", "--settle", "1s", "--steady", "3s", "--probes", "0", "--calibrate=false")
			Expect(wait(session)).To(Equal(exitDone))
			where.expectNothingLeft()
			return printed(session), string(session.Err.Contents())
		}
		first, said := rollout()
		Expect(said).To(ContainSubstring("trial without dilation: istiod-permissive-20"))
		Expect(said).To(MatchRegexp(`time is (not slowed down|slowed down [0-9]+ times), as a trial of .* expected duration: about [0-9]+`))
		Expect(first.Environment.Dilation).NotTo(BeNil())
		auto := first.Environment.Dilation.Auto
		Expect(auto).NotTo(BeNil())
		Expect(auto.Trials).To(HaveLen(1))
		Expect(auto.Trials[0].Pods).To(Equal(20))
		Expect(auto.Trials[0].ControlPlane.CPUSeconds).To(BeNumerically(">", 0.1))
		Expect(*auto.Made).To(BeTemporally("<", first.Started))

		second, said := rollout()
		Expect(said).NotTo(ContainSubstring("trial without dilation"))
		Expect(second.Slowdown()).To(Equal(first.Slowdown()))
		Expect(*second.Environment.Dilation.Auto.Made).To(Equal(*auto.Made))
	})

	It("does not slow down phases in which the control plane is at rest", func() {
		where := newPlace()
		session := where.rollout(20, "--dilate", "3", "--burst", "10/1s", "--baseline", "2s", "--settle", "1s", "--steady", "4s", "--calibrate=false")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(run.Environment.Dilation.RealTime).To(ConsistOf(record.PhaseBaseline, record.PhaseSteady))
		for name, want := range map[record.PhaseName]struct{ seconds, slower float64 }{
			record.PhaseBaseline: {2, 1}, record.PhaseSettle: {1, 3}, record.PhaseSteady: {4, 1},
		} {
			phase := run.Phase(name)
			Expect(phase).NotTo(BeNil(), string(name))
			Expect(*phase.Seconds).To(BeNumerically(">=", want.seconds), string(name))
			Expect(phase.End.Sub(phase.Start).Seconds() / *phase.Seconds).To(BeNumerically("~", want.slower, 0.1), string(name))
		}
		steady := run.ControlPlane.Steady
		Expect(*steady.Cores.Mean).To(BeNumerically("~", *steady.CPUSeconds / *run.Phase(record.PhaseSteady).Seconds, 0.002))
		rollout := run.ControlPlane.Rollout
		Expect(*rollout.Cores.Mean).To(BeNumerically("~", *rollout.CPUSeconds / *run.Phase(record.PhaseRollout).Seconds, 0.02))
	})
})
