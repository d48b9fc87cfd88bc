//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/process"
)

// markedIn lists the living processes of the cluster in dir, by the environment
// that all of them carry.
func markedIn(dir string) func() []int {
	return func() []int { return carrying(dir + "\x00") }
}

// entriesOf returns the names of what is in a folder.
func entriesOf(dir string) []string {
	GinkgoHelper()
	entries, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// upCluster starts a cluster that ends with the spec, as its group does.
func upCluster(ctx context.Context, o cluster.Options) *cluster.Cluster {
	GinkgoHelper()
	c, err := cluster.Up(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("a cluster", func() {
	var root string
	BeforeEach(func() {
		root = GinkgoT().TempDir()
		ignore := goleak.IgnoreCurrent()
		DeferCleanup(func() { Eventually(func() error { return goleak.Find(ignore) }).Should(Succeed()) })
	})

	It("starts within seconds and leaves nothing", func(ctx SpecContext) {
		start := time.Now()
		o := clusterOptions(ctx, root, "one")
		c, err := cluster.Up(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("up", time.Since(start).String())
		dir := filepath.Join(root, "one")
		Expect(markedIn(dir)()).To(HaveLen(5))

		all, err := cluster.List(root)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(1))
		Expect(all[0].Name).To(Equal("one"))
		Expect(all[0].State).To(Equal(cluster.Running))
		Expect(all[0].Owner).To(Equal(os.Getpid()))
		Expect(all[0].Processes).To(HaveLen(5))
		Expect(all[0].Kubeconfig).To(Equal(c.Kubeconfig()))
		Expect(cluster.Stop(ctx, root, "one")).To(MatchError(ContainSubstring("in use by process")))
		Expect(c.Died()).NotTo(Receive())

		start = time.Now()
		Expect(o.Group.Remove(ctx)).To(Succeed())
		AddReportEntry("down", time.Since(start).String())
		Expect(markedIn(dir)()).To(BeEmpty())
		Expect(dir).NotTo(BeADirectory())
		for _, component := range c.Components() {
			u, err := url.Parse(component.MetricsURL)
			Expect(err).NotTo(HaveOccurred())
			_, err = net.Dial("tcp", u.Host)
			Expect(err).To(HaveOccurred(), component.Name)
		}
		Expect(cluster.List(root)).To(BeEmpty())
		Expect(cluster.Stop(ctx, root, "one")).To(MatchError(cluster.ErrNotFound))
	})

	It("goes down at once when the context is done, and leaves its group as it was", acceptance, func(ctx SpecContext) {
		o := clusterOptions(ctx, root, "one")
		other, err := o.Group.Start(process.Spec{Name: "other", Path: "/bin/sleep", Args: []string{"1000"}})
		Expect(err).NotTo(HaveOccurred())
		c, err := cluster.Up(ctx, o)
		Expect(err).NotTo(HaveOccurred())
		done, cancel := context.WithCancel(ctx)
		cancel()
		Expect(c.Down(done)).To(Succeed())
		Expect(markedIn(o.Group.Dir())()).To(Equal([]int{other.PID()}))
		Expect(c.Died()).NotTo(Receive())
		Expect(cluster.List(root)).To(BeEmpty())

		_, err = cluster.Up(ctx, o)
		Expect(err).NotTo(HaveOccurred(), "the group takes another cluster")
	})

	It("runs at the same time as another, whose port was taken at first, refuses its folder, and reports a component that dies", acceptance, func(ctx SpecContext) {
		c := upCluster(ctx, clusterOptions(ctx, root, "one"))

		By("starting another again with other ports")
		o := clusterOptions(ctx, root, "two")
		// As etcd, the first time another program has its port.
		once := filepath.Join(root, "once")
		script := "#!/bin/sh\nif [ ! -e " + once + " ]; then touch " + once + "; echo 'bind: address already in use' >&2; exit 1; fi\nexec " + o.Programs.Etcd + " \"$@\"\n"
		o.Programs.Etcd = filepath.Join(root, "etcd")
		Expect(os.WriteFile(o.Programs.Etcd, []byte(script), 0o755)).To(Succeed())
		upCluster(ctx, o)
		Expect(once).To(BeARegularFile())
		_, err := process.OpenGroup(filepath.Join(root, "one"), process.GroupOptions{})
		Expect(err).To(MatchError(ContainSubstring("in use by process " + strconv.Itoa(os.Getpid()))))
		Expect(cluster.List(root)).To(HaveLen(2))

		By("killing a component")
		scheduler := c.Components()[3]
		Expect(scheduler.Name).To(Equal(cluster.Scheduler))
		p, err := os.FindProcess(scheduler.Process.PID())
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Kill()).To(Succeed())
		var died error
		Eventually(c.Died()).Should(Receive(&died))
		Expect(died).To(MatchError(ContainSubstring("running kube-scheduler")))
		Expect(died).To(MatchError(ContainSubstring("signal: killed")))
		all, err := cluster.List(root)
		Expect(err).NotTo(HaveOccurred())
		Expect(all[0].Name).To(Equal("one"))
		Expect(all[0].State).To(Equal(cluster.Degraded))
	})

	It("unwinds when it is interrupted, whatever it was doing", func(ctx SpecContext) {
		o := clusterOptions(ctx, root, "one")
		for _, at := range []string{"starting etcd", "starting kube-apiserver", "starting kwok", "waiting for a first pod to run"} {
			short, cancel := context.WithCancel(ctx)
			o.Progress = func(msg string) {
				if msg == at {
					cancel()
				}
			}
			_, err := cluster.Up(short, o)
			Expect(err).To(MatchError(context.Canceled), at)
			Expect(markedIn(o.Group.Dir())()).To(BeEmpty(), at)
			Expect(entriesOf(o.Group.Dir())).To(ConsistOf("logs", "owner.lock", "processes.json"), at)
		}
	})

	It("says which program does not start and why, and unwinds", func(ctx SpecContext) {
		o := clusterOptions(ctx, root, "one")
		broken := filepath.Join(root, "broken")
		Expect(os.WriteFile(broken, []byte("#!/bin/sh\necho 'unknown flag: --kubeconfig' >&2\nexit 1\n"), 0o755)).To(Succeed())
		o.Programs.Scheduler = broken
		_, err := cluster.Up(ctx, o)
		Expect(err).To(MatchError(HavePrefix("starting cluster one: running kube-scheduler (" + broken)))
		Expect(err).To(MatchError(ContainSubstring("exit status 1")))
		Expect(err).To(MatchError(ContainSubstring("unknown flag: --kubeconfig")))
		Expect(markedIn(o.Group.Dir())()).To(BeEmpty())
		Expect(entriesOf(o.Group.Dir())).To(ConsistOf("logs", "owner.lock", "processes.json"))

		o.Programs.Scheduler = filepath.Join(root, "absent")
		_, err = cluster.Up(ctx, o)
		Expect(errors.Is(err, os.ErrNotExist)).To(BeTrue())
	})
})
