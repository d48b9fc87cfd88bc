//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/test/exposure"
)

// The numbers of rounds and the time are small in continuous integration. For the long
// campaigns of docs/security.md they are set by these variables.
const (
	killsVariable      = "SCALER_E2E_KILLS"
	interruptsVariable = "SCALER_E2E_INTERRUPTS"
	limitVariable      = "SCALER_E2E_LIMIT"  // time after which no new round begins, as in 5m
	reportVariable     = "SCALER_E2E_REPORT" // file to which a line per round is added
	firstVariable      = "SCALER_E2E_FIRST"  // number of the first round: which command it begins with
)

// ended is a command that is ended at a random time.
type ended struct {
	name string
	// args returns the arguments of the command in a place.
	args func(place) []string
	// within is the time in which it is ended; less where it turned out to be shorter.
	within time.Duration
	// starts: it starts processes.
	starts bool
	// phases are the phases of its record that it is also ended in: three of four rounds aim at
	// a moment of one of them, as starting a cluster is most of a short run.
	phases []record.PhaseName
}

// endable returns all commands of scaler that run for a while, those that start something several times; not bench, which needs two
// versions.
func endable() []*ended {
	complete := sync.OnceValue(completeRecord)
	rollout := func(args ...string) func(place) []string {
		return func(p place) []string { return p.referenceArgs(args...) }
	}
	on := func(args ...string) func(place) []string {
		return func(place) []string { return append(slices.Clip(args), complete()) }
	}
	short := func(args ...string) func(place) []string {
		return func(p place) []string {
			return append(slices.Clip(args), "--preset", "quick", "--dilate", "1", "--out", p.out)
		}
	}
	const long = 25 * time.Second
	const otherEnv = "PILOT_ENABLE_CDS_CACHE=false" // makes a second side without another version, which takes minutes to build
	each := []record.PhaseName{record.PhaseBaseline, record.PhaseRollout, record.PhaseSettle, record.PhaseSteady}
	disturbed := []record.PhaseName{record.PhaseRollout, record.PhaseProbe, record.PhaseStorm, record.PhaseChurn}
	all := []*ended{
		{"rollout", rollout("--probes", "2", "--certificate-storm", "--churn", "2/s"), long, true, disturbed},
		{"rollout --keep", rollout("--keep"), long, true, each},
		{"rollout --fault", rollout("--fault", "kill-control-plane@steady", "--fault", "rolling-restart@steady"), long, true, []record.PhaseName{record.PhaseFault}},
		{"rollout, istiod", rollout("--control-plane", "istiod", "--probes", "2"), long, true, append(slices.Clip(each), record.PhaseProbe)},
		{"cluster up", func(place) []string { return []string{"cluster", "up", "it"} }, 12 * time.Second, true, nil},
		{"rollout --pods 4,5", rollout("--pods", "4,5", "--steady", "1s"), 2 * long, true, each},
		{"rollout --workers 2", rollout("--workers", "2", "--probes", "2"), long, true, append(slices.Clip(each), record.PhaseProbe)},
		{"rollout --control-plane-memory", rollout("--control-plane-memory", "512Mi", "--priority=false"), long, true, each},
		{"rollout --real-sidecars", rollout("--real-sidecars", "2", "--control-plane", "istiod"), long, true, each},
		{"latency", func(p place) []string {
			return []string{"latency", "--control-plane", "reference", "--rps", "50", "--duration", "2s", "--variants", "none,strict", "--out", p.out}
		}, long, true, nil},
		{"calibrate", func(place) []string {
			return []string{"calibrate", "--sidecars", "50", "--hold", "1s", "--changes", "3"}
		}, 10 * time.Second, true, nil},
		{"calibrate --fidelity", func(place) []string {
			return []string{"calibrate", "--fidelity", "--cases", "strict", "--starts", "1", "--changes", "8"}
		}, long, true, nil},
		{"diff", short("diff", "--pods", "5", "--to-env", otherEnv), 2 * long, true, nil},
		{"assess", short("assess", "--mesh", "sample:bookinfo", "--from", "1.31.0", "--to", "1.31.0", "--to-env", otherEnv, "--control-plane-memory", "1Gi", "--pause", "1s"), 3 * long, true, nil},
		{"upgrade", short("upgrade", "--pods", "5", "--from", "1.31.0", "--to", "1.31.0", "--to-env", otherEnv, "--canary", "100%", "--pause", "1s"), 2 * long, true, nil},
		{"limits", short("limits", "--pods", "5", "--slo", "push.p50<10s", "--change", "2/s", "--max", "4/s"), 2 * long, true, nil},
		{"tune", short("tune", "--pods", "5", "--setting", "PILOT_PUSH_THROTTLE=20,50", "--repeats", "2"), 2 * long, true, nil},
		{"dashboards serve", on("dashboards", "serve", "--no-grafana"), 5 * time.Second, true, nil},
		{"dashboards export", func(p place) []string { return []string{"dashboards", "export", p.out} }, time.Second, false, nil},
		{"xds", func(place) []string {
			return []string{"xds", "--address", "127.0.0.1:9", "--clients", "20", "--plaintext", "--duration", "5s"}
		}, 5 * time.Second, false, nil},
	}
	for _, args := range [][]string{{"report", "-o", "html"}, {"compare"}, {"plan", "--pods", "100"}, {"doctor"}, {"components", "list"}, {"cleanup"}, {"cluster", "status"}} {
		e := &ended{name: strings.Join(args, " "), args: func(place) []string { return args }, within: time.Second}
		switch args[0] {
		case "report", "plan":
			e.args = on(args...)
		case "compare":
			e.args = func(place) []string { return []string{"compare", complete(), complete()} }
		}
		all = append(all, e)
	}
	return all
}

// completeRecord makes the record of a complete run, for commands that read one. It lasts as long as the spec.
func completeRecord() string {
	GinkgoHelper()
	where := newPlace()
	Expect(wait(where.start(where.referenceArgs()...))).To(Equal(exitDone))
	return where.out
}

var _ = Describe("nothing is left at random", acceptance, func() {
	It("8: when scaler is killed with SIGKILL, and cleanup is called", func() {
		commands := slices.DeleteFunc(endable(), func(e *ended) bool { return !e.starts })
		c := newCampaign("kill -9", killsVariable, 5)
		for round := range c.rounds() {
			// Only of those that start something can anything be left.
			command := commands[round%len(commands)]
			c.end(command, func(s *gexec.Session) string {
				s.Kill()
				return "SIGKILL"
			}, func(where place, _ int) {
				for _, group := range where.groups() { // of a kept cluster
					if status := where.start("cluster", "down", filepath.Base(group)); wait(status) != exitDone {
						GinkgoWriter.Println("no kept cluster:", string(status.Err.Contents()))
					}
				}
				Expect(wait(where.start("cleanup"))).To(Equal(exitDone))
			})
		}
	})

	It("6: when scaler is interrupted", func() {
		commands := endable()
		c := newCampaign("interrupt", interruptsVariable, 5)
		for round := range c.rounds() {
			c.end(commands[round%len(commands)], endAtOnce, func(where place, code int) {
				Expect(code).To(Or(Equal(exitInterrupted), Equal(exitDone)), "0 is a command that had just ended")
				if code == exitInterrupted {
					return
				}
				for _, group := range where.groups() { // a kept cluster
					Expect(wait(where.start("cluster", "down", filepath.Base(group)))).To(Equal(exitDone))
				}
			})
		}
	})
})

// endAtOnce sends a signal that ends scaler, or a second one while it stops.
func endAtOnce(s *gexec.Session) string {
	number := []syscall.Signal{syscall.SIGINT, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}[rand.IntN(5)]
	// An error is that it has ended.
	_ = syscall.Kill(s.Command.Process.Pid, number)
	text := number.String()
	if rand.IntN(4) == 0 {
		select {
		case <-s.Exited:
		case <-time.After(150*time.Millisecond + time.Duration(rand.Int64N(int64(time.Second)))):
			_ = syscall.Kill(s.Command.Process.Pid, syscall.SIGINT)
			text += " twice"
		}
	}
	return text
}

// campaign ends commands at random times and writes down how.
type campaign struct {
	name         string
	first, count int
	until        time.Time
	report       string
}

func newCampaign(name, variable string, count int) *campaign {
	GinkgoHelper()
	c := &campaign{name: name, count: count, until: time.Now().Add(24 * time.Hour), report: os.Getenv(reportVariable)}
	for variable, to := range map[string]*int{variable: &c.count, firstVariable: &c.first} {
		if text := os.Getenv(variable); text != "" {
			n, err := strconv.Atoi(text)
			Expect(err).NotTo(HaveOccurred())
			*to = n
		}
	}
	if text := os.Getenv(limitVariable); text != "" {
		limit, err := time.ParseDuration(text)
		Expect(err).NotTo(HaveOccurred())
		c.until = time.Now().Add(limit)
	}
	return c
}

// rounds returns the numbers of the rounds, as long as there is time.
func (c *campaign) rounds() func(func(int) bool) {
	return func(yield func(int) bool) {
		for n := range c.count {
			if time.Now().After(c.until) || !yield(c.first+n) {
				return
			}
		}
	}
}

// end starts a command in a new place, ends it at a random time with how, clears up with
// clearUp, which gets the exit code, and expects that nothing is left. A command that ended
// by itself before is started again, and ended earlier.
func (c *campaign) end(command *ended, how func(*gexec.Session) string, clearUp func(place, int)) {
	GinkgoHelper()
	for {
		where := newPlace()
		args := command.args(where)
		began := time.Now()
		s := where.start(args...)
		wanted := time.Duration(rand.Int64N(int64(command.within)))
		if len(command.phases) > 0 && rand.IntN(4) > 0 {
			aimed := command.phases[rand.IntN(len(command.phases))]
			Eventually(func() bool { return where.phase() == aimed || s.ExitCode() != -1 }).WithTimeout(3 * time.Minute).Should(BeTrue())
			wanted = time.Duration(rand.Int64N(int64(time.Second)))
		}
		select {
		case <-s.Exited:
			command.within = max(time.Since(began)*9/10, 20*time.Millisecond)
			for _, group := range where.groups() { // a kept cluster
				Expect(wait(where.start("cluster", "down", filepath.Base(group)))).To(Equal(exitDone))
			}
			continue
		case <-time.After(wanted):
		}
		after := time.Since(began)
		phase := string(where.phase())
		before := where.traces(s.Command.Process.Pid)
		signal := how(s)
		code := wait(s)
		if c.name == "interrupt" && unhandled(s) {
			Expect(where.begun() || len(before.processes) > 1).To(BeFalse(), "%s did not stop what it had begun", command.name)
			code = exitInterrupted // scaler did not listen for signals yet
		}
		if !command.starts && code != exitInterrupted && len(before.processes) < 2 {
			command.within = max(command.within*9/10, time.Millisecond) // it had just ended by itself
			continue
		}
		clearUp(where, code)
		line := fmt.Sprintf("%s\t%s\tafter %.2f s\tphase %q\t%d processes, %d sockets\t%s\texit %d\n",
			c.name, command.name, after.Seconds(), phase, len(before.processes), len(before.sockets), signal, code)
		GinkgoWriter.Print(line)
		where.expectNothingLeft()
		where.expectGone(before)
		if code != -1 && c.name == "interrupt" { // what is killed cannot remove its temporary files
			Expect(os.ReadDir(where.temporary())).To(BeEmpty(), line)
		}
		if c.report != "" {
			f, err := os.OpenFile(c.report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			Expect(err).NotTo(HaveOccurred())
			_, err = f.WriteString(line)
			Expect(errors.Join(err, f.Close())).To(Succeed())
		}
		return
	}
}

// begun reports whether a scaler has made its record folder or its state folder in this place.
func (p place) begun() bool {
	_, out := os.Stat(p.out)
	_, state := os.Stat(p.state)
	return out == nil || state == nil
}

// unhandled reports whether a signal did to a scaler that has ended what it does to any Go program
// that does not listen for it.
func unhandled(s *gexec.Session) bool {
	status, ok := s.Command.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() || bytes.Contains(s.Err.Contents(), []byte("SIGQUIT: quit"))
}

// traces identify a scaler and its descendants.
type traces struct {
	scaler    int               // its process id
	processes map[int]string    // their start times by process id
	sockets   map[string]string // addresses that they listen on, as listeners has them
}

// traces finds all descendants of a scaler, in whatever environment, and their sockets.
func (p place) traces(scaler int) traces {
	GinkgoHelper()
	pids, err := exposure.Descendants(scaler)
	Expect(err).NotTo(HaveOccurred())
	found := traces{scaler: scaler, processes: map[int]string{}, sockets: map[string]string{}}
	listening := listeners()
	for _, pid := range pids {
		found.processes[pid] = startTime(pid)
		maps.Copy(found.sockets, heldBy(pid, listening))
	}
	return found
}

// expectGone holds when none of the processes lives and none of the sockets is there.
func (p place) expectGone(before traces) {
	GinkgoHelper()
	for pid, start := range before.processes {
		Eventually(func() bool { return start != "" && startTime(pid) == start }).Should(BeFalse(), "process %d is there still", pid)
	}
	Expect(controlGroups(before.scaler)).To(BeEmpty())
	now := listeners()
	for socket, address := range before.sockets {
		Expect(now).NotTo(HaveKey(socket), "something listens on %s still", address)
	}
}

// startTime returns the start time of a process by proc_pid_stat(5); "" if there is none, or it is a zombie.
func startTime(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

// controlGroups returns the control groups that the scaler with a process id has made.
func controlGroups(pid int) []string {
	GinkgoHelper()
	prefix := fmt.Sprintf("scaler-%d-", pid)
	var found []string
	Expect(filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // removed meanwhile, or another user's
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), prefix) {
			found = append(found, path)
		}
		return nil
	})).To(Succeed())
	return found
}
