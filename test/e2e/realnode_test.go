//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/test/snapshot"
)

// exitLacking is node's exit status where the machine cannot have a real node.
const exitLacking = 3

// nodeSettings are the settings of the kernel that kubelet and kube-proxy may change.
var nodeSettings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	"net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet",
}

// Serial: its cAdvisor reads containers too late for short phases next to three other specs.
var _ = Describe("a cluster with a real node", Ordered, Serial, func() {
	var (
		where      place
		node       string // program
		kubeconfig string
		before     []string // what the machine had
	)
	start := func(program string, args ...string) *gexec.Session {
		GinkgoHelper()
		cmd := exec.Command(program, args...)
		cmd.Env = where.command().Env
		GinkgoWriter.Println("$", filepath.Base(program), strings.Join(args, " "))
		session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		return session
	}
	machine := func(ctx context.Context) []string {
		GinkgoHelper()
		cache, err := component.CacheDir(component.Options{CacheDir: os.Getenv("SCALER_CACHE_DIR")})
		Expect(err).NotTo(HaveOccurred())
		wrappers := filepath.Join(cache, "realnode-tools", "wrappers")
		all, err := snapshot.Machine(ctx, nodeSettings, filepath.Join(wrappers, "iptables-save"), filepath.Join(wrappers, "ip6tables-save"))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(all)).To(BeNumerically(">", 30))
		return all
	}
	objects := func(ctx context.Context) []string {
		GinkgoHelper()
		config, _ := connection(kubeconfig)
		all, err := snapshot.Objects(ctx, config)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(all)).To(BeNumerically(">", 100))
		return all
	}
	// begin starts a rollout of so many pods in the cluster, and finish returns its record.
	begin := func(pods int, args ...string) *gexec.Session {
		GinkgoHelper()
		out, err := os.MkdirTemp(filepath.Dir(where.state), "out-")
		Expect(err).NotTo(HaveOccurred())
		return start(scaler, append([]string{
			"rollout", "--context", "realnode", "--kubeconfig", kubeconfig, "--yes", "--pods", strconv.Itoa(pods), "--services", "5", "--namespaces", "2",
			"--mode", "strict", "--out", out, "-o", "json", "--calibrate=false", "--baseline", "2s", "--settle", "0s", "--steady", "2s", "--probes", "1", "--converge-timeout", "90s",
		}, args...)...)
	}
	finish := func(session *gexec.Session) record.Run {
		GinkgoHelper()
		// A run may take 90 s to converge, and then makes five changes.
		Eventually(session).WithTimeout(4 * time.Minute).Should(gexec.Exit(0))
		var list record.RunList
		Expect(json.Unmarshal(session.Out.Contents(), &list)).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		expectComplete(list.Items[0])
		return list.Items[0]
	}
	// latency starts a measurement of requests between pods of the cluster.
	latency := func(args ...string) *gexec.Session {
		GinkgoHelper()
		return start(scaler, append([]string{
			"latency", "--context", "realnode", "--kubeconfig", kubeconfig, "--yes", "--image", "scaler.mesh/scaler:realnode", "-o", "json",
			"--out", filepath.Join(GinkgoT().TempDir(), "out"), "--rps", "100", "--warmup", "500ms", "--rounds", "2",
		}, args...)...)
	}

	BeforeAll(func(ctx SpecContext) {
		where = newPlace()
		var err error
		node, err = gexec.Build("scaler.mesh/scaler/test/realnode/node")
		Expect(err).NotTo(HaveOccurred())
		check := start(node, "check")
		Eventually(check).WithTimeout(2 * time.Minute).Should(gexec.Exit())
		if check.ExitCode() == exitLacking {
			Skip(strings.TrimSpace(string(check.Err.Contents())))
		}
		Expect(check.ExitCode()).To(BeZero())
		before = machine(ctx)
		DeferCleanup(func() { Eventually(start(node, "down")).WithTimeout(2 * time.Minute).Should(gexec.Exit(0)) })
		up := start(node, "up", "--istiod-replicas", "2", "--sidecars", "--scaler", scaler, "--housekeeping-interval", "1s")
		Eventually(up).WithTimeout(30 * time.Minute).Should(gexec.Exit(0)) // the programs may have to be built
		kubeconfig = strings.TrimSpace(string(up.Out.Contents()))
	}, NodeTimeout(40*time.Minute))

	It("is as it was after rollouts against istiod's pods, through the API server and directly, with pods on the node", func(ctx SpecContext) {
		there := objects(ctx)
		for _, with := range []struct {
			mode, image string
			pods        int
		}{{"permissive", "scaler.mesh/app:realnode", 205}, {"strict", "scaler.mesh/scaler:realnode", 55}} {
			run := finish(begin(with.pods, "--mode", with.mode, "--real-sidecars", "5", "--set", "mesh.sidecars.image="+with.image))
			Expect(known(run.Environment.Existing).Access).To(Equal(record.AccessPortForward))
			Expect(known(run.Environment.Existing).Pods).To(HaveLen(2))
			expectRealSidecars(run, 5)
			Expect(objects(ctx)).To(Equal(there))
		}

		run := finish(begin(30, "--control-plane-address", istiodAddress(ctx, kubeconfig)+":15012"))
		Expect(known(run.Environment.Existing).Access).To(Equal(record.AccessAddress))
		Expect(objects(ctx)).To(Equal(there))
	}, SpecTimeout(10*time.Minute))

	It("has a Prometheus that is found and asked through the API server, with the right to", acceptance, func(ctx SpecContext) {
		newPrometheus(ctx, kubeconfig)
		user := newUser(ctx, kubeconfig, filepath.Join(GinkgoT().TempDir(), "kubeconfig"))
		DeferCleanup(user.remove)
		user.allow(ctx, existing.RoleName, existing.Rights(drivers.Default().Installed.Rights))
		Expect(user.prometheus(ctx).Err).To(MatchError(And(ContainSubstring("service:monitoring/prometheus-k8s:9090"), ContainSubstring(`cannot get resource "services/proxy"`))))

		user.allow(ctx, "scaler-prometheus", []rbacv1.PolicyRule{existing.Rule("", []string{"get"}, "services/proxy")})
		var source *clusterprometheus.Source
		Eventually(func(g Gomega) { // it has begun to scrape only now
			source = user.prometheus(ctx)
			g.Expect(source.Err).NotTo(HaveOccurred())
		}).WithTimeout(time.Minute).Should(Succeed())
		Expect(source.Address.String()).To(Equal("service:monitoring/prometheus-k8s:9090"))
		_, _, all, err := source.History(ctx, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range all {
			Expect(r.Err).To(Or(BeNil(), MatchError(HavePrefix("it has no "))), r.Name)
		}
	}, SpecTimeout(5*time.Minute))

	It("runs KWOK, and sidecars in two workers, as pods, one of which is lost, with the documented rights, and is as it was after it", acceptance, func(ctx SpecContext) {
		user := newUser(ctx, kubeconfig, filepath.Join(GinkgoT().TempDir(), "kubeconfig"))
		DeferCleanup(user.remove)
		for role, rights := range map[string][]rbacv1.PolicyRule{
			existing.RoleName: existing.Rights(drivers.Default().Installed.Rights), existing.WorkersRoleName: existing.WorkerRights(),
			existing.KwokRoleName: existing.KwokRights(), existing.KubeletRoleName: existing.KubeletRights(),
		} {
			user.allow(ctx, role, rights)
		}
		there := objects(ctx)
		// A Job makes another pod about 10 s after one has failed.
		session := begin(30, "--kubeconfig", user.kubeconfig, "--worker-image", "scaler.mesh/scaler:realnode", "--kwok-image", "scaler.mesh/kwok:realnode", "--workers", "2", "--steady", "16s")
		Eventually(session.Err).WithTimeout(90 * time.Second).Should(gbytes.Say("\nsteady "))
		deleteWorker(ctx, kubeconfig)
		run := finish(session)
		Expect(known(run.Environment.Existing).Access).To(Equal(record.AccessService))
		Expect(known(run.Environment.Existing).Workers).To(HaveLen(2))
		Expect(known(run.Environment.Existing).KwokImage).To(Equal("scaler.mesh/kwok:realnode"))
		Expect(run.Environment.Kwok).To(BeEmpty())
		Expect(run.Warnings).To(ContainElement(And(HaveField("Reason", record.ReasonWorkerLost), HaveField("Component", "worker-0"), HaveField("Phase", record.PhaseSteady))))
		Expect(run.Instrument.Workers).To(HaveLen(2))
		Expect(run.Instrument.Workers[0].Sidecars).To(BeNumerically("~", 30+1, 3)) // 15 twice, and of those that replaced probed ones
		Expect(run.Instrument.Workers[1].Sidecars).To(BeNumerically("~", 15+1, 3))
		for _, w := range run.Instrument.Workers {
			Expect(w.MemoryBytes).To(HaveValue(BeNumerically(">", 10e6)))
			Expect(w.Clock.UncertaintySeconds).To(And(BeNumerically(">", 0), BeNumerically("<", 0.1)))
		}
		Expect(objects(ctx)).To(Equal(there))
	}, SpecTimeout(3*time.Minute))

	It("leaves nothing when it is interrupted while KWOK's image is not there", func(ctx SpecContext) {
		there := objects(ctx)
		session := begin(20, "--kwok-image", "scaler.mesh/absent:realnode")
		Eventually(kwokWaits).WithContext(ctx).WithArguments(kubeconfig).WithTimeout(time.Minute).Should(BeTrue())
		Eventually(session.Interrupt()).WithTimeout(time.Minute).Should(gexec.Exit(130))
		Expect(session.Err).To(gbytes.Say("everything that was started is stopped"))
		Expect(objects(ctx)).To(Equal(there))
	}, SpecTimeout(2*time.Minute))

	It("sends requests between pods with and without sidecars, and is as it was after it", acceptance, func(ctx SpecContext) {
		there := objects(ctx)
		pair := latency("--duration", "4s", "--repeats", "2")
		Eventually(pair).WithTimeout(2 * time.Minute).Should(gexec.Exit(0))
		expectPairs(pair.Out.Contents())
		Expect(objects(ctx)).To(Equal(there))

		chain := latency("--duration", "2s", "--variants", "strict", "--topology", "chain", "--chain", "5ms,5ms", "--servers", "2")
		Eventually(chain).WithTimeout(2 * time.Minute).Should(gexec.Exit(0))
		expectChain(chain.Out.Contents())
		Expect(objects(ctx)).To(Equal(there))

		interrupted := latency("--duration", "1h")
		Eventually(interrupted.Err).WithTimeout(2 * time.Minute).Should(gbytes.Say("100 RPS, one-node, repeat 1 of 1"))
		Eventually(interrupted.Interrupt()).WithTimeout(time.Minute).Should(gexec.Exit(130))
		Expect(objects(ctx)).To(Equal(there))

		two := latency("--placement", "two-nodes")
		Eventually(two).WithTimeout(time.Minute).Should(gexec.Exit(2))
		Expect(two.Err).To(gbytes.Say(`--placement: latency.placement: got "two-nodes", want one-node: of the nodes, only realnode`))
		Expect(objects(ctx)).To(Equal(there))
	}, SpecTimeout(8*time.Minute))

	It("spreads workers over two nodes, sends requests between these, and is as it was after it", acceptance, func(ctx SpecContext) {
		Eventually(start(node, "up", "--nodes", "2", "--istiod-replicas", "2", "--sidecars", "--scaler", scaler, "--housekeeping-interval", "1s")).WithTimeout(4 * time.Minute).Should(gexec.Exit(0))
		there := objects(ctx)
		run := finish(begin(30, "--worker-image", "scaler.mesh/scaler:realnode", "--workers", "2"))
		Expect(known(run.Environment.Existing).Workers).To(ConsistOf(HaveField("Node", "realnode"), HaveField("Node", "realnode-2")))
		Expect(objects(ctx)).To(Equal(there))

		pair := latency("--placement", "one-node,two-nodes", "--duration", "4s")
		Eventually(pair).WithTimeout(2 * time.Minute).Should(gexec.Exit(0))
		expectTwoNodes(pair.Out.Contents())
		Expect(objects(ctx)).To(Equal(there))
	}, SpecTimeout(8*time.Minute))

	It("measures the speed of its processors in a pod", acceptance, func(ctx SpecContext) {
		there := objects(ctx)
		node := speedInPod(ctx, kubeconfig)
		own := start(scaler, "calibrate", "--speed", "-o", "json")
		Eventually(own).WithTimeout(time.Minute).Should(gexec.Exit(0))
		var here record.MachineSpeed
		Expect(json.Unmarshal(own.Out.Contents(), &here)).To(Succeed())
		Expect(node.Speed.Work).To(Equal(here.Speed.Work))
		Expect(node.Machine).To(HaveField("CPUs", here.Machine.CPUs))
		Expect(node.Speed.Speed).To(BeNumerically("~", here.Speed.Speed, here.Speed.Speed/2), "the node is this machine")
		Eventually(objects).WithContext(ctx).WithTimeout(30 * time.Second).Should(Equal(there))
	}, SpecTimeout(3*time.Minute))

	It("runs injected pods, whose connections Envoy takes", func(ctx SpecContext) {
		there := objects(ctx)
		echo := newEcho(ctx, kubeconfig, 3)
		Eventually(echo.answers).WithContext(ctx).WithTimeout(90 * time.Second).Should(HaveLen(3))
		echo.requireTLS(ctx)
		Eventually(echo.answers).WithContext(ctx).WithTimeout(30 * time.Second).Should(BeEmpty())
		echo.delete(ctx)
		Eventually(objects).WithContext(ctx).WithTimeout(30 * time.Second).Should(Equal(there))
	}, SpecTimeout(3*time.Minute))

	It("starts nothing twice, and leaves nothing on the machine", func(ctx SpecContext) {
		there := objects(ctx)
		again := start(node, "up", "--istiod-replicas", "2", "--sidecars", "--scaler", scaler)
		Eventually(again).WithTimeout(time.Minute).Should(gexec.Exit(0))
		Expect(strings.TrimSpace(string(again.Out.Contents()))).To(Equal(kubeconfig))
		Expect(objects(ctx)).To(Equal(there))
		for range 2 {
			Eventually(start(node, "down")).WithTimeout(time.Minute).Should(gexec.Exit(0))
			Eventually(machine).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(before)) // namespaces end a little later
		}
	}, SpecTimeout(3*time.Minute))
})

// expectComplete expects that a run converged, and that its record has what the control plane needed.
func expectComplete(run record.Run) {
	GinkgoHelper()
	Expect(run.Pods.Converged).To(HaveValue(Equal(run.PodCount())))
	Expect(known(run.Environment.Existing).Usage).To(Equal(record.UsageOfOwnMetrics))
	Expect(known(run.ControlPlane.Rollout).CPUSeconds).To(HaveValue(BeNumerically(">", 0)))
	Expect(known(known(run.ControlPlane.Rollout).MemoryBytes).Peak).To(HaveValue(BeNumerically(">", 50e6)))
	Expect(run.Latencies.Push[record.RouteChange]).To(HaveField("Lost", BeZero()))
	expectReplicas(run)
}

// expectReplicas expects the usage of both replicas of istiod, by their own metrics.
func expectReplicas(run record.Run) {
	GinkgoHelper()
	Expect(known(run.Replicas).Each).To(HaveLen(2))
	for _, replica := range known(run.Replicas).Each {
		Expect(known(replica.Usage.Rollout).CPUSeconds).To(HaveValue(BeNumerically(">", 0)))
	}
}

// expectRealSidecars expects figures of so many pods on the node.
func expectRealSidecars(run record.Run, pods int) {
	GinkgoHelper()
	real := known(known(run.Sidecars).Real)
	Expect(real.Count).To(Equal(pods))
	Expect(real.Each).To(HaveLen(pods))
	for _, s := range real.Each {
		Expect(s.Node).To(Equal("realnode"))
		Expect(s.Crashes).To(BeZero())
		Expect(known(known(s.Container).Rollout).CPUSeconds).To(HaveValue(BeNumerically(">", 0)))
		Expect(known(known(known(s.Container).Probe).MemoryBytes).End).To(HaveValue(BeNumerically(">", 20e6)))
	}
	Expect(known(known(real.Probe).MemoryBytes).End).To(HaveValue(BeNumerically(">", 20e6*float64(pods))))
	for _, l := range []*record.Latency{known(real.Starts).FirstConfiguration, known(real.Starts).CompleteConfiguration, known(real.Starts).Certificate} {
		Expect(known(l).Count).To(BeEquivalentTo(pods))
		Expect(known(l).Lost).To(BeZero())
	}
}

// istiodAddress returns the address of one of istiod's pods, which this machine reaches.
func istiodAddress(ctx context.Context, kubeconfig string) string {
	GinkgoHelper()
	_, client := connection(kubeconfig)
	pods, err := client.CoreV1().Pods("istio-system").List(ctx, metav1.ListOptions{LabelSelector: "app=istiod"})
	Expect(err).NotTo(HaveOccurred())
	Expect(pods.Items).To(HaveLen(2))
	return pods.Items[0].Status.PodIP
}

// deleteWorker deletes the pod of the first worker of the run that goes on.
func deleteWorker(ctx context.Context, kubeconfig string) {
	GinkgoHelper()
	_, client := connection(kubeconfig)
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=scaler-worker,batch.kubernetes.io/job-completion-index=0"})
	Expect(err).NotTo(HaveOccurred())
	Expect(pods.Items).To(HaveLen(1))
	pod := pods.Items[0]
	Expect(client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})).To(Succeed())
}

// kwokWaits reports whether the kubelet has taken KWOK's pod, whose container does not run.
func kwokWaits(ctx context.Context, kubeconfig string) (bool, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return false, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, err
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kwok"})
	if err != nil || len(pods.Items) != 1 {
		return false, err
	}
	statuses := pods.Items[0].Status.ContainerStatuses
	return len(statuses) == 1 && statuses[0].State.Waiting != nil, nil
}
