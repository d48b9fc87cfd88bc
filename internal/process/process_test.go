package process_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"scaler.mesh/scaler/internal/process"
)

// shell returns a child that runs a script and logs to a file in dir.
func shell(name, dir, script string) process.Spec {
	return process.Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(dir, "logs", name+".log")}
}

// gone reports that no process has this id, or a zombie that is not ours.
func gone(pid int) func() bool {
	return func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return true
		}
		return strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " Z")
	}
}

func readPID(path string) func() (int, error) {
	return func() (int, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(data)))
	}
}

var _ = Describe("a group", func() {
	var (
		dir   string
		group *process.Group
	)

	BeforeEach(func() {
		ignore := goleak.IgnoreCurrent()
		dir = filepath.Join(GinkgoT().TempDir(), "group")
		var err error
		group, err = process.OpenGroup(dir, process.GroupOptions{Grace: 300 * time.Millisecond})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(group.Stop(ctx)).To(Succeed())
			Eventually(func() error { return goleak.Find(ignore) }).Should(Succeed())
		})
	})

	It("gives a child its own process group, a minimal environment and a log", func() {
		GinkgoT().Setenv("SECRET", "x")
		p, err := group.Start(shell("one", dir, `echo "secret=$SECRET path=$PATH"; sleep 1000`))
		Expect(err).NotTo(HaveOccurred())
		pgid, err := syscall.Getpgid(p.PID())
		Expect(err).NotTo(HaveOccurred())
		Expect(pgid).To(Equal(p.PID()))
		Eventually(func() (string, error) {
			log, err := os.ReadFile(filepath.Join(dir, "logs", "one.log"))
			return string(log), err
		}).Should(Equal("secret= path=" + os.Getenv("PATH") + "\n"))
		Expect(p.Err()).NotTo(HaveOccurred())
	})

	It("stops children in reverse order, with SIGTERM first", func(ctx SpecContext) {
		// None of these must be killed, however busy the machine is.
		group, err := process.OpenGroup(filepath.Join(dir, "patient"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"first", "second"} {
			spec := shell(name, dir, `trap 'echo `+name+` >> order; exit' TERM; echo > `+name+`; while :; do sleep 0.01; done`)
			spec.Dir = dir
			p, err := group.Start(spec)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.Name()).To(Equal(name))
		}
		for _, name := range []string{"first", "second"} {
			Eventually(filepath.Join(dir, name)).Should(BeAnExistingFile())
		}
		Expect(group.Stop(ctx)).To(Succeed())
		Expect(os.ReadFile(filepath.Join(dir, "order"))).To(BeEquivalentTo("second\nfirst\n"))
	})

	It("kills what ignores SIGTERM, and what a child started, after the grace", func(ctx SpecContext) {
		p, err := group.Start(shell("deaf", dir, `trap '' TERM; sleep 1000 & echo $! > `+dir+`/grandchild; wait; sleep 1000`))
		Expect(err).NotTo(HaveOccurred())
		var grandchild int
		Eventually(readPID(filepath.Join(dir, "grandchild"))).Should(Satisfy(func(pid int) bool { grandchild = pid; return pid > 0 }))
		start := time.Now()
		Expect(p.Stop(ctx)).To(Succeed())
		Expect(time.Since(start)).To(And(BeNumerically(">=", 300*time.Millisecond), BeNumerically("<", 10*time.Second)), "its own grace, not the default")
		Expect(p.Err()).NotTo(HaveOccurred(), "it was asked to end")
		Eventually(gone(grandchild)).Should(BeTrue())
	})

	It("kills at once when the context is done", func(ctx SpecContext) {
		p, err := group.Start(shell("deaf", dir, `trap '' TERM; while :; do sleep 1; done`))
		Expect(err).NotTo(HaveOccurred())
		done, cancel := context.WithCancel(ctx)
		cancel()
		Expect(group.Stop(done)).To(Succeed())
		Expect(p.Done()).To(BeClosed())
		Expect(group.Stop(ctx)).To(Succeed(), "again")
		_, err = group.Start(shell("late", dir, "true"))
		Expect(err).To(MatchError(ContainSubstring("was stopped")))
	})

	It("takes with it what a child that ended by itself left behind", func() {
		p, err := group.Start(shell("short", dir, `sleep 1000 & echo $! > `+dir+`/grandchild`))
		Expect(err).NotTo(HaveOccurred())
		Eventually(p.Done()).Should(BeClosed())
		grandchild, err := readPID(filepath.Join(dir, "grandchild"))()
		Expect(err).NotTo(HaveOccurred())
		Eventually(gone(grandchild)).Should(BeTrue())
	})

	It("collects what left its process group and its parent", func(ctx SpecContext) {
		_, err := group.Start(shell("parent", dir, `setsid sh -c 'trap "" TERM HUP; echo $$ > `+dir+`/escaped; sleep 1000; sleep 1000' & sleep 1000`))
		Expect(err).NotTo(HaveOccurred())
		var escaped int
		Eventually(readPID(filepath.Join(dir, "escaped"))).Should(Satisfy(func(pid int) bool { escaped = pid; return pid > 0 }))
		Expect(group.Stop(ctx)).To(Succeed())
		_, err = os.Stat("/proc/" + strconv.Itoa(escaped))
		Expect(err).To(MatchError(os.ErrNotExist), "reaped, too")
	})

	It("reports an end that was not requested with command and the end of this child's log", func() {
		spec := shell("flaky", dir, `seq 100; echo >&2 "no such file"; exit 3`)
		Expect(os.MkdirAll(filepath.Dir(spec.Log), 0o755)).To(Succeed())
		Expect(os.WriteFile(spec.Log, []byte("of an earlier child\n"), 0o644)).To(Succeed())
		p, err := group.Start(spec)
		Expect(err).NotTo(HaveOccurred())
		Eventually(p.Done()).Should(BeClosed())
		var exit *process.ExitError
		Expect(errors.As(p.Err(), &exit)).To(BeTrue())
		Expect(exit.LogEnd).To(HaveSuffix("99\n100\nno such file"))
		Expect(exit.LogEnd).To(HavePrefix("90\n"))
		Expect(p.Err()).To(MatchError(ContainSubstring("running flaky (/bin/sh -c seq 100")))
		Expect(p.Err()).To(MatchError(ContainSubstring("exit status 3")))

		By("starting it again under the same name")
		p, err = group.Start(shell("flaky", dir, "exit 0"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(p.Done()).Should(BeClosed())
		Expect(errors.As(p.Err(), &exit)).To(BeTrue())
		Expect(exit.LogEnd).To(BeEmpty())
	})

	It("refuses two living children of one name, and programs that are not there", func() {
		_, err := group.Start(shell("one", dir, "sleep 1000"))
		Expect(err).NotTo(HaveOccurred())
		_, err = group.Start(shell("one", dir, "sleep 1000"))
		Expect(err).To(MatchError(ContainSubstring("it runs already")))
		_, err = group.Start(process.Spec{Name: "two", Path: "/does/not/exist"})
		Expect(err).To(MatchError(os.ErrNotExist))
		Expect(err).To(MatchError(HavePrefix("starting two: ")))
	})

	It("accounts a child's processor time", func() {
		Expect(syscall.Mkfifo(filepath.Join(dir, "go"), 0o600)).To(Succeed())
		p, err := group.Start(shell("busy", dir, `read line <`+dir+`/go; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done`))
		Expect(err).NotTo(HaveOccurred())
		_, ended := p.Handle().ExitCPU()
		Expect(ended).To(BeFalse())
		Expect(os.WriteFile(filepath.Join(dir, "go"), []byte("on\n"), 0o600)).To(Succeed())
		Eventually(p.Done()).Should(BeClosed())
		used, ended := p.Handle().ExitCPU()
		Expect(ended).To(BeTrue())
		Expect(used).To(BeNumerically(">", 10*time.Millisecond))
	})

	It("sets no priority without being asked", func() {
		spec := shell("nice", dir, `nice`)
		spec.Priority = process.PriorityLast
		p, err := group.Start(spec)
		Expect(err).NotTo(HaveOccurred())
		Eventually(p.Done()).Should(BeClosed())
		own, err := exec.Command("nice").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(os.ReadFile(spec.Log)).To(BeEquivalentTo(own))
	})

	It("refuses a quota without control groups for priorities", func() {
		quota := process.Quota{Processors: 1}
		Expect(group.CanLimitProcessors(quota)).To(MatchError(ContainSubstring("no control groups for priorities")))
		spec := shell("limited", dir, `true`)
		spec.Quota = quota
		_, err := group.Start(spec)
		Expect(err).To(MatchError(ContainSubstring("starting limited: limiting its processors")))
	})

	It("is kept without the children that it has stopped", func(ctx SpecContext) {
		dir := filepath.Join(GinkgoT().TempDir(), "kept")
		group, err := process.OpenGroup(dir, process.GroupOptions{Keep: true, Grace: 300 * time.Millisecond})
		Expect(err).NotTo(HaveOccurred())
		started := map[string]*process.Process{}
		for name, script := range map[string]string{"stays": "exec sleep 1000", "stopped": "exec sleep 1000", "died": "exit 1"} {
			started[name], err = group.Start(shell(name, dir, script))
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(started["stopped"].Stop(ctx)).To(Succeed())
		Eventually(started["died"].Done()).Should(BeClosed())
		Expect(group.MarkKept()).To(Succeed())
		state, err := process.Inspect(dir)
		Expect(err).NotTo(HaveOccurred())
		names := map[string]bool{}
		for _, c := range state.Children {
			names[c.Name] = c.Alive
		}
		Expect(names).To(Equal(map[string]bool{"stays": true, "died": false}))
		Expect(state.Remove(ctx)).To(Succeed())
	})

	Describe("readiness", func() {
		It("comes when the probe succeeds", func(ctx SpecContext) {
			p, err := group.Start(shell("one", dir, "sleep 1000"))
			Expect(err).NotTo(HaveOccurred())
			calls := 0
			Expect(p.WaitReady(ctx, func(context.Context) error {
				if calls++; calls < 3 {
					return errors.New("not yet")
				}
				return nil
			})).To(Succeed())
		})
		It("ends with the process, even when a probe hangs", func(ctx SpecContext) {
			p, err := group.Start(shell("one", dir, "echo bad flag; sleep 0.1; exit 2"))
			Expect(err).NotTo(HaveOccurred())
			err = p.WaitReady(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			Expect(err).To(MatchError(ContainSubstring("bad flag")))
		})
		It("ends with the context and reports the error of the last probe", func(ctx SpecContext) {
			p, err := group.Start(shell("one", dir, "sleep 1000"))
			Expect(err).NotTo(HaveOccurred())
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			refused := errors.New("connection refused")
			err = p.WaitReady(short, func(context.Context) error { return refused })
			Expect(err).To(MatchError(refused))
			Expect(err).To(MatchError(context.DeadlineExceeded))
			Expect(err).To(MatchError(ContainSubstring("waiting for one to be ready")))
		})
	})

	It("holds its folder alone", func(ctx SpecContext) {
		_, err := process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).To(MatchError(ContainSubstring("in use by process " + strconv.Itoa(os.Getpid()))))
		state, err := process.Inspect(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(state.Remove(ctx)).To(MatchError(ContainSubstring("in use by")))
		Expect(group.MarkKept()).To(MatchError(ContainSubstring("without Keep")))

		By("stopping it, which frees the folder")
		Expect(group.Stop(ctx)).To(Succeed())
		Expect(process.Orphans(dir)).To(BeEmpty())
		again, err := process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Stop(ctx)).To(Succeed())
	})
})

var _ = Describe("an owner that was killed", func() {
	It("takes its children with it, and cleanup removes the folder", func(ctx SpecContext) {
		root := GinkgoT().TempDir()
		dir := filepath.Join(root, "runs", "a")
		state := killOwner(dir, "")
		Expect(state.Children).To(HaveLen(1))
		Eventually(gone(state.Children[0].PID)).Should(BeTrue())

		_, err := process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).To(MatchError(ContainSubstring("scaler cleanup")))
		orphans, err := process.Orphans(root)
		Expect(err).NotTo(HaveOccurred())
		Expect(orphans).To(HaveLen(1))
		Expect(orphans[0].Remove(ctx)).To(Succeed())
		Expect(dir).NotTo(BeADirectory())
		Expect(orphans[0].Remove(ctx)).To(Succeed(), "already gone")
	})

	It("leaves children that were to be kept, which cleanup stops unless they were marked", func(ctx SpecContext) {
		root := GinkgoT().TempDir()
		kept := killOwner(filepath.Join(root, "kept"), "keep-marked")
		left := killOwner(filepath.Join(root, "left"), "keep")
		for _, c := range append(kept.Children, left.Children...) {
			Expect(c.Alive).To(BeTrue(), c.Name)
		}

		orphans, err := process.Orphans(root)
		Expect(err).NotTo(HaveOccurred())
		Expect(orphans).To(HaveLen(1))
		Expect(orphans[0].Dir).To(Equal(left.Dir))
		Expect(orphans[0].Remove(ctx)).To(Succeed())
		for _, c := range left.Children {
			Expect(gone(c.PID)()).To(BeTrue(), c.Name)
		}
		again, err := process.Inspect(kept.Dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Kept).To(BeTrue())
		Expect(again.Remove(ctx)).To(Succeed())
		for _, c := range kept.Children {
			Expect(gone(c.PID)()).To(BeTrue(), c.Name)
		}
		Expect(kept.Dir).NotTo(BeADirectory())
	})

	It("leaves the control groups of memory limits, which cleanup removes", func(ctx SpecContext) {
		if err := process.CanLimitMemory(); err != nil {
			Skip("memory cannot be limited here: " + err.Error())
		}
		state := killOwner(filepath.Join(GinkgoT().TempDir(), "limited"), "limited")
		Eventually(gone(state.Children[1].PID)).Should(BeTrue())
		Expect(limitedGroups()).To(HaveLen(1))
		Expect(state.Remove(ctx)).To(Succeed())
		Expect(limitedGroups()).To(BeEmpty())
	})
})

var _ = Describe("free ports", func() {
	It("are distinct and can be listened on", func() {
		ports, err := process.FreePorts(20)
		Expect(err).NotTo(HaveOccurred())
		seen := map[int]bool{}
		for _, port := range ports {
			Expect(seen[port]).To(BeFalse())
			seen[port] = true
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
			Expect(err).NotTo(HaveOccurred())
			l.Close()
		}
	})

	It("are given away once, though nothing listens on them yet", func() {
		seen := map[int]bool{}
		for range 100 {
			ports, err := process.FreePorts(5)
			Expect(err).NotTo(HaveOccurred())
			for _, port := range ports {
				Expect(seen[port]).To(BeFalse(), "%d comes twice", port)
				seen[port] = true
			}
		}
	})

	It("can be listened on at all addresses, and again", func() {
		ports, err := process.FreePorts(1)
		Expect(err).NotTo(HaveOccurred())
		for range 2 { // a server that is started again
			l, err := net.Listen("tcp", ":"+strconv.Itoa(ports[0]))
			Expect(err).NotTo(HaveOccurred())
			client, err := net.Dial("tcp", l.Addr().String())
			Expect(err).NotTo(HaveOccurred())
			server, err := l.Accept()
			Expect(err).NotTo(HaveOccurred())
			Expect(server.Close()).To(Succeed()) // first, so that it is what lingers
			Expect(client.Close()).To(Succeed())
			Expect(l.Close()).To(Succeed())
		}
	})

	It("come as an address, too", func() {
		address, err := process.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		Expect(address).To(HavePrefix("127.0.0.1:"))
		l, err := net.Listen("tcp", address)
		Expect(err).NotTo(HaveOccurred())
		l.Close()
	})
})
