//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// Exit codes, as docs/reference/exit-codes.md states them.
const (
	exitDone        = 0
	exitUndecided   = 4
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// place has the folders of scalers: their state and the records that they leave.
type place struct {
	state, out string
	bin        string // folder of the programs that they start; "" = their own
}

// newPlace makes an empty place that lasts as long as the spec or its container.
func newPlace() place {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "scaler-e2e-")
	Expect(err).NotTo(HaveOccurred())
	p := place{state: filepath.Join(dir, "state"), out: filepath.Join(dir, "out")}
	Expect(os.Mkdir(p.temporary(), 0o755)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		for _, group := range p.groups() { // of a spec that failed
			if s, err := process.Inspect(group); err == nil {
				Expect(s.Remove(ctx)).To(Succeed())
			}
		}
		Expect(os.RemoveAll(dir)).To(Succeed())
	})
	return p
}

// temporary returns the folder of scalers' temporary files.
func (p place) temporary() string { return filepath.Join(filepath.Dir(p.state), "tmp") }

// command is `scaler ARGS...` in this place.
func (p place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(scaler, args...)
	cmd.Env = append(os.Environ(), "SCALER_STATE_DIR="+p.state, "SCALER_IMAGE_REGISTRY=none", "TMPDIR="+p.temporary())
	if p.bin != "" {
		cmd.Env = append(cmd.Env, "SCALER_BIN_DIR="+p.bin)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	return cmd
}

// hold has a program of istiod's rollouts in this place answer for its version and then do nothing:
// what starts it waits for it until it is interrupted.
func (p *place) hold(ctx context.Context, program string) {
	GinkgoHelper()
	driver, _, err := drivers.Find(nil, "istiod")
	Expect(err).NotTo(HaveOccurred())
	paths, err := component.Paths(ctx, component.Options{BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR")},
		drivers.RunPrograms(driver)...)
	Expect(err).NotTo(HaveOccurred())
	Expect(paths).To(HaveKey(program))
	p.bin = GinkgoT().TempDir()
	for name, path := range paths {
		if name != program {
			Expect(os.Symlink(path, filepath.Join(p.bin, name))).To(Succeed())
			continue
		}
		script := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in *version) exec '%s' \"$@\" ;; esac\nexec sleep infinity\n", path)
		Expect(os.WriteFile(filepath.Join(p.bin, name), []byte(script), 0o755)).To(Succeed())
	}
}

// start starts it.
func (p place) start(args ...string) *gexec.Session {
	GinkgoHelper()
	return session(p.command(args...))
}

// session starts a command, which ends with the spec.
func session(cmd *exec.Cmd) *gexec.Session {
	GinkgoHelper()
	GinkgoWriter.Println("$", strings.Join(cmd.Args, " "))
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	return session
}

// longSettle and longSteady make the phases settle and steady longer, where what is left of the rollout would be
// counted in steady, and where there is something to measure in steady.
const longSettle, longSteady = "--settle=3s", "--steady=4s"

// rollout starts `scaler rollout` with so many pods, at once unless args say otherwise, and short phases, in which time is
// not slowed down.
func (p place) rollout(pods int, args ...string) *gexec.Session {
	GinkgoHelper()
	if !slices.Contains(args, "--dataplane") { // sidecars alone start later than their pods
		args = append([]string{"--set", "mesh.sidecars.startDelay=0s"}, args...)
	}
	return p.start(append([]string{
		"rollout", "--dilate", "1", "--set", "load.arrival=all", "--pods", strconv.Itoa(pods), "--out", p.out, "-o", "json",
		"--baseline", "1s", "--settle", "1s", "--steady", "2s", "--probes", "0",
		"--converge-timeout", "90s", // of each phase: below wait's, so that scaler says what is lacking
	}, args...)...)
}

// referenceArgs returns the arguments of a small rollout with the reference control plane, which starts in seconds.
func (p place) referenceArgs(args ...string) []string {
	return append([]string{
		"rollout", "--dilate", "1", "--set", "load.arrival=all", "--control-plane", "reference", "--pods", "5", "--out", p.out, "--calibrate=false",
		"--baseline", "1s", "--settle", "1s", "--steady", "2s", "--probes", "0", "--converge-timeout", "90s",
	}, args...)
}

// wait waits for the end of a scaler and returns its exit code.
func wait(session *gexec.Session) int {
	GinkgoHelper()
	Eventually(session).WithTimeout(3 * time.Minute).Should(gexec.Exit())
	return session.ExitCode()
}

// signal sends a signal to a scaler alone.
func signal(session *gexec.Session, number syscall.Signal) {
	GinkgoHelper()
	Expect(syscall.Kill(session.Command.Process.Pid, number)).To(Succeed())
}

// interrupt does what ctrl-C does in a terminal: the whole process group of the
// command gets SIGINT.
func interrupt(session *gexec.Session) {
	GinkgoHelper()
	Expect(syscall.Kill(-session.Command.Process.Pid, syscall.SIGINT)).To(Succeed())
}

// printed returns the one run that a scaler has printed as JSON.
func printed(session *gexec.Session) record.Run {
	GinkgoHelper()
	var list record.RunList
	Expect(json.Unmarshal(session.Out.Contents(), &list)).To(Succeed())
	Expect(list.APIVersion).To(Equal(record.APIVersion))
	Expect(list.Kind).To(Equal(record.ListKind))
	Expect(list.Items).To(HaveLen(1))
	return list.Items[0]
}

// recorded returns the one run that is recorded in this place.
func (p place) recorded() record.Run {
	GinkgoHelper()
	runs, err := record.Read(p.out)
	Expect(err).NotTo(HaveOccurred())
	Expect(runs).To(HaveLen(1))
	return runs[0]
}

// phase returns the phase that the run in this place is in, "" when it is in none.
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
			return "", StopTrying(fmt.Sprintf("scaler ended before, with %d:\n%s", code, session.Err.Contents()))
		}
		return now, nil
	}).WithTimeout(2 * time.Minute).ShouldNot(BeEmpty())
}

// reach waits until the run in this place is in a phase, and fails at once where
// that cannot be any more. The phase must last until what is then done in it is done,
// and the wait may end seconds after its begin.
func (p place) reach(session *gexec.Session, phase record.PhaseName) {
	GinkgoHelper()
	Eventually(func() (record.PhaseName, error) {
		now := p.phase()
		if code := session.ExitCode(); code != -1 && now != phase {
			return "", StopTrying(fmt.Sprintf("scaler ended before, with %d:\n%s", code, session.Err.Contents()))
		}
		return now, nil
	}).WithTimeout(2 * time.Minute).Should(Equal(phase))
}

// children returns the processes that scalers in this place have started and that
// live.
func (p place) children() []int {
	GinkgoHelper()
	return carrying(p.state + "/")
}

// carrying returns the living processes of groups, whose folders begin with a text, by the environment that all of them carry.
func carrying(folder string) []int {
	GinkgoHelper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	Expect(err).NotTo(HaveOccurred())
	var pids []int
	for _, path := range environments {
		// One that cannot be read has ended, or is another user's.
		if env, err := os.ReadFile(path); err == nil && strings.Contains("\x00"+string(env)+"\x00", "\x00SCALER_PROCESS_GROUP_DIR="+folder) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			Expect(err).NotTo(HaveOccurred())
			pids = append(pids, pid)
		}
	}
	return pids
}

// child returns the process id of a scaler's child by the name that its group has for it.
func (p place) child(name string) int {
	GinkgoHelper()
	for _, group := range p.groups() {
		s, err := process.Inspect(group)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		for _, c := range s.Children {
			if c.Name == name && c.Alive {
				return c.PID
			}
		}
	}
	Fail("no " + name + " runs")
	return 0
}

// running returns the process id of a scaler's child, or of a child of that, by the name of its program.
func (p place) running(program string) int {
	GinkgoHelper()
	for _, pid := range p.children() {
		// One that cannot be read has ended.
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if path, _, _ := strings.Cut(string(line), "\x00"); filepath.Base(path) == program {
			return pid
		}
	}
	Fail("no " + program + " runs")
	return 0
}

// groups returns the folders of process groups in this place.
func (p place) groups() []string {
	GinkgoHelper()
	groups, err := filepath.Glob(filepath.Join(p.state, "*", "*"))
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(groups, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.IsDir()
	})
}

// expectNothingLeft holds when all that scalers started in this place is gone:
// processes, the sockets they listened on, and folders.
func (p place) expectNothingLeft(sockets ...string) {
	GinkgoHelper()
	Expect(p.children()).To(BeEmpty())
	Expect(p.groups()).To(BeEmpty())
	for _, socket := range sockets {
		Expect(listeners()).NotTo(HaveKey(socket))
	}
}

// sockets returns the sockets that a scaler and its children listen on now. Not ports: of
// specs that run side by side, one may take a port that another has left.
func (p place) sockets(session *gexec.Session) []string {
	GinkgoHelper()
	all := listeners()
	var sockets []string
	for _, pid := range append(p.children(), session.Command.Process.Pid) {
		sockets = slices.AppendSeq(sockets, maps.Keys(heldBy(pid, all)))
	}
	return sockets
}

// heldBy returns the sockets of all that a process has open.
func heldBy(pid int, all map[string]string) map[string]string {
	GinkgoHelper()
	links, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	Expect(err).NotTo(HaveOccurred())
	found := map[string]string{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			continue // it was closed
		}
		if address, ok := all[target]; ok {
			found[target] = address
		}
	}
	return found
}

// listeners returns the addresses of all listening TCP sockets of this machine, by
// socket as /proc/PID/fd names it, from what proc_net(5) describes.
func listeners() map[string]string {
	GinkgoHelper()
	const listening = "0A"
	all := map[string]string{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == listening {
				all["socket:["+f[9]+"]"] = f[1]
			}
		}
	}
	return all
}

// expectFollowed expects that changes of these kinds were followed, and none was lost.
func expectFollowed(run record.Run, kinds ...record.ChangeKind) {
	GinkgoHelper()
	for _, kind := range kinds {
		Expect(run.Latencies.Push[kind]).NotTo(BeNil(), "%s", kind)
		Expect(known(run.Latencies.Push[kind]).Count).NotTo(BeZero(), "%s", kind)
		Expect(known(run.Latencies.Push[kind]).Lost).To(BeZero(), "%s", kind)
	}
}

// known returns the value that a pointer in a record points to. A nil pointer, a figure that is not known, fails the spec with the
// line that needs it, where a panic would name nothing.
func known[T any](figure *T) T {
	GinkgoHelper()
	if figure == nil {
		_, file, line, _ := runtime.Caller(1)
		source, err := os.ReadFile(filepath.Base(file))
		Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(string(source), "\n")
		Expect(len(lines)).To(BeNumerically(">=", line))
		Fail(fmt.Sprintf("%s:%d needs a figure that is not known: %s", filepath.Base(file), line, strings.TrimSpace(lines[line-1])))
	}
	return *figure
}
