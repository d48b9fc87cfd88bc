package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/process"
)

// killOwner starts an owner, waits for its children, and kills it.
func killOwner(dir, mode string) process.State {
	GinkgoHelper()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+dir+"|"+mode)
	out, err := owner.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(owner.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	Expect(line).To(Equal("ready\n"))
	state, err := process.Inspect(dir)
	Expect(err).NotTo(HaveOccurred())
	Expect(state.OwnerAlive).To(Equal(!strings.HasPrefix(mode, "keep-marked")), "ownership ends with MarkKept")
	Expect(process.Orphans(filepath.Dir(dir))).To(BeEmpty())
	Expect(owner.Process.Kill()).To(Succeed())
	Expect(owner.Wait()).NotTo(Succeed())
	state, err = process.Inspect(dir)
	Expect(err).NotTo(HaveOccurred())
	Expect(state.OwnerAlive).To(BeFalse())
	return state
}

// edit changes fields of a group's state file.
func edit(dir string, fields map[string]any) {
	GinkgoHelper()
	path := filepath.Join(dir, "processes.json")
	data, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var state map[string]any
	Expect(json.Unmarshal(data, &state)).To(Succeed())
	for name, value := range fields {
		state[name] = value
	}
	data, err = json.Marshal(state)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(path, data, 0o600)).To(Succeed())
}

// bystander starts a process that is no group's, with a variable in its
// environment, and expects it to live at the end of the spec.
func bystander(variable string) *exec.Cmd {
	GinkgoHelper()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.Env = []string{variable}
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(gone(cmd.Process.Pid)()).To(BeFalse(), "the bystander was ended")
		Expect(cmd.Process.Kill()).To(Succeed())
		Expect(cmd.Wait()).NotTo(Succeed())
	})
	return cmd
}

var _ = Describe("what is not a group's", func() {
	var root, dir string
	BeforeEach(func() {
		root = GinkgoT().TempDir()
		dir = filepath.Join(root, "runs", "a")
	})
	// expectLeftAlone expects cleanup, and who would open a group, to refuse a
	// folder and to leave a file in it.
	expectLeftAlone := func(reason string) {
		GinkgoHelper()
		keep := filepath.Join(dir, "keep")
		Expect(os.WriteFile(keep, nil, 0o600)).To(Succeed())
		orphans, err := process.Orphans(root)
		Expect(orphans).To(BeEmpty())
		var foreign *process.ForeignError
		Expect(errors.As(err, &foreign)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(reason)))
		Expect(err).To(MatchError(ContainSubstring("left alone")))
		_, err = process.Inspect(dir)
		Expect(errors.As(err, &foreign)).To(BeTrue())
		_, err = process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).To(HaveOccurred())
		Expect(keep).To(BeAnExistingFile())
	}

	DescribeTable("is left alone: a folder with a state file",
		func(content, reason string) {
			Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(dir, "processes.json"), []byte(content), 0o644)).To(Succeed())
			expectLeftAlone(reason)
		},
		Entry("of another program", `{}`, "is no process group's"),
		Entry("that is broken", `{`, "is no process group's"),
		Entry("of an earlier scaler", `{"boot": "x", "owner": {"pid": 1, "start": 1}, "kept": false, "children": []}`, "before version 1"),
		Entry("of a later scaler", `{"magic": "scaler process group 8f0b6f6e-2d5c-4f0e-9a53-61c1f6a6b7de", "version": 99}`, "version 99"),
		Entry("of another user", `{"magic": "scaler process group 8f0b6f6e-2d5c-4f0e-9a53-61c1f6a6b7de", "version": 1, "uid": 99999}`, "user 99999"),
	)

	It("is left alone: a state file that is a FIFO, a link, or another user's", func() {
		Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
		path := filepath.Join(dir, "processes.json")
		Expect(unix.Mkfifo(path, 0o600)).To(Succeed())
		expectLeftAlone("no regular file")
		Expect(os.Remove(path)).To(Succeed())
		Expect(os.Symlink("/dev/zero", path)).To(Succeed())
		expectLeftAlone("symbolic link")
		Expect(os.Remove(path)).To(Succeed())
		if os.Geteuid() != 0 {
			return
		}
		Expect(os.WriteFile(path, nil, 0o644)).To(Succeed())
		Expect(os.Chown(path, 12345, 12345)).To(Succeed())
		expectLeftAlone("belongs to user 12345")
	})

	It("is left alone: a copy of a group, whose processes live", func(ctx SpecContext) {
		original := filepath.Join(root, "original")
		group, err := process.OpenGroup(original, process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(group.Remove(ctx)).To(Succeed()) })
		child, err := group.Start(process.Spec{Name: "one", Path: "/bin/sleep", Args: []string{"1000"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(os.MkdirAll(filepath.Dir(dir), 0o755)).To(Succeed())
		Expect(os.CopyFS(dir, os.DirFS(original))).To(Succeed())
		expectLeftAlone("a copy of a process group")
		Expect(gone(child.PID())()).To(BeFalse())
	})

	It("is left alone: a group behind a link; a root that is a link is a root", func(ctx SpecContext) {
		elsewhere := filepath.Join(GinkgoT().TempDir(), "elsewhere")
		state := killOwner(elsewhere, "")
		Expect(os.MkdirAll(filepath.Dir(dir), 0o755)).To(Succeed())
		Expect(os.Symlink(elsewhere, dir)).To(Succeed())
		expectLeftAlone("symbolic link")

		linked := filepath.Join(root, "linked")
		Expect(os.Symlink(filepath.Dir(elsewhere), linked)).To(Succeed())
		orphans, err := process.Orphans(linked)
		Expect(err).NotTo(HaveOccurred())
		Expect(orphans).To(HaveLen(1))
		Expect(orphans[0].Remove(ctx)).To(Succeed())
		Expect(state.Dir).NotTo(BeADirectory())
	})

	DescribeTable("is left alone: a control group in a state file that scaler did not make", func(fields func(dir string) map[string]any) {
		killOwner(dir, "keep")
		foreign := filepath.Join(root, "theirs")
		Expect(os.WriteFile(foreign, nil, 0o600)).To(Succeed())
		original, err := os.ReadFile(filepath.Join(dir, "processes.json"))
		Expect(err).NotTo(HaveOccurred())
		edit(dir, fields(foreign))
		orphans, err := process.Orphans(root)
		Expect(orphans).To(BeEmpty())
		Expect(err).To(MatchError(ContainSubstring("which is none of scaler's; left alone")))
		Expect(foreign).To(BeAnExistingFile())
		Expect(os.WriteFile(filepath.Join(dir, "processes.json"), original, 0o600)).To(Succeed())
		state, err := process.Inspect(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(state.Remove(context.Background())).To(Succeed())
	},
		Entry("a file elsewhere", func(dir string) map[string]any { return map[string]any{"controlGroups": []string{dir}} }),
		Entry("a child's", func(dir string) map[string]any {
			return map[string]any{"children": []any{map[string]any{"name": "x", "memoryGroup": dir}}}
		}),
		Entry("a child's quota", func(dir string) map[string]any {
			return map[string]any{"children": []any{map[string]any{"name": "x", "quotaGroup": dir}}}
		}),
		Entry("the root", func(string) map[string]any { return map[string]any{"controlGroups": []string{"/sys/fs/cgroup"}} }),
		Entry("another program's", func(string) map[string]any {
			return map[string]any{"controlGroups": []string{"/sys/fs/cgroup/cpu/system.slice"}}
		}),
		Entry("a path out of there", func(string) map[string]any {
			return map[string]any{"controlGroups": []string{"/sys/fs/cgroup/scaler-1-1-run/../../../../tmp/scaler-1-1-run"}}
		}),
	)

	It("is what a killed scaler left of a folder, and no more: remnants are removed", func(ctx SpecContext) {
		runs := filepath.Join(root, "runs")
		make := func(name string, files ...string) string {
			GinkgoHelper()
			dir := filepath.Join(runs, name)
			Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
			for _, file := range files {
				Expect(os.WriteFile(filepath.Join(dir, file), nil, 0o600)).To(Succeed())
			}
			return dir
		}
		remnants := []string{make("empty"), make("opening", "owner.lock", "processes.json.123"), make("removing", "removal.lock")}
		others := []string{make("theirs", "owner.lock", "thesis.txt"), make("deeper/still"), runs}
		held := make("held", "owner.lock")
		f, err := os.Open(filepath.Join(held, "owner.lock"))
		Expect(err).NotTo(HaveOccurred())
		defer f.Close()
		Expect(unix.Flock(int(f.Fd()), unix.LOCK_EX)).To(Succeed())

		orphans, err := process.Orphans(root)
		Expect(err).NotTo(HaveOccurred())
		var dirs []string
		for _, o := range orphans {
			dirs = append(dirs, o.Dir)
			Expect(o.Remove(ctx)).To(Succeed())
		}
		Expect(dirs).To(ConsistOf(remnants))
		for _, dir := range remnants {
			Expect(dir).NotTo(BeADirectory())
		}
		for _, dir := range append(others, held) {
			Expect(dir).To(BeADirectory())
		}
		group, err := process.OpenGroup(make("again", "owner.lock", "processes.json.5"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(group.Remove(ctx)).To(Succeed())
	})

	It("is not a folder for a new group if it holds anything", func() {
		Expect(os.MkdirAll(filepath.Join(dir, "etcd"), 0o755)).To(Succeed())
		_, err := process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).To(MatchError(ContainSubstring("the folder holds etcd")))
		Expect(os.ReadDir(dir)).To(HaveLen(1))
	})

	It("is no process of a group for its id, its start time or the folder in its environment", func(ctx SpecContext) {
		state := killOwner(dir, "keep")
		other := bystander("SCALER_PROCESS_GROUP=" + dir)
		same := bystander("SCALER_PROCESS_GROUP_DIR=" + dir)
		// Both ids were given to other processes since.
		edit(dir, map[string]any{
			"owner":    map[string]any{"pid": other.Process.Pid, "start": 1},
			"children": []any{map[string]any{"name": "etcd", "pid": same.Process.Pid, "start": 1}},
		})
		orphans, err := process.Orphans(root)
		Expect(err).NotTo(HaveOccurred())
		Expect(orphans).To(HaveLen(1))
		Expect(orphans[0].Children[0].Alive).To(BeFalse())
		Expect(orphans[0].Remove(ctx)).To(Succeed())
		for _, c := range state.Children {
			Expect(gone(c.PID)()).To(BeTrue(), c.Name)
		}
	})

	It("goes with a group that is removed, and not with a later one in its folder", func(ctx SpecContext) {
		state := killOwner(dir, "")
		Expect(state.Remove(ctx)).To(Succeed())
		again, err := process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(state.Remove(ctx)).To(Succeed(), "that group is gone")
		Expect(dir).To(BeADirectory())
		Expect(again.Remove(ctx)).To(Succeed())
	})
})

var _ = Describe("a group seen from elsewhere", func() {
	It("lives while its owner has the lock, whatever process ids say", func(ctx SpecContext) {
		root := GinkgoT().TempDir()
		dir := filepath.Join(root, "one")
		group, err := process.OpenGroup(dir, process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(group.Remove(ctx)).To(Succeed()) })
		for _, elsewhere := range []map[string]any{
			{"owner": map[string]any{"pid": 999999999, "start": 1}},
			{"pidNamespace": "pid:[4026539999]"},
			{"boot": "of another machine", "host": "other", "machine": "other"},
		} {
			edit(dir, elsewhere)
			state, err := process.Inspect(dir)
			Expect(err).NotTo(HaveOccurred())
			Expect(state.OwnerAlive).To(BeTrue())
			Expect(process.Orphans(root)).To(BeEmpty())
			Expect(state.Remove(ctx)).To(MatchError(ContainSubstring("in use by process")))
		}
	})

	It("is not removed from where its processes cannot be seen", func(ctx SpecContext) {
		dir := filepath.Join(GinkgoT().TempDir(), "one")
		killOwner(dir, "keep")
		boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		Expect(err).NotTo(HaveOccurred())
		host, err := os.Hostname()
		Expect(err).NotTo(HaveOccurred())
		edit(dir, map[string]any{"boot": "of another machine", "host": "elsewhere"})
		state, err := process.Inspect(dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(state.Remove(ctx)).To(MatchError(ContainSubstring("ran on elsewhere")))
		Expect(dir).To(BeADirectory())

		By("the same machine after a restart, where nothing of it can run")
		edit(dir, map[string]any{"boot": "an earlier one", "host": host})
		state, err = process.Inspect(dir)
		Expect(err).NotTo(HaveOccurred())
		for _, c := range state.Children {
			Expect(c.Alive).To(BeFalse())
		}
		edit(dir, map[string]any{"boot": string(boot[:len(boot)-1])})
		Expect(state.Remove(ctx)).To(Succeed())
	})

	It("is removed once by several at a time, and all succeed", func(ctx SpecContext) {
		dir := filepath.Join(GinkgoT().TempDir(), "one")
		state := killOwner(dir, "keep")
		var removing sync.WaitGroup
		results := make([]error, 8)
		for i := range results {
			removing.Go(func() { results[i] = state.Remove(ctx) })
		}
		removing.Wait()
		Expect(errors.Join(results...)).To(Succeed())
		_, err := os.Lstat(dir)
		Expect(err).To(MatchError(fs.ErrNotExist))
	})

	It("is waited for by a removal only as long as its context says", func(ctx SpecContext) {
		dir := filepath.Join(GinkgoT().TempDir(), "one")
		state := killOwner(dir, "")
		f, err := os.Create(filepath.Join(dir, "removal.lock"))
		Expect(err).NotTo(HaveOccurred())
		Expect(unix.Flock(int(f.Fd()), unix.LOCK_EX)).To(Succeed())
		done, cancel := context.WithCancel(ctx)
		cancel()
		Expect(state.Remove(done)).To(MatchError(context.Canceled))
		Expect(f.Close()).To(Succeed())
		Expect(state.Remove(done)).To(Succeed())
	})
})
