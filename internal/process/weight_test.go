package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/internal/process"
)

// controlGroup returns the control group of a process that shares processors; "" for a
// process that there is not.
func controlGroup(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return ""
	}
	unified := ""
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for controller := range strings.SplitSeq(fields[1], ",") {
			if controller == "cpu" {
				return fields[2]
			}
		}
		if fields[1] == "" {
			unified = fields[2]
		}
	}
	return unified
}

// runGroups returns the control groups of runs of a program that there are.
func runGroups(pid int) (found []string) {
	GinkgoHelper()
	home := controlGroup(os.Getpid())
	for _, mount := range []string{"cpu", "cpu,cpuacct", ""} {
		for _, parent := range []string{home, filepath.Dir(home), filepath.Dir(filepath.Dir(home))} {
			all, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", mount, parent, "scaler-"+strconv.Itoa(pid)+"-*-run"))
			Expect(err).NotTo(HaveOccurred())
			found = append(found, all...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

var _ = Describe("A group with priorities", func() {
	open := func(options process.GroupOptions) *process.Group {
		GinkgoHelper()
		options.Prioritize = true
		group, err := process.OpenGroup(filepath.Join(GinkgoT().TempDir(), "group"), options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(group.Stop(ctx)).To(Succeed()) })
		return group
	}
	start := func(group *process.Group, name string, p process.Priority) *process.Process {
		GinkgoHelper()
		child, err := group.Start(process.Spec{Name: name, Path: "/bin/sleep", Args: []string{"1000"}, Priority: p})
		Expect(err).NotTo(HaveOccurred())
		return child
	}

	It("puts children and scaler into control groups, and removes them at its end", func(ctx SpecContext) {
		home := controlGroup(os.Getpid())
		group := open(process.GroupOptions{})
		p := group.Priorities()
		if p.Mechanism == process.MechanismNice {
			Expect(p.Detail).NotTo(BeEmpty())
			Skip("control groups cannot be made here: " + p.Detail)
		}
		first, own, last := start(group, "first", process.PriorityFirst), start(group, "own", process.PriorityOwn), start(group, "last", process.PriorityLast)
		Expect(controlGroup(first.PID())).To(HaveSuffix("-run/first"))
		Expect(controlGroup(last.PID())).To(HaveSuffix("-run/last"))
		Expect(controlGroup(own.PID())).To(HaveSuffix("-run/own"))
		Expect(controlGroup(os.Getpid())).To(Equal(controlGroup(own.PID())))
		groups := runGroups(os.Getpid())
		for dir, level := range map[string]int{"first": p.First, "own": p.Own, "last": p.Last} {
			Expect(groups).To(ContainElement(WithTransform(func(run string) string {
				text, _ := os.ReadFile(filepath.Join(run, dir, p.Mechanism))
				return strings.TrimSpace(string(text))
			}, Equal(strconv.Itoa(level)))), dir)
		}
		Expect(group.Stop(ctx)).To(Succeed())
		Expect(controlGroup(os.Getpid())).To(Equal(home))
		Expect(runGroups(os.Getpid())).To(BeEmpty())
	})

	It("holds a child to its quota, in a control group of its own", func(ctx SpecContext) {
		group := open(process.GroupOptions{})
		quota := process.Quota{Processors: 0.05, Period: 20 * time.Millisecond}
		if err := group.CanLimitProcessors(quota); err != nil {
			Skip("there is no quota here: " + err.Error())
		}
		child, err := group.Start(process.Spec{
			Name: "busy", Path: "/bin/sh", Args: []string{"-c", "while :; do :; done"}, Priority: process.PriorityFirst, Quota: quota, CountMemory: true,
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(controlGroup(child.PID())).To(MatchRegexp("-run/first/scaler-[0-9]+-[0-9]+-busy$"))
		var own string
		for _, run := range runGroups(os.Getpid()) {
			own = filepath.Join(run, "first", filepath.Base(controlGroup(child.PID())))
		}
		Eventually(func() (string, error) {
			text, err := os.ReadFile(filepath.Join(own, "cpu.stat"))
			return string(text), err
		}).WithTimeout(30 * time.Second).Should(MatchRegexp(`(?m)^nr_throttled [1-9]`))
		read := func(dir string) string {
			v1, err1 := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
			v2, err2 := os.ReadFile(filepath.Join(dir, "cpu.max"))
			Expect(err1 == nil || err2 == nil).To(BeTrue())
			return strings.TrimSpace(strings.TrimSuffix(string(v1)+string(v2), " 20000\n"))
		}
		Expect(read(own)).To(Equal("1000"))
		Expect(group.ChangeQuota(process.Quota{Processors: 0.1, Period: 20 * time.Millisecond})).To(Succeed())
		Expect(read(own)).To(Equal("2000"))
		Expect(group.ChangeQuota(process.Quota{})).To(MatchError(ContainSubstring("want more than 0")))
		Expect(read(own)).To(Equal("2000"))
		Expect(child.Stop(ctx)).To(Succeed())
		next, err := group.Start(process.Spec{Name: "next", Path: "/bin/sh", Args: []string{"-c", "while :; do :; done"}, Priority: process.PriorityFirst, Quota: quota})
		Expect(err).NotTo(HaveOccurred())
		Expect(read(filepath.Join(filepath.Dir(own), filepath.Base(controlGroup(next.PID()))))).To(Equal("2000"))
		Expect(next.Stop(ctx)).To(Succeed())
		Expect(own).NotTo(BeADirectory())
	})

	It("leaves the control groups of children that are kept, which whoever stops them removes", func(ctx SpecContext) {
		state := killOwner(filepath.Join(GinkgoT().TempDir(), "kept"), "keep-marked-prioritized")
		last := state.Children[len(state.Children)-1]
		Expect(last.Alive).To(BeTrue())
		if !strings.HasSuffix(controlGroup(last.PID), "-run/last") {
			Skip("control groups cannot be made here")
		}
		var owner int
		_, err := fmt.Sscanf(filepath.Base(filepath.Dir(controlGroup(last.PID))), "scaler-%d-", &owner)
		Expect(err).NotTo(HaveOccurred())
		Expect(runGroups(owner)).NotTo(BeEmpty())
		Expect(state.Remove(ctx)).To(Succeed())
		Expect(runGroups(owner)).To(BeEmpty())
	})

	It("leaves them when its owner is killed, and cleanup removes them", func(ctx SpecContext) {
		state := killOwner(filepath.Join(GinkgoT().TempDir(), "killed"), "prioritized")
		for _, c := range state.Children {
			Eventually(gone(c.PID)).Should(BeTrue(), c.Name)
		}
		left := runGroups(state.Owner)
		Expect(state.Remove(ctx)).To(Succeed())
		Expect(runGroups(state.Owner)).To(BeEmpty())
		Expect(state.Dir).NotTo(BeADirectory())
		if left == nil {
			Skip("control groups cannot be made here")
		}
	})
})
