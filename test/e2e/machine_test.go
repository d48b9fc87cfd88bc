//go:build e2e

package e2e

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/record"
)

// mounted starts a script in a mount namespace of its own, in which it may mount; $0 is
// the place's folder, $SCALER the program, and the arguments are those of the script.
func (p place) mounted(script string, args ...string) *gexec.Session {
	GinkgoHelper()
	if os.Geteuid() != 0 {
		Skip("only root may mount")
	}
	cmd := exec.Command("unshare", append([]string{"--mount", "/bin/bash", "-c", "set -e; " + script, filepath.Dir(p.state)}, args...)...)
	cmd.Env = append(os.Environ(), "SCALER_STATE_DIR="+p.state, "SCALER="+scaler)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return session(cmd)
}

var _ = Describe("what a machine lacks", func() {
	It("11: a full disk is reported with what to do, by the run before it starts anything, and by doctor", func() {
		where := newPlace()
		const disk = `mkdir -p $0/disk; mount -t tmpfs -o size=1m none $0/disk; `
		doctor := where.mounted(disk + `exec "$SCALER" doctor --out $0/disk/out`)
		Expect(wait(doctor)).To(Equal(exitFailed))
		Expect(doctor.Out).To(gbytes.Say(`disk of --out +failed .*make room`))
		run := where.mounted(disk+`code=0; "$SCALER" "$@" --out $0/disk || code=$?; ls -A $0/disk; exit $code`, where.referenceArgs()...)
		Expect(wait(run)).To(Equal(exitFailed))
		Expect(run.Err).To(gbytes.Say("checking disk of --out: .*make room, or name a folder on another disk"))
		Expect(run.Out.Contents()).To(BeEmpty(), "the folder is")
		where.expectNothingLeft()
	})

	It("11: a disk that is filled during a run ends it with an error that says so", func() {
		where := newPlace()
		// What is on the disk goes with the namespace that it is mounted in: the record is copied before.
		run := where.mounted(`mkdir -p $0/disk; mount -t tmpfs -o size=200m none $0/disk
			"$SCALER" "$@" --out $0/disk/out & echo $! >$0/pid
			code=0; wait $! || code=$?; cp -r $0/disk/out $0/out; exit $code`, where.referenceArgs("--baseline", "2m")...)
		Eventually(run.Err).WithTimeout(2 * time.Minute).Should(gbytes.Say("baseline +[0-9]+s/"))
		text, err := os.ReadFile(filepath.Join(filepath.Dir(where.state), "pid"))
		Expect(err).NotTo(HaveOccurred())
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		Expect(err).NotTo(HaveOccurred())
		sockets := slices.AppendSeq(where.sockets(run), maps.Keys(heldBy(pid, listeners())))
		fill, err := os.Create(filepath.Join("/proc", strconv.Itoa(pid), "root", filepath.Dir(where.state), "disk", "fill"))
		Expect(err).NotTo(HaveOccurred())
		_, err = io.Copy(fill, io.LimitReader(zeros{}, 300<<20))
		Expect(errors.Is(err, syscall.ENOSPC)).To(BeTrue(), "%v", err)
		Expect(fill.Close()).To(Succeed())
		Expect(wait(run)).To(Equal(exitFailed))
		Expect(run.Err).To(gbytes.Say("no space left on device: free space on that disk, or choose an output folder on another"))
		where.expectNothingLeft(sockets...)
		Expect(where.recorded().Status).To(Equal(record.StatusInterrupted), "as it stood when the disk was full")
	})

	It("11: an output folder that is deleted during a run ends it with an error that names it", acceptance, func() {
		where := newPlace()
		run := where.start(where.referenceArgs("--baseline", "5s")...)
		where.begin(run)
		// What the run writes meanwhile may fill a folder again that is to be removed.
		Eventually(func() error { return os.RemoveAll(where.out) }).Should(Succeed())
		Expect(wait(run)).To(Equal(exitFailed))
		Expect(run.Err).To(gbytes.Say("saving " + where.out))
		where.expectNothingLeft()
	})

	It("11: a state folder that cannot be written is an error before anything starts", func() {
		where := newPlace()
		const readOnly = `mkdir -p $0/ro; mount --bind $0/ro $0/ro; mount -o remount,ro,bind $0/ro; export SCALER_STATE_DIR=$0/ro; exec "$SCALER" "$@"`
		for _, args := range [][]string{where.referenceArgs(), {"cluster", "up"}, {"doctor"}} {
			s := where.mounted(readOnly, args...)
			Expect(wait(s)).To(Equal(exitFailed))
			Expect(string(s.Err.Contents()) + string(s.Out.Contents())).To(MatchRegexp(`SCALER_STATE_DIR.* cannot be written: read-only file system`))
		}
		Expect(where.out).NotTo(BeADirectory())
	})

	It("11: programs that may not be executed are an error that says why", func() {
		where := newPlace()
		for _, args := range [][]string{where.referenceArgs(), {"cluster", "up"}, {"doctor"}} {
			s := where.mounted(`cache=${SCALER_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/scaler}; mount --bind $cache $cache; mount -o remount,noexec,bind $cache; exec "$SCALER" "$@"`, args...)
			Expect(wait(s)).To(Equal(exitFailed))
			Expect(string(s.Err.Contents()) + string(s.Out.Contents())).To(ContainSubstring("mounted noexec"))
		}
		where.expectNothingLeft()
	})

	It("11: too few open files or inotify instances are an error that says how many are needed", func() {
		where := newPlace()
		for _, args := range [][]string{where.referenceArgs(), {"cluster", "up"}} {
			files := exec.Command("unshare", append([]string{"--user", "prlimit", "--nofile=200:200", scaler}, args...)...)
			files.Env = append(os.Environ(), "SCALER_STATE_DIR="+where.state)
			s := session(files)
			Expect(wait(s)).To(Equal(exitFailed))
			Expect(s.Err).To(gbytes.Say(`open files: 200 allowed, \d+ needed .*ulimit`))

			// The limit of a user namespace is its own.
			inotify := exec.Command("unshare", append([]string{"--user", "--map-root-user", "/bin/bash", "-c",
				`echo 3 >/proc/sys/user/max_inotify_instances; exec "$@"`, "bash", scaler}, args...)...)
			inotify.Env = append(os.Environ(), "SCALER_STATE_DIR="+where.state)
			s = session(inotify)
			Expect(wait(s)).To(Equal(exitFailed))
			Expect(s.Err).To(gbytes.Say(`inotify: 3 of \d+ instances .*sysctl`))
			where.expectNothingLeft()
		}
	})

	DescribeTable("11: an environment that does not say where state belongs is an error that names the variable",
		func(change func([]string) []string, want string) {
			where := newPlace()
			for _, args := range [][]string{where.referenceArgs(), {"cluster", "status"}} {
				cmd := where.command(args...)
				cmd.Env = change(without(cmd.Env, "SCALER_STATE_DIR", "XDG_STATE_HOME"))
				s := session(cmd)
				Expect(wait(s)).NotTo(Equal(exitDone))
				Expect(s.Err).To(gbytes.Say(want))
			}
			Expect(where.out).NotTo(BeADirectory())
		},
		Entry("no HOME", func(env []string) []string { return without(env, "HOME") }, "set HOME or SCALER_STATE_DIR"),
		Entry("a relative XDG_STATE_HOME", func(env []string) []string { return append(env, "XDG_STATE_HOME=state") }, `XDG_STATE_HOME="state": want an absolute path`),
	)

	It("11: time that scaler did not run is a warning on the figures of that phase", func() {
		where := newPlace()
		const asked, interval = 5 * time.Second, measure.ClockInterval // between two looks at the clocks
		run := where.start(where.referenceArgs("--steady", "12s")...)
		where.reach(run, record.PhaseSteady)
		before := time.Now()
		signal(run, syscall.SIGSTOP)
		stopped := time.Now()
		<-time.After(asked)
		least := time.Since(stopped)
		signal(run, syscall.SIGCONT)
		most := time.Since(before)
		Expect(wait(run)).To(Equal(exitDone))
		var abouts []string
		var paused float64
		for _, w := range where.recorded().Warnings {
			// On a busy machine scaler may not run for a time in other phases, too.
			if w.Reason == record.ReasonPaused && w.Phase == record.PhaseSteady {
				paused = max(paused, w.Values["pausedSeconds"])
				abouts = append(abouts, w.About)
			}
		}
		Expect(abouts).To(And(Not(BeEmpty()), HaveEach("controlPlane.steady.cores.peak")))
		Expect(paused).To(And(BeNumerically(">", (least-interval).Seconds()-0.1), BeNumerically("<", most.Seconds()+3)))
	})
})

// zeros reads like /dev/zero.
type zeros struct{}

func (zeros) Read(to []byte) (int, error) {
	clear(to)
	return len(to), nil
}

// without returns an environment without some variables.
func without(env []string, names ...string) []string {
	var rest []string
	for _, variable := range env {
		keep := true
		for _, name := range names {
			keep = keep && !strings.HasPrefix(variable, name+"=")
		}
		if keep {
			rest = append(rest, variable)
		}
	}
	return rest
}
