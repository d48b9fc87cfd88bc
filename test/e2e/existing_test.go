//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/test/readingrole"
	"scaler.mesh/scaler/test/snapshot"
)

// keptCluster is a cluster with istiod that a rollout has left.
type keptCluster struct{ name, kubeconfig, proxies, metrics string }

// keep leaves a cluster with istiod.
func (p place) keep() keptCluster {
	GinkgoHelper()
	kept := place{state: p.state, out: p.out + "-kept"}
	Expect(wait(kept.rollout(2, "--keep", "--settle", "0s", "--steady", "1s"))).To(Equal(exitDone))
	kubeconfig := p.kubeconfig()
	group := filepath.Dir(kubeconfig)
	c := keptCluster{name: filepath.Base(group), kubeconfig: kubeconfig}
	state, err := process.Inspect(group)
	Expect(err).NotTo(HaveOccurred())
	for _, child := range state.Children {
		arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(child.PID), "cmdline"))
		if child.Name != "istiod" || err != nil {
			continue
		}
		all := strings.Split(string(arguments), "\x00")
		c.proxies, c.metrics = all[slices.Index(all, "--secureGRPCAddr")+1], all[slices.Index(all, "--monitoringAddr")+1]
	}
	Expect(c.proxies).NotTo(BeEmpty(), "address of istiod")
	return c
}

// limited returns the cluster as a user sees it who has the documented rights alone, and that user.
func (c keptCluster) limited(ctx context.Context, folder string) (keptCluster, *user) {
	GinkgoHelper()
	operator := newUser(ctx, c.kubeconfig, filepath.Join(folder, "operator"))
	operator.allow(ctx, existing.RoleName, existing.Rights(drivers.Default().Installed.Rights))
	c.kubeconfig = operator.kubeconfig
	return c, operator
}

// failedChecks returns the names of those that `scaler doctor -o json` reported as failed.
func failedChecks(session *gexec.Session) (failed []string) {
	GinkgoHelper()
	var list struct{ Items []doctor.Result }
	Expect(json.Unmarshal(session.Out.Contents(), &list)).To(Succeed())
	for _, r := range list.Items {
		if r.Status == doctor.Failed {
			failed = append(failed, r.Name)
		}
	}
	return failed
}

// inside returns the arguments of a rollout of a synthetic mesh in the cluster.
func (c keptCluster) inside(p place, args ...string) []string {
	return c.rollout(p, append([]string{"--pods", "10", "--services", "3", "--namespaces", "2", "--mode", "strict", "--probes", "1"}, args...)...)
}

// rollout returns the arguments of a rollout in the cluster.
func (c keptCluster) rollout(p place, args ...string) []string {
	return append([]string{
		"rollout", "--context", c.name, "--kubeconfig", c.kubeconfig, "--control-plane-address", c.proxies, "--control-plane-metrics", c.metrics,
		"--out", p.out, "-o", "json", "--calibrate=false", "--baseline", "1s", "--settle", "0s", "--converge-timeout", "90s",
	}, args...)
}

// objects returns all objects of the cluster.
func (c keptCluster) objects(ctx context.Context) []string {
	GinkgoHelper()
	config, _ := connection(c.kubeconfig)
	all, err := snapshot.Objects(ctx, config)
	Expect(err).NotTo(HaveOccurred())
	Expect(len(all)).To(BeNumerically(">", 100))
	return all
}

var _ = Describe("a cluster that is there already", func() {
	It("is as it was after a rollout in it, and after a killed one and cleanup", func(ctx SpecContext) {
		where := newPlace()
		all := where.keep()
		By("looking, with the rights to read alone")
		reader := newUser(ctx, all.kubeconfig, filepath.Join(filepath.Dir(where.state), "reader"))
		everywhere, home, err := readingrole.Rules(filepath.Join("..", "..", "docs"))
		Expect(err).NotTo(HaveOccurred())
		reader.allow(ctx, "reader", slices.Concat(everywhere, home))
		read := reader.recordRights()
		looked := where.start("doctor", "--context", all.name, "--kubeconfig", reader.kubeconfig, "--control-plane-address", all.proxies, "-o", "json")
		Expect(wait(looked)).To(Equal(exitFailed))
		Expect(failedChecks(looked)).To(Equal([]string{"rights"}), "no run is possible, and all else is known")
		Expect(wait(where.start("capture", "--context", all.name, "--kubeconfig", reader.kubeconfig, "--output-file", "-"))).To(Equal(exitDone))
		Expect(read.unused(slices.Concat(everywhere, home))).To(HaveExactElements(
			"create pods/portforward", // istiod is no pod here
			"get mutatingwebhookconfigurations.admissionregistration.k8s.io", // which is why doctor does not look whether injection is there
			// The cluster does not have the kinds of the Gateway API.
			"list backendtlspolicies.gateway.networking.k8s.io", "list gatewayclasses.gateway.networking.k8s.io", "list gateways.gateway.networking.k8s.io",
			"list grpcroutes.gateway.networking.k8s.io", "list httproutes.gateway.networking.k8s.io", "list listenersets.gateway.networking.k8s.io",
			"list referencegrants.gateway.networking.k8s.io", "list tcproutes.gateway.networking.k8s.io", "list tlsroutes.gateway.networking.k8s.io", "list udproutes.gateway.networking.k8s.io",
		))
		reader.remove(ctx)

		cluster, operator := all.limited(ctx, filepath.Dir(where.state))
		rights := operator.recordRights()
		before := all.objects(ctx)

		By("asking nobody and creating nothing")
		asked := where.start(cluster.inside(where)...)
		Expect(wait(asked)).To(Equal(exitUsage))
		Expect(asked.Err).To(gbytes.Say("to be created: +\\d+ AuthorizationPolicy, 3 Deployment, 2 Namespace, 1 Node, 2 PeerAuthentication, 3 Service, 3 ServiceAccount, 3 Sidecar, and 10 pods"))
		Expect(asked.Err).To(gbytes.Say("cannot ask for confirmation without a terminal: want --yes"))
		shown := where.start(cluster.inside(where, "--dry-run")...)
		Expect(wait(shown)).To(Equal(exitDone))
		Expect(strings.Count(string(shown.Out.Contents()), "\nkind: Deployment\n")).To(Equal(3))
		Expect(all.objects(ctx)).To(Equal(before))

		doctor := where.start("doctor", "--context", cluster.name, "--kubeconfig", cluster.kubeconfig, "--control-plane-address", cluster.proxies)
		Expect(wait(doctor)).To(Equal(exitDone))

		By("rolling out")
		session := where.start(cluster.inside(where, "--yes", "--steady", "2s", "--change", "2/s:route", "--change-duration", "3s", "--churn", "2/s",
			"--fault", "reset-streams:50%@steady", "--fault", "rolling-restart@steady")...)
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(known(run.Pods.Converged)).To(Equal(10))
		Expect(run.Environment.Existing).To(HaveField("Access", record.AccessAddress))
		Expect(known(run.Environment.Existing).Usage).To(Equal(record.UsageOfOwnMetrics))
		Expect(known(run.ControlPlane.Rollout).CPUSeconds).To(HaveValue(BeNumerically(">", 0)))
		Expect(known(known(run.ControlPlane.Rollout).MemoryBytes).Peak).To(HaveValue(BeNumerically(">", 50e6)))
		Expect(run.Latencies.Push[record.RouteChange]).To(HaveField("Lost", BeZero()))
		Expect(known(known(run.Change).Push)).To(And(HaveField("Count", BeNumerically(">", 0)), HaveField("Lost", BeZero())))
		Expect(known(known(run.Churn).Replaced)).To(BeNumerically(">", 0))
		Expect(run.Faults).To(HaveLen(2))
		Expect(run.Faults).To(HaveEach(HaveField("Seconds", Not(BeNil()))), "the mesh converges again after each")
		Expect(all.objects(ctx)).To(Equal(before))

		By("rolling out twice")
		where.out += "-twice"
		Expect(wait(where.start(cluster.inside(where, "--yes", "--repeats", "2", "--steady", "1s", "--probes", "0")...))).To(Equal(exitDone))
		twice, err := record.Read(where.out)
		Expect(err).NotTo(HaveOccurred())
		Expect(twice).To(HaveLen(2))
		Expect(twice).To(HaveEach(HaveField("Status", record.StatusCompleted)))
		Expect(twice[0].Environment.Existing.Run).NotTo(Equal(twice[1].Environment.Existing.Run))
		Expect(all.objects(ctx)).To(Equal(before))

		By("ending a rollout at a limit")
		where.out += "-aborted"
		_, client := connection(all.kubeconfig)
		pending := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pending"}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"no": "node"}, Containers: []corev1.Container{{Name: "app", Image: "app"}},
		}}
		must(client.CoreV1().Pods("default").Create(ctx, pending, metav1.CreateOptions{}))
		with := all.objects(ctx)
		aborted := where.start(cluster.inside(where, "--yes", "--steady", "5m", "--abort-if", "pending-pods>0")...)
		Expect(wait(aborted)).To(Equal(exitFailed))
		Expect(aborted.Err).To(gbytes.Say("pending-pods is 1, and place.abortIf has pending-pods>0"))
		Expect(all.objects(ctx)).To(Equal(with))
		Expect(client.CoreV1().Pods("default").Delete(ctx, pending.Name, metav1.DeleteOptions{})).To(Succeed())

		By("killing a rollout")
		where.out += "-killed"
		killed := where.start(cluster.inside(where, "--yes", "--steady", "5m")...)
		where.reach(killed, record.PhaseSteady)
		killed.Kill().Wait()
		Expect(all.objects(ctx)).NotTo(Equal(before))
		label := known(where.recorded().Environment.Existing).Run
		for range 2 {
			cleanup := where.start("cleanup", "--context", cluster.name, "--kubeconfig", cluster.kubeconfig, "--run", label)
			Expect(wait(cleanup)).To(Equal(exitDone))
			Expect(all.objects(ctx)).To(Equal(before))
		}

		By("rolling out a captured mesh")
		file := filepath.Join(filepath.Dir(where.state), "sixty.yaml")
		manifests, err := filepath.Glob(filepath.Join("testdata", "sixty", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(wait(where.start(append([]string{"capture", "--output-file", file}, manifests...)...))).To(Equal(exitDone))
		where.out += "-captured"
		replay := cluster.rollout(where, "--mesh", file, "--yes", "--steady", "1s", "--probes", "1")
		refused := where.start(replay...)
		Expect(wait(refused)).To(Equal(exitFailed))
		Expect(refused.Err).To(gbytes.Say("lacks rights: .*create envoyfilters.networking.istio.io"))
		operator.allow(ctx, existing.MeshesRoleName, drivers.Default().Installed.MeshRights)
		before = all.objects(ctx)
		captured := where.start(replay...)
		Expect(wait(captured)).To(Equal(exitDone))
		Expect(captured.Err).To(gbytes.Say("not created: +\\d+ parts of the mesh file"))
		replayed := printed(captured)
		Expect(known(replayed.Pods.Ready)).To(Equal(60))
		Expect(known(replayed.Mesh).NotReproduced).To(ContainElement(HaveField("What", "control plane")))
		Expect(replayed.Latencies.Push[record.RouteChange]).To(HaveField("Lost", BeZero()))
		Expect(all.objects(ctx)).To(Equal(before))
		Expect(rights.unused(slices.Concat(existing.Rights(drivers.Default().Installed.Rights), drivers.Default().Installed.MeshRights))).To(HaveExactElements(
			"create pods",             // of latency, of KWOK in the cluster, and to try out why one is refused
			"create pods/portforward", // where istiod has no address
			"create trafficextensions.extensions.istio.io", // the mesh has none
			"delete deployments.apps",                      // of real sidecars
			"deletecollection trafficextensions.extensions.istio.io",
			"get authorizationpolicies.security.istio.io", // that istiod has written meanwhile
			"get pods",            // of latency, and of KWOK in the cluster
			"get serviceaccounts", // that a refused pod lacks
			"get services",        // of latency
			"get virtualservices.networking.istio.io",       // that istiod has written meanwhile
			"patch authorizationpolicies.security.istio.io", // --change RATE:policy
			"patch services", // --change RATE:metadata
		))

		Expect(wait(where.start("cluster", "down", cluster.name))).To(Equal(exitDone))
		Expect(wait(where.start("cleanup"))).To(Equal(exitDone))
	}, SpecTimeout(7*time.Minute))
})
