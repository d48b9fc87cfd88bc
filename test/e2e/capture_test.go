//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// replay rolls a mesh out and captures what it became.
func replay(where place, file, into string, args ...string) (record.Run, capture.Mesh) {
	GinkgoHelper()
	return replayed(where, file, into, append(args, "--keep")...), captured(where, into)
}

// replayed rolls a mesh out.
func replayed(where place, file, into string, args ...string) record.Run {
	GinkgoHelper()
	session := where.startReplay(file, into, args...)
	Expect(wait(session)).To(Equal(exitDone))
	return printed(session)
}

// startReplay starts to roll a mesh out.
func (p place) startReplay(file, into string, args ...string) *gexec.Session {
	GinkgoHelper()
	return p.start(append([]string{"rollout", "--dilate", "1", "--mesh", file, "--baseline", "1s", "--settle", "3s", "--steady", "1s", "--calibrate=false", "-o", "json",
		"--out", filepath.Join(p.out, into)}, args...)...)
}

// captured captures the mesh of the only cluster that runs, and stops it.
func captured(where place, name string) capture.Mesh {
	GinkgoHelper()
	mesh := where.capture(name)
	Expect(wait(where.start("cluster", "down", filepath.Base(filepath.Dir(where.kubeconfig()))))).To(Equal(exitDone))
	return mesh
}

// capture captures the mesh of the only cluster that runs.
func (p place) capture(name string) capture.Mesh {
	GinkgoHelper()
	file := filepath.Join(filepath.Dir(p.state), name+".yaml")
	Expect(wait(p.start("capture", "--kubeconfig", p.kubeconfig(), "--output-file", file))).To(Equal(exitDone))
	return readMesh(file)
}

// restricted writes the kubeconfig of a service account that may list what capture reads, without
// the resources named.
func restricted(ctx context.Context, kubeconfig, file string, without ...string) {
	GinkgoHelper()
	var rights []rbacv1.PolicyRule
	for _, r := range capture.Resources() {
		if !slices.Contains(without, r.Resource) {
			rights = append(rights, rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{"list"}})
		}
	}
	newUser(ctx, kubeconfig, file).allow(ctx, "reader", rights)
}

// apply creates the objects of files, in the namespace default unless they name another.
func apply(ctx context.Context, kubeconfig string, files ...string) {
	GinkgoHelper()
	resources := newResources(kubeconfig)
	for _, file := range files {
		content, err := os.Open(file)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(content.Close)
		for _, object := range manifests(file, content) {
			Eventually(func() error { // a definition takes effect some time after its creation
				objects, err := resources.of(object)
				if err != nil {
					return err
				}
				_, err = objects.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true})
				return err
			}).Should(Succeed(), "%s: %s %s", file, object.GetKind(), object.GetName())
		}
	}
}

// captureCases captures files of the cases of package capture, and returns the mesh's.
func (p place) captureCases(into string, names ...string) string {
	GinkgoHelper()
	file := filepath.Join(filepath.Dir(p.state), into+".yaml")
	args := []string{"capture", "--output-file", file}
	for _, name := range names {
		args = append(args, filepath.Join("..", "..", "internal", "capture", "testdata", "cases", name))
	}
	Expect(wait(p.start(args...))).To(Equal(exitDone))
	return file
}

// readMesh reads the file of a mesh.
func readMesh(file string) capture.Mesh {
	GinkgoHelper()
	f, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer f.Close()
	mesh, err := capture.Read(file, f)
	Expect(err).NotTo(HaveOccurred())
	return mesh
}

// text returns the file of a mesh without what was left out, which is about the cluster, and without the control plane.
func text(mesh capture.Mesh) string {
	GinkgoHelper()
	mesh.LeftOut, mesh.Captured, mesh.ControlPlane = nil, nil, nil
	var text strings.Builder
	Expect(mesh.Write(&text)).To(Succeed())
	return text.String()
}

// endpointsSent returns the endpoints that istiod has for one of its sidecars, by cluster.
func endpointsSent(ctx context.Context, where place) map[string][]string {
	GinkgoHelper()
	_, client := connection(where.kubeconfig())
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: kwok.RunLabel})
	Expect(err).NotTo(HaveOccurred())
	Expect(pods.Items).NotTo(BeEmpty())
	var dump struct {
		Configs []struct { // ClusterLoadAssignments
			ClusterName string
			Endpoints   []struct {
				LbEndpoints []struct {
					Endpoint struct {
						Address struct {
							SocketAddress struct {
								Address   string
								PortValue int
							}
						}
					}
				}
			}
		}
	}
	Expect(json.Unmarshal(debug(where.state, "edsz?proxyID="+pods.Items[0].Name+"."+pods.Items[0].Namespace), &dump)).To(Succeed())
	held := map[string][]string{}
	for _, c := range dump.Configs {
		for _, locality := range c.Endpoints {
			for _, e := range locality.LbEndpoints {
				at := e.Endpoint.Address.SocketAddress
				held[c.ClusterName] = append(held[c.ClusterName], fmt.Sprintf("%s:%d", at.Address, at.PortValue))
			}
		}
	}
	return held
}

// unchecked returns the parts of a run's mesh that its record lists as not checked.
func unchecked(run record.Run) (parts []string) {
	for _, n := range run.Mesh.NotChecked {
		parts = append(parts, string(n.What))
	}
	return parts
}

var _ = Describe("a captured mesh", func() {
	It("of a rollout is rolled out as it was, and twice, without names and some rights", acceptance, func(ctx SpecContext) {
		where := newPlace()
		dir := filepath.Dir(where.state)
		const storm = "reset-streams:100%@steady" // each sidecar connects to the converged mesh
		// A sidecar that connects before istiod knows its scope is sent listeners that it is to remove again, and holds
		// their routes until they have drained, which is longer than the run: what two runs hold would differ by them.
		// While pods come istiod may collect changes for as long as its greatest debounce, 10 s.
		const delay = "12s"
		session := where.rollout(12, "--mode", "strict", "--services", "4", "--namespaces", "2", "--calibrate=false", "--keep", "--fault", storm, "--start-delay", delay,
			"--set", "mesh.parts.destinationRules=2", "--set", "mesh.parts.serviceEntries=1", "--set", "mesh.parts.tcpServices=1", "--set", "mesh.parts.headlessServices=1", "--set", "mesh.parts.externalNames=1",
			"--set", "mesh.parts.gateways=1", "--set", "mesh.parts.zones=3", "--set", "mesh.parts.outsidePods=3")
		Expect(wait(session)).To(Equal(exitDone))
		first := printed(session)
		few := filepath.Join(dir, "reader.kubeconfig")
		restricted(ctx, where.kubeconfig(), few, "deployments", "telemetries")
		anonymous := filepath.Join(dir, "anonymous.yaml")
		capturing := where.start("capture", "--kubeconfig", few, "--anonymize", "--output-file", anonymous)
		Expect(wait(capturing)).To(Equal(exitDone))
		mesh := captured(where, "first")
		Expect(mesh.Services).To(HaveLen(6))
		Expect(mesh.Zones()).To(HaveLen(3))

		By("all of it")
		second, again := replay(where, filepath.Join(dir, "first.yaml"), "second", "--fault", storm, "--start-delay", delay)
		Expect(text(again)).To(Equal(text(mesh)), "services, workloads and objects of the replay")
		Expect(known(second.Pods.Converged)).To(Equal(12))
		Expect(second.Mesh.Endpoints).To(Equal(mesh.Endpoints()))
		for kind, bytes := range known(first.XDS.ConfigurationBytes).ByType {
			Expect(known(second.XDS.ConfigurationBytes).ByType[kind]).To(BeNumerically("~", bytes, bytes/50), "bytes of %s that a converged sidecar holds", kind)
			sent := func(run record.Run) float64 {
				return float64(run.Faults[0].Bytes[kind]) / float64(known(run.Faults[0].Reconnected))
			}
			Expect(sent(first)).To(BeNumerically(">", 0), kind)
			Expect(sent(second)).To(BeNumerically("~", sent(first), sent(first)/50), "bytes of %s that a sidecar is sent when it connects", kind)
		}

		By("what may be read of it, without names, twice")
		for _, kind := range []string{"deployments.apps", "telemetries.telemetry.istio.io"} {
			Expect(readMesh(anonymous).LeftOut).To(ContainElement(capture.LeftOut{Kind: kind, Reason: "no right to list them"}))
			Expect(string(capturing.Err.Contents())).To(ContainSubstring("left out: " + kind + ": no right to list them\n"))
		}
		twice := replayed(where, anonymous, "twice", "--scale", "2")
		Expect(known(twice.Pods.Converged)).To(Equal(24))
		Expect(twice.Mesh.Anonymized).To(BeTrue())
		Expect(twice.Mesh.Endpoints).To(Equal(2 * mesh.Endpoints()))
		Expect([]int{twice.Mesh.Zones, twice.Mesh.Gateways, twice.Mesh.Outside}).To(Equal([]int{3, 2, 6}))
		Expect(unchecked(twice)).To(ConsistOf("other-resources", "mesh-config", "inbound-policies", "routes", "cluster-settings", "external-names", "address-listeners", "gateway-listeners"))
	})

	It("has pods that are admitted, or ends at once with the reason", func() {
		where := newPlace()
		dir := filepath.Dir(where.state)
		files := func(names ...string) string {
			mesh := filepath.Join(dir, names[0])
			args := []string{"capture", "--output-file", mesh}
			for _, name := range names {
				args = append(args, filepath.Join("testdata", name))
			}
			Expect(wait(where.start(args...))).To(Equal(exitDone))
			return mesh
		}
		By("though their namespaces enforce a level of pod security, and they ask for a template of injection that nobody has")
		run := replayed(where, files("pod-security.yaml", "injection-templates.yaml", "machine.yaml"), "admitted")
		Expect(known(run.Pods.Converged)).To(Equal(8), "with the endpoint of the virtual machine")
		Expect(run.Mesh.NotChecked).To(ContainElement(record.NotChecked{What: record.UncheckedTemplates, Count: 1, Examples: []string{"team-tuning of shop/client"}}))

		By("unless the webhook refuses them")
		session := where.start("rollout", "--dilate", "1", "--mesh", files("refused.yaml"), "--baseline", "1s", "--calibrate=false", "-o", "json", "--out", filepath.Join(where.out, "refused"))
		Expect(wait(session)).To(Equal(exitFailed))
		refused := printed(session)
		Expect(refused.Reason).To(And(ContainSubstring("Deployment shop/cart: its pods are refused: admission webhook"), ContainSubstring("10.0.0.0/99")))
		Expect(refused.Status).To(Equal(record.StatusFailed))
	})

	It("is quiescent where what is expected does not hold, and the run goes on", func() {
		where := newPlace()
		run := replayed(where, filepath.Join("testdata", "renamed-cluster.yaml"), "quiescent", "--fault", "kill-control-plane@steady")
		Expect(run.Status).To(Equal(record.StatusCompleted))
		rollout := known(run.Phase(record.PhaseRollout))
		Expect(rollout.EndedBy).To(Equal(record.EndedByQuiescent))
		Expect(known(rollout.Seconds)).To(BeNumerically(">", 10), "the greatest debounce")
		want := record.HoldingDifference{Type: "CDS", Resource: "outbound|80||bill.pay.svc.cluster.local", Sidecars: 6, Detail: "is not held", Object: "EnvoyFilter shop/static"}
		got := rollout.Differences[0]
		Expect(got.Example).To(HavePrefix("shop/cart-"))
		got.Example = ""
		Expect(got).To(Equal(want))
		Expect(rollout.Differences).To(HaveLen(1))
		Expect([]int{known(run.Pods.Ready), known(run.Pods.Complete), known(run.Pods.Converged)}).To(Equal([]int{10, 4, 4}))
		complete := known(run.Latencies.CompleteConfiguration)
		Expect([]int64{complete.Count, complete.Lost, complete.Unmet}).To(Equal([]int64{4, 0, 6}))
		Expect(complete.P50).To(BeNil())
		Expect(known(run.Latencies.PodReady).Count).To(BeEquivalentTo(10), "all had what they requested")
		Expect(known(run.Latencies.Certificate).P50).NotTo(BeNil(), "which does not depend on it")
		Expect(run.RolloutSeconds()).To(BeNil())

		fault := known(run.Phase(record.PhaseFault))
		Expect(fault.EndedBy).To(Equal(record.EndedByQuiescent), "as before the control plane was killed")
		Expect(run.Faults[0].Seconds).To(BeNil())
		Expect(known(run.Faults[0].Reconnected)).To(Equal(10))
	})

	It("is changed and followed, and is afterwards what it was", func() {
		where := newPlace()
		file := filepath.Join("testdata", "changed.yaml")
		session := where.startReplay(file, "changed", "--probes", "2", "--change", "5/s:route", "--change-duration", "3s", "--keep")
		place{state: where.state, out: filepath.Join(where.out, "changed")}.reach(session, record.PhaseSteady)
		signal(session, syscall.SIGSTOP) // it goes on when the mesh was captured
		untouched := where.capture("untouched")
		signal(session, syscall.SIGCONT)
		Expect(wait(session)).To(Equal(exitDone))
		run, after := printed(session), captured(where, "changed")
		for _, kind := range []record.ChangeKind{record.EndpointAdd, record.EndpointRemove, record.EndpointHealth, record.RouteChange, record.PolicyChange} {
			push := known(run.Latencies.Push[kind])
			Expect(push.Lost).To(BeZero(), string(kind))
			Expect(push.Count).To(BeNumerically(">", 0), string(kind))
			Expect(run.Latencies.Changes(kind)).To(BeEquivalentTo(2), string(kind))
		}
		Expect(known(run.Latencies.Push[record.RouteChange]).Count).To(BeEquivalentTo(2*13), "all have a route to pay/bill, and shop/cart is routed by a VirtualService of the mesh")
		Expect(known(known(run.Change).Push).Lost).To(BeZero())
		Expect(run.Warnings).NotTo(ContainElement(HaveField("Reason", record.ReasonStrays)))
		Expect(text(after)).To(Equal(text(untouched)))
	})

	It("is upgraded in waves of namespaces", func() {
		where := newPlace()
		// To the same version, since another istiod takes minutes to build.
		session := where.start("upgrade", "--dilate", "1", "--mesh", filepath.Join("testdata", "changed.yaml"), "--from", "1.31.0", "--to", "1.31.0", "--to-env", "PILOT_PUSH_THROTTLE=10", "--canary", "50%,100%",
			"--baseline", "1s", "--settle", "1s", "--steady", "1s", "--pause", "2s", "--calibrate=false", "-o", "json", "--out", filepath.Join(where.out, "upgraded"))
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect([]int{known(known(known(run.Upgrade).Stages["wave-1"]).Pods), known(known(known(run.Upgrade).Stages["wave-2"]).Pods)}).To(Equal([]int{7, 6}), "namespace pay, then shop")
		Expect(known(run.Phase(record.UpgradePhase("wave-2"))).EndedBy).To(Equal(record.EndedByConverged))
	})

	It("has what the captured one had: ports of several containers, pods that differ, kinds of one name, endpoints that are no pods", func(ctx SpecContext) {
		where := newPlace()
		file := where.captureCases("people", "port-names/duplicate.yaml", "json-stream/istio.jsonl", "per-pod-labels/statefulset.yaml", "per-pod-labels/operator.yaml",
			"unreadable/cluster.yaml", "unreadable/no-spec.yaml", "scale/nodeports.yaml", "endpoints/external.yaml")
		mesh := readMesh(file)
		session := where.startReplay(file, "people", "--keep")
		place{state: where.state, out: filepath.Join(where.out, "people")}.reach(session, record.PhaseSteady)
		signal(session, syscall.SIGSTOP) // its sidecars stay connected
		held := endpointsSent(ctx, where)
		signal(session, syscall.SIGCONT)
		Expect(wait(session)).To(Equal(exitDone))
		run := printed(session)
		Expect(known(run.Pods.Converged)).To(Equal(14))
		Expect(run.Mesh.Endpoints).To(Equal(14+6), "two of cart, six of the brokers, six of the database; two outside of extdb, two of each port of legacy")
		Expect(run.Mesh.Objects).To(HaveKeyWithValue("endpointslices.discovery.k8s.io", 2))
		Expect(held["outbound|5432||extdb.billing.svc.cluster.local"]).To(ConsistOf("192.0.2.21:5432", "192.0.2.22:5432"))
		Expect(held["outbound|80||legacy.billing.svc.cluster.local"]).To(ConsistOf("198.51.100.7:8080", "198.51.100.8:8080"))
		Expect(held["outbound|81||legacy.billing.svc.cluster.local"]).To(ConsistOf("198.51.100.7:8081", "198.51.100.8:8081"))
		again := captured(where, "people-again")
		Expect(text(again)).To(Equal(text(mesh)))
	})

	It("has durations as Kubernetes accepts them, and a hundred copies of Services with load balancers", acceptance, func() {
		where := newPlace()
		run := replayed(where, where.captureCases("durations", "durations/cluster.yaml", "durations/istio.yaml"), "of-durations")
		Expect([]int{run.Pods.Requested, known(run.Pods.Converged)}).To(Equal([]int{3, 3}))
		Expect(run.Mesh.Objects).To(And(HaveKeyWithValue("destinationrules.networking.istio.io", 1), HaveKeyWithValue("virtualservices.networking.istio.io", 1)))

		file := where.captureCases("ports", "scale/nodeports.yaml")
		ports := 0
		for _, s := range readMesh(file).Services {
			ports += len(s.Spec.Ports)
		}
		run = replayed(where, file, "of-ports", "--scale", "100")
		Expect([]int{100 * ports, run.Mesh.Services}).To(Equal([]int{3000, 300}))
		Expect([]int{run.Pods.Requested, known(run.Pods.Converged)}).To(Equal([]int{1, 1}))
	})

	It("of Istio's samples converges", acceptance, func(ctx SpecContext) {
		where := newPlace()
		dir := filepath.Dir(where.state)
		download := exec.Command("go", "mod", "download", "-json", "-modfile=internal/component/modules/istio.mod", "istio.io/istio")
		download.Dir = filepath.Join("..", "..")
		printed, err := download.Output()
		Expect(err).NotTo(HaveOccurred())
		var module struct{ Dir string }
		Expect(json.Unmarshal(printed, &module)).To(Succeed())
		around := filepath.Join(dir, "around.yaml")
		Expect(os.WriteFile(around, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {istio-injection: enabled}}\n"), 0o600)).To(Succeed())
		samples := []string{around}
		for _, name := range []string{
			"bookinfo/platform/kube/bookinfo.yaml", "bookinfo/networking/bookinfo-gateway.yaml", "bookinfo/networking/destination-rule-all.yaml",
			"bookinfo/networking/virtual-service-all-v1.yaml", "helloworld/helloworld.yaml", "tcp-echo/tcp-echo.yaml", "httpbin/httpbin.yaml",
			"external/github.yaml", "bookinfo/gateway-api/bookinfo-gateway.yaml",
		} {
			samples = append(samples, filepath.Join(module.Dir, "samples", name))
		}
		files := filepath.Join(dir, "files.yaml")
		Expect(wait(where.start(append([]string{"capture", "--output-file", files}, samples...)...))).To(Equal(exitDone))

		By("applied to a cluster with a mesh of one pod, which injects sidecars")
		Expect(wait(where.rollout(1, "--probes", "0", "--calibrate=false", "--keep"))).To(Equal(exitDone))
		apply(ctx, where.kubeconfig(), filepath.Join(module.Dir, "tests/integration/pilot/testdata/gateway-api-crd.yaml"))
		apply(ctx, where.kubeconfig(), samples...)
		_, client := connection(where.kubeconfig())
		Eventually(func() ([]corev1.Pod, error) { // istiod makes a Deployment and a Service of the Gateway
			pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			return pods.Items, err
		}).Should(HaveLen(11))
		Eventually(func() ([]corev1.Service, error) { // the Service comes after the Deployment
			services, err := client.CoreV1().Services(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "gateway.networking.k8s.io/gateway-name"})
			return services.Items, err
		}).Should(HaveLen(1))
		mesh := captured(where, "samples")
		same := readMesh(files)
		Expect(mesh.Services).To(HaveLen(len(same.Services)+2), "those of the samples, of the mesh and of the gateway")
		Expect(mesh.Workloads).To(HaveLen(len(same.Workloads) + 2))
		Expect(mesh.Objects).To(HaveLen(len(same.Objects)))

		By("rolled out")
		run, again := replay(where, filepath.Join(dir, "samples.yaml"), "samples-replayed")
		Expect(text(again)).To(Equal(text(mesh)))
		Expect(known(run.Pods.Converged)).To(Equal(12))
		Expect(unchecked(run)).To(ConsistOf("other-resources", "address-listeners", "gateway-listeners", "routes", "cluster-settings", "service-entries"))
	})
})
