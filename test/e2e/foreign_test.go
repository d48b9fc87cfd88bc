//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("what is not scaler's", func() {
	It("1: is refused by cleanup, with a message: folders with a state file of another program", func() {
		where := newPlace()
		foreign := filepath.Join(where.state, "clusters", "mine")
		Expect(os.MkdirAll(foreign, 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(foreign, "processes.json"), []byte("{}"), 0o644)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o644)).To(Succeed())

		cleanup := where.start("cleanup")
		Expect(wait(cleanup)).To(Equal(exitFailed))
		Expect(cleanup.Err).To(gbytes.Say("is no process group's.*left alone"))
		down := where.start("cluster", "down", "mine")
		Expect(wait(down)).To(Equal(exitFailed))
		Expect(down.Err).To(gbytes.Say("left alone"))
		Expect(os.ReadDir(foreign)).To(HaveLen(2))
	})

	It("2, 3: is what runs still: a live run is neither listed nor stopped by cleanups, outlives a look from elsewhere, and ignores a signal that was ignored at start, as below nohup", func() {
		where := newPlace()
		run := where.shell(`trap '' HUP; exec "$SCALER" "$@"`, where.referenceArgs()...)
		where.begin(run)
		signal(run, syscall.SIGHUP)
		signal(run, syscall.SIGSTOP) // it goes on when it was looked at
		before := where.children()
		status := where.start("cluster", "status")
		Expect(wait(status)).To(Equal(exitDone))
		Expect(status.Out).To(gbytes.Say(`running +process %d`, run.Command.Process.Pid))
		sessions := make([]*gexec.Session, 3)
		for i := range sessions {
			sessions[i] = where.start("cleanup")
		}
		for _, s := range sessions {
			Expect(wait(s)).To(Equal(exitDone))
			Expect(s.Err).To(gbytes.Say("nothing to clean up"))
		}
		Expect(where.children()).To(ConsistOf(before))
		signal(run, syscall.SIGCONT)
		Expect(wait(run)).To(Equal(exitDone))
		Expect(where.recorded().Status).To(Equal(record.StatusCompleted))
		where.expectNothingLeft()
	})

	It("3: is removed once by cleanups at the same time, which all succeed", func() {
		where := newPlace()
		run := where.start(where.referenceArgs("--keep", "--baseline", "1m")...)
		where.reach(run, record.PhaseBaseline)
		run.Kill() // SIGKILL; with --keep its children live on
		wait(run)
		Expect(where.children()).NotTo(BeEmpty())
		status := where.start("cluster", "status")
		Expect(wait(status)).To(Equal(exitDone))
		Expect(status.Out).To(gbytes.Say(`running +killed`))
		sessions := make([]*gexec.Session, 3)
		for i := range sessions {
			sessions[i] = where.start("cleanup")
		}
		for _, s := range sessions {
			Expect(wait(s)).To(Equal(exitDone))
		}
		where.expectNothingLeft()
	})

	It("9: is no part of a kept cluster: its status is that of what was kept", func() {
		where := newPlace()
		run := where.start(where.referenceArgs("--keep")...)
		Expect(wait(run)).To(Equal(exitDone))
		status := where.start("cluster", "status")
		Expect(wait(status)).To(Equal(exitDone))
		Expect(status.Out).To(gbytes.Say(`running +kept`))
		Expect(where.running(filepath.Base(scaler))).NotTo(BeZero(), "which shortens the logs")

		// A killed program is still in the process table for a moment, when its environment is gone already.
		statusAs := func(format string) func() string {
			return func() string {
				status := where.start("cluster", "status", "-o", format)
				Expect(wait(status)).To(Equal(exitDone))
				return string(status.Out.Contents())
			}
		}
		By("ending one of its programs")
		Expect(syscall.Kill(where.running("kwok"), syscall.SIGKILL)).To(Succeed())
		Eventually(statusAs("table")).Should(MatchRegexp(`degraded \(ended: kwok\) +kept`))

		By("ending all of them")
		for _, pid := range where.children() {
			// One that is gone has ended since the others did.
			Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Or(Succeed(), MatchError(syscall.ESRCH)))
		}
		Eventually(statusAs("json")).Should(ContainSubstring(`"state": "stopped"`))
		Expect(where.children()).To(BeEmpty())
		Expect(wait(where.start("cluster", "down", filepath.Base(where.groups()[0])))).To(Equal(exitDone))
		where.expectNothingLeft()
	})

	It("4: is no data for a cluster to start on", func() {
		where := newPlace()
		data := filepath.Join(where.state, "clusters", "old", "etcd")
		Expect(os.MkdirAll(data, 0o755)).To(Succeed())
		up := where.start("cluster", "up", "old")
		Expect(wait(up)).To(Equal(exitFailed))
		Expect(up.Err).To(gbytes.Say("the folder holds etcd"))
		Expect(data).To(BeADirectory())
		_, err := process.Inspect(filepath.Dir(data))
		Expect(err).To(MatchError(os.ErrNotExist))
	})
})
