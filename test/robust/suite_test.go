//go:build e2e

package robust

import (
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// Exit codes, as docs/reference/exit-codes.md states them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitInterrupted = 130
)

var scaler string // the program under test

func TestRobust(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	// A process starts with the signals ignored that its parent ignores, as below nohup,
	// but not with those that its parent handles.
	hangups := make(chan os.Signal, 1)
	ossignal.Notify(hangups, syscall.SIGHUP)
	defer ossignal.Stop(hangups)
	RunSpecs(t, "robust", Label("e2e"))
}

// binaryVariable is the program to test, if it is not to be built.
const binaryVariable = "SCALER_ROBUST_BINARY"

var _ = BeforeSuite(func() {
	if scaler = os.Getenv(binaryVariable); scaler != "" {
		return
	}
	var err error
	scaler, err = gexec.Build("scaler.mesh/scaler/cmd/scaler", "-trimpath")
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	if recorded != "" {
		Expect(os.RemoveAll(filepath.Dir(recorded))).To(Succeed())
	}
	gexec.CleanupBuildArtifacts()
})

// place is where scalers run: their state and what they are to leave.
type place struct{ state, out string }

// newPlace is an empty place that lasts as long as the spec.
func newPlace() place {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "scaler-robust-")
	Expect(err).NotTo(HaveOccurred())
	p := place{state: filepath.Join(dir, "state"), out: filepath.Join(dir, "out")}
	Expect(os.Mkdir(filepath.Join(dir, "tmp"), 0o755)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		groups, err := filepath.Glob(filepath.Join(p.state, "*", "*"))
		Expect(err).NotTo(HaveOccurred())
		for _, group := range groups { // of a spec that failed
			if s, err := process.Inspect(group); err == nil {
				Expect(s.Remove(ctx)).To(Succeed())
			}
		}
		Expect(os.RemoveAll(dir)).To(Succeed())
	})
	return p
}

// command is `scaler ARGS...` in this place.
func (p place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(scaler, args...)
	cmd.Env = append(os.Environ(), "SCALER_STATE_DIR="+p.state)
	if tmp := filepath.Join(filepath.Dir(p.state), "tmp"); exists(tmp) {
		cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	return cmd
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// start starts it.
func (p place) start(args ...string) *gexec.Session {
	GinkgoHelper()
	return session(p.command(args...))
}

func session(cmd *exec.Cmd) *gexec.Session {
	GinkgoHelper()
	GinkgoWriter.Println("$", strings.Join(cmd.Args, " "))
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	return session
}

// rolloutArgs are those of a small rollout against the reference control plane.
func (p place) rolloutArgs(args ...string) []string {
	return append([]string{
		"rollout", "--dilate", "1", "--control-plane", "reference", "--pods", "5", "--out", p.out, "--no-calibrate",
		"--baseline", "1s", "--settle", "1s", "--steady", "2s", "--probes", "0", "--converge-timeout", "90s",
	}, args...)
}

// wait waits for the end of a scaler and returns its exit code.
func wait(session *gexec.Session) int {
	GinkgoHelper()
	Eventually(session).WithTimeout(2 * time.Minute).Should(gexec.Exit())
	return session.ExitCode()
}

// phase is the phase that the run in this place is in, "" when it is in none.
func (p place) phase() record.PhaseName {
	runs, err := record.Read(p.out)
	if err != nil || len(runs) == 0 || len(runs[0].Phases) == 0 {
		return "" // not there yet
	}
	if last := runs[0].Phases[len(runs[0].Phases)-1]; last.End == nil {
		return last.Name
	}
	return ""
}

// begin waits until the run in this place is in any phase.
func (p place) begin(session *gexec.Session) {
	GinkgoHelper()
	Eventually(func() (record.PhaseName, error) {
		now := p.phase()
		if code := session.ExitCode(); code != -1 && now == "" {
			return "", StopTrying("scaler ended before, with " + strconv.Itoa(code))
		}
		return now, nil
	}).WithTimeout(2 * time.Minute).ShouldNot(BeEmpty())
}

// reach waits until the run in this place is in a phase, which must last until what is
// then done in it is done: the wait may end seconds after its begin.
func (p place) reach(session *gexec.Session, phase record.PhaseName) {
	GinkgoHelper()
	Eventually(func() (record.PhaseName, error) {
		now := p.phase()
		if code := session.ExitCode(); code != -1 && now != phase {
			return "", StopTrying("scaler ended before, with " + strconv.Itoa(code))
		}
		return now, nil
	}).WithTimeout(2 * time.Minute).Should(Equal(phase))
}

// recorded is the one run that is recorded in this place.
func (p place) recorded() record.Run {
	GinkgoHelper()
	runs, err := record.Read(p.out)
	Expect(err).NotTo(HaveOccurred())
	Expect(runs).To(HaveLen(1))
	return runs[0]
}

// processes are those that scalers in this place have started and that live.
func (p place) processes() []int {
	GinkgoHelper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	Expect(err).NotTo(HaveOccurred())
	var pids []int
	for _, path := range environments {
		// One that cannot be read has ended, or is another user's.
		if env, err := os.ReadFile(path); err == nil && strings.Contains("\x00"+string(env), "\x00SCALER_PROCESS_GROUP_DIR="+p.state+"/") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			Expect(err).NotTo(HaveOccurred())
			pids = append(pids, pid)
		}
	}
	return pids
}

// groups are the folders of process groups in this place.
func (p place) groups() []string {
	GinkgoHelper()
	dirs, err := filepath.Glob(filepath.Join(p.state, "*", "*"))
	Expect(err).NotTo(HaveOccurred())
	return dirs
}

// begun reports whether a scaler has made its record folder or its state folder in this place.
func (p place) begun() bool { return exists(p.out) || exists(p.state) }

// expectNothingLeft holds when all that scalers started in this place is gone:
// processes, and with them what they listened on, folders, and control groups.
func (p place) expectNothingLeft() {
	GinkgoHelper()
	Expect(p.processes()).To(BeEmpty())
	Expect(p.groups()).To(BeEmpty())
}
