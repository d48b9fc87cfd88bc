//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/pkg/record"
)

// shell starts a script in which $SCALER is the program, in this place.
func (p place) shell(script string, args ...string) *gexec.Session {
	GinkgoHelper()
	cmd := exec.Command("/bin/bash", append([]string{"-c", script, "bash"}, args...)...)
	cmd.Env = append(os.Environ(), "SCALER_STATE_DIR="+p.state, "SCALER="+scaler)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return session(cmd)
}

var _ = Describe("nothing is left", func() {
	It("5: when a pipe is closed: cluster up 2>&1 | head -1", func() {
		where := newPlace()
		s := where.shell(`"$SCALER" cluster up 2>&1 | head -1; exit ${PIPESTATUS[0]}`)
		Expect(wait(s)).To(Equal(exitInterrupted))
		where.expectNothingLeft()
	})

	It("5: when a pipe is closed in a run, and the record says so", func() {
		where := newPlace()
		s := where.shell(`"$SCALER" "$@" 2>&1 | grep -m1 baseline:; exit ${PIPESTATUS[0]}`, where.referenceArgs()...)
		Expect(wait(s)).To(Equal(exitInterrupted))
		where.expectNothingLeft()
		run := where.recorded()
		Expect(run.Status).To(Equal(record.StatusInterrupted))
		Expect(run.Reason).To(ContainSubstring("closed"))
	})

	It("6: the first ctrl-C says how long it can take, and the second kills at once", func() {
		where := newPlace()
		s := where.start(where.referenceArgs("--baseline", "1m")...)
		where.reach(s, record.PhaseBaseline)
		// A child that does not end when asked to.
		stubborn := where.running("kube-apiserver")
		Expect(syscall.Kill(stubborn, syscall.SIGSTOP)).To(Succeed())
		signal(s, syscall.SIGINT)
		Eventually(s.Err).Should(gbytes.Say("stopping what was started, which can take up to 1m0s; ctrl-C again"))
		signal(s, syscall.SIGINT)
		Eventually(s.Err).Should(gbytes.Say("killing what was started"))
		Expect(wait(s)).To(Equal(exitInterrupted))
		where.expectNothingLeft()
		Expect(where.recorded().Status).To(Equal(record.StatusInterrupted))
	})

	It("6: commands that start nothing stop at the first, whatever they wait for", func() {
		where := newPlace()
		dir := filepath.Join(where.out, "run")
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		Expect(syscall.Mkfifo(filepath.Join(dir, "run.json"), 0o600)).To(Succeed())
		for _, args := range [][]string{{"report", where.out}, {"compare", where.out, where.out}, {"plan", where.out, "--pods", "100"}, {"dashboards", "serve", where.out}} {
			s := where.start(args...)
			signal(s, syscall.SIGINT)
			wait(s) // by the signal, or since what is no file is refused
		}
	})

	It("7: an interrupted ladder ends with 130, also when its first run was being taken down", func() {
		where := newPlace()
		s := where.start(where.referenceArgs("--pods", "5,6", "--steady", "5s")...)
		where.reach(s, record.PhaseSteady)
		// The first run is not down before all its programs have ended, and pods run on without this one.
		last := where.running("kwok")
		Expect(syscall.Kill(last, syscall.SIGSTOP)).To(Succeed())
		Eventually(s.Err).WithTimeout(2 * time.Minute).Should(gbytes.Say(`steady: [0-9.]+ s`))
		signal(s, syscall.SIGINT)
		Expect(syscall.Kill(last, syscall.SIGCONT)).To(Succeed())
		Expect(wait(s)).To(Equal(exitInterrupted))
		where.expectNothingLeft()
		runs, err := record.Read(where.out)
		Expect(err).NotTo(HaveOccurred())
		Expect(runs).To(HaveLen(1))
	})
})
