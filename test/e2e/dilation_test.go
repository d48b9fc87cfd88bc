//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

var _ = Describe("a rollout whose factor nobody gave", func() {
	It("has the one of the model, and the control plane the same processors with any", acceptance, func() {
		rollout := func(arguments ...string) (record.Run, string) {
			here := newPlace()
			session := here.start(append([]string{"rollout", "--pods", "20", "--out", here.out, "-o", "json",
				"--baseline", "2s", "--settle", "1s", "--steady", "3s", "--probes", "0", "--calibrate=false"}, arguments...)...)
			Expect(wait(session)).To(Equal(exitDone))
			here.expectNothingLeft()
			return printed(session), string(session.Err.Contents())
		}
		chosen, said := rollout()
		Expect(said).To(MatchRegexp(`time is (not slowed down|slowed down [0-9]+ times): .* expected duration: about [0-9]+`))
		auto := known(known(chosen.Environment.Dilation).Auto)
		Expect(auto.Processors).To(Equal(len(linux.Processors())))
		Expect(auto.ControlPlaneSeconds).To(BeNumerically(">", 0.1))
		Expect(chosen.Slowdown()).To(BeNumerically(">=", 1))
		given, _ := rollout("--dilate", "2", "--burst", "all", "--start-delay", "0s")
		Expect(known(given.Environment.Dilation).Auto).To(BeNil())
		for _, run := range []record.Run{chosen, given} {
			Expect(run.Environment.ControlPlane.GOMAXPROCS).To(Equal(scenario.DefaultProcessors))
			Expect(run.Scenario.ControlPlane.Processors).To(Equal(scenario.DefaultProcessors))
		}
	})

	It("starts again once, with a larger one, where the control plane waits too long", acceptance, Serial, func() {
		if os.Geteuid() != 0 {
			Skip("only root may give programs priority over the control plane")
		}
		where := newPlace()
		// Few pods a second, so that the factor is small, and a program may not wait several times as long as it runs.
		session := where.start("rollout", "--pods", "40", "--burst", "2/1s", "--out", where.out, "-o", "json", "--baseline", "1s", "--settle", "1s", "--steady", "1s", "--probes", "0", "--calibrate=false")
		where.reach(session, record.PhaseRollout) // the factor was chosen for the machine as it was before
		stop := occupyProcessors()
		Eventually(session.Err, "3m").Should(gbytes.Say("is started again with"))
		stop()
		Expect(wait(session)).To(Equal(exitDone))
		where.expectNothingLeft()
		run := printed(session)
		again := known(known(known(run.Environment.Dilation).Auto).Restart)
		Expect(again.Factor).To(BeNumerically("<", run.Slowdown()))
		Expect(again.Component).To(Equal("istiod"))
		Expect(again.Phase).To(Equal(record.PhaseRollout))
		Expect(again.Share).To(BeNumerically(">", again.Bound))
		Expect(strings.Count(string(session.Err.Contents()), "is started again with")).To(Equal(1))
		Expect(known(run.Pods.Converged)).To(Equal(40))
	})

	It("does not slow down phases in which the control plane is at rest", func() {
		where := newPlace()
		session := where.rollout(20, "--dilate", "3", "--burst", "10/1s", "--baseline", "2s", "--settle", "1s", "--steady", "4s", "--calibrate=false")
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(known(run.Environment.Dilation).RealTime).To(ConsistOf(record.PhaseBaseline, record.PhaseSteady))
		for name, want := range map[record.PhaseName]struct{ seconds, slower float64 }{
			record.PhaseBaseline: {2, 1}, record.PhaseSettle: {1, 3}, record.PhaseSteady: {4, 1},
		} {
			phase := known(run.Phase(name))
			Expect(known(phase.Seconds)).To(BeNumerically(">=", want.seconds), string(name))
			Expect(phase.End.Sub(phase.Start).Seconds()/known(phase.Seconds)).To(BeNumerically("~", want.slower, 0.1), string(name))
		}
		steady := known(run.ControlPlane.Steady)
		Expect(known(known(steady.Cores).Mean)).To(BeNumerically("~", known(steady.CPUSeconds)/known(known(run.Phase(record.PhaseSteady)).Seconds), 0.002))
		rollout := known(run.ControlPlane.Rollout)
		Expect(known(known(rollout.Cores).Mean)).To(BeNumerically("~", known(rollout.CPUSeconds)/known(known(run.Phase(record.PhaseRollout)).Seconds), 0.02))
	})
})

// occupyProcessors starts busy loops with the highest priority on all processors. stop ends them.
func occupyProcessors() (stop func()) {
	GinkgoHelper()
	var all []*exec.Cmd
	stop = func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait() // it was killed
		}
		all = nil
	}
	DeferCleanup(func() { stop() })
	for range 8 * len(linux.Processors()) {
		c := exec.Command("sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		Expect(c.Start()).To(Succeed())
		all = append(all, c)
		Expect(syscall.Setpriority(syscall.PRIO_PROCESS, c.Process.Pid, -20)).To(Succeed())
	}
	return stop
}
