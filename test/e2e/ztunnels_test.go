//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// watchedZtunnel is a ztunnel of a run, and what it reported.
type watchedZtunnel struct {
	proxy.Proxy
	pod, node string

	mu        sync.Mutex
	stray     string // an identity that the next request is for, whatever it should be for; "" = none
	certified map[string]bool
	refused   []error
	answers   []answer
}

// answer is a response as far as it matters here.
type answer struct {
	Kind           string
	Bytes, Changed int // its length, and how many resources changed with it
}

// watchedIssuer is the issuer of a ztunnel.
type watchedIssuer struct {
	ztunnel.Issuer
	of *watchedZtunnel
}

func (i watchedIssuer) IssueFor(ctx context.Context, token, identity string, csr []byte) (proxy.Issued, error) {
	i.of.mu.Lock()
	if i.of.stray != "" {
		identity, i.of.stray = i.of.stray, ""
	}
	i.of.mu.Unlock()
	return i.Issuer.IssueFor(ctx, token, identity, csr)
}

// watchedEvents passes the events of a ztunnel on.
type watchedEvents struct {
	proxy.Observer
	of *watchedZtunnel
}

func (e watchedEvents) Certified(id string, c proxy.Certificate) {
	e.of.mu.Lock()
	if c.Err != nil {
		e.of.refused = append(e.of.refused, c.Err)
	} else {
		e.of.certified[c.Identity] = true
	}
	e.of.mu.Unlock()
	e.Observer.Certified(id, c)
}

func (e watchedEvents) Updated(id string, u proxy.Update) {
	e.of.mu.Lock()
	e.of.answers = append(e.of.answers, answer{u.Type.String(), u.Bytes, len(u.Set) + len(u.Removed)})
	if u.Node != nil {
		for _, identity := range u.Node.Dropped {
			delete(e.of.certified, identity)
		}
	}
	e.of.mu.Unlock()
	e.Observer.Updated(id, u)
}

// has reports whether it has a certificate of an identity.
func (z *watchedZtunnel) has(identity string) func() bool {
	return func() bool {
		z.mu.Lock()
		defer z.mu.Unlock()
		return z.certified[identity]
	}
}

// names returns the names of all resources that it holds.
func (z *watchedZtunnel) names() []string {
	var names []string
	for _, r := range z.Held() {
		names = append(names, r.Type.String()+" "+r.Name)
	}
	slices.Sort(names)
	return names
}

// since returns the responses after the first n.
func (z *watchedZtunnel) since(n int) []answer {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.answers[n:])
}

// watchedZtunnels are the ztunnels of a run by their nodes, each the newest.
type watchedZtunnels struct {
	mu sync.Mutex
	on map[string]*watchedZtunnel
}

// driver returns a driver whose ztunnels are watched.
func (w *watchedZtunnels) driver(d controlplane.Driver) controlplane.Driver {
	d.Dataplanes = slices.Clone(d.Dataplanes)
	at := slices.IndexFunc(d.Dataplanes, func(p controlplane.OtherDataplane) bool { return p.Name == "ambient" })
	d.Dataplanes[at].Proxy.New = w.make
	return d
}

func (w *watchedZtunnels) make(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
	issuer, err := authority.NewNode(spec, s.Backends)
	if err != nil {
		return nil, err
	}
	z := &watchedZtunnel{pod: spec.ID, node: spec.Node, certified: map[string]bool{}}
	z.Proxy, err = ztunnel.New(spec, ztunnel.Services{
		Store: s.Store, Observer: watchedEvents{s.Observer, z}, Issuer: watchedIssuer{issuer, z}, Backends: s.Backends, Token: s.Tokens(spec.Token),
	})
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on[spec.Node] = z
	return z, nil
}

// all returns the ztunnels, sorted by node.
func (w *watchedZtunnels) all() []*watchedZtunnel {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*watchedZtunnel
	for _, z := range w.on {
		all = append(all, z)
	}
	slices.SortFunc(all, func(a, b *watchedZtunnel) int { return strings.Compare(a.node, b.node) })
	return all
}

// debug returns the answer of a debug endpoint of istiod. istiod is found by the folder of its group.
func debug(state, path string) []byte {
	GinkgoHelper()
	var address string
	for _, pid := range (place{state: state}).children() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // one that cannot be read has ended
		args := strings.Split(string(line), "\x00")
		for i, arg := range args {
			if arg == "--httpAddr" {
				address = args[i+1]
			}
		}
	}
	Expect(address).NotTo(BeEmpty(), "no istiod runs")
	response, err := http.Get("http://" + address + "/debug/" + path)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
	return body
}

// ambientz returns the names of all that istiod has for ztunnels.
func ambientz(state string) []string {
	GinkgoHelper()
	var own struct {
		Workloads []struct{ UID, Waypoint string }
		Services  []struct{ Namespace, Hostname, Waypoint string }
		Policies  []struct{ Namespace, Name string }
	}
	Expect(json.Unmarshal(debug(state, "ambientz"), &own)).To(Succeed())
	var names []string
	for _, w := range own.Workloads {
		Expect(w.Waypoint).To(BeEmpty())
		names = append(names, "Address "+w.UID)
	}
	for _, s := range own.Services {
		Expect(s.Waypoint).To(BeEmpty())
		names = append(names, "Address "+s.Namespace+"/"+s.Hostname)
	}
	for _, p := range own.Policies {
		names = append(names, "Authorization "+p.Namespace+"/"+p.Name)
	}
	slices.Sort(names)
	return names
}

// disturbedZtunnels has the disturbances of a run's ztunnels. In the end they hold what they held
// before.
type disturbedZtunnels struct {
	state    string
	ztunnels *watchedZtunnels
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	began    bool
}

// exact waits until every ztunnel holds exactly what istiod has.
func (d *disturbedZtunnels) exact() []string {
	GinkgoHelper()
	var own []string
	Eventually(func(g Gomega) {
		own = ambientz(d.state)
		for _, z := range d.ztunnels.all() {
			g.Expect(z.names()).To(Equal(own), z.node)
		}
	}).Should(Succeed())
	return own
}

// disturb does it all.
func (d *disturbedZtunnels) disturb(ctx context.Context) {
	GinkgoHelper()
	d.began = true
	kubeconfigs, err := filepath.Glob(filepath.Join(d.state, "*", "*", "kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	Expect(kubeconfigs).To(HaveLen(1))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfigs[0])
	Expect(err).NotTo(HaveOccurred())
	d.client, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	d.dynamic, err = dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	Expect(d.ztunnels.all()).To(HaveLen(3))
	before := d.exact()
	Expect(before).To(ContainElement(HavePrefix("Authorization ")))

	By("cutting the stream of a ztunnel: istiod sends no Address that it says it holds")
	z := d.ztunnels.all()[0]
	answers := len(z.since(0))
	z.Reset()
	Eventually(func() []answer { return z.since(answers) }).Should(ContainElements(HaveField("Kind", "Address"), HaveField("Kind", "Authorization")))
	for _, a := range z.since(answers) {
		Expect(a.Changed).To(BeZero(), "%+v", a)
		if a.Kind == "Address" {
			Expect(a.Bytes).To(BeNumerically("<", 1000), "of %d resources", len(before))
		}
	}
	d.exact()

	By("replacing the pod of a ztunnel")
	namespace, name, _ := strings.Cut(z.pod, "/")
	z.mu.Lock()
	identities := len(z.certified)
	z.mu.Unlock()
	Expect(d.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})).To(Succeed())
	Eventually(func(g Gomega) {
		next := d.ztunnels.all()[0]
		g.Expect(next.pod).NotTo(Equal(z.pod))
		next.mu.Lock()
		defer next.mu.Unlock()
		g.Expect(next.certified).To(HaveLen(identities))
	}).Should(Succeed())
	d.exact()

	By("moving the last pod of an identity to another node")
	from, to := d.ztunnels.all()[0], d.ztunnels.all()[1]
	const mover = "mover"
	_, err = d.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: mover}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	identity := "spiffe://cluster.local/ns/default/sa/" + mover
	create := func(node string) {
		GinkgoHelper()
		_, err := d.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: mover, Annotations: map[string]string{"ambient.istio.io/redirection": "enabled"}},
			Spec: corev1.PodSpec{
				NodeName: node, ServiceAccountName: mover, Tolerations: []corev1.Toleration{kwok.Toleration()},
				Containers: []corev1.Container{{Name: "app", Image: "scaler.mesh/simulated"}},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	remove := func() {
		GinkgoHelper()
		Expect(d.client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, mover, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})).To(Succeed())
	}
	create(from.node)
	Eventually(from.has(identity)).Should(BeTrue())
	Expect(to.has(identity)()).To(BeFalse())

	By("requesting a certificate of an identity that is not on the node")
	to.mu.Lock()
	to.stray = identity
	to.mu.Unlock()
	to.Renew()
	Eventually(func() []error {
		to.mu.Lock()
		defer to.mu.Unlock()
		return slices.Clone(to.refused)
	}).Should(ConsistOf(Satisfy(func(err error) bool { return status.Code(err) == codes.Unauthenticated })))

	remove()
	Eventually(from.has(identity)).Should(BeFalse())
	create(to.node)
	Eventually(to.has(identity)).Should(BeTrue())
	Expect(from.has(identity)()).To(BeFalse())
	Expect(d.exact()).To(ContainElement("Address Kubernetes//Pod/default/" + mover))
	remove()
	Eventually(to.has(identity)).Should(BeFalse())

	By("making and removing a policy")
	policies := d.dynamic.Resource(schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"}).Namespace(metav1.NamespaceDefault)
	_, err = policies.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": map[string]any{"name": mover},
		"spec": map[string]any{"rules": []any{map[string]any{"from": []any{map[string]any{"source": map[string]any{"principals": []any{"cluster.local/ns/default/sa/nobody"}}}}}}},
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(d.exact).Should(ContainElement("Authorization default/" + mover))
	Expect(policies.Delete(ctx, mover, metav1.DeleteOptions{})).To(Succeed())
	Eventually(d.exact).ShouldNot(ContainElement("Authorization default/" + mover))
	Eventually(func() int { return len(d.exact()) }).Should(Equal(len(before)))
}

// What ztunnels hold is what istiod has, also after they were cut off or replaced, a pod moved
// and a policy changed.
var _ = It("rolls out 30 pods with ztunnels, which are disturbed", func(ctx SpecContext) {
	const pods, nodes = 30, 3
	spec := run.DefaultSpec()
	spec.Mesh.Pods, spec.Mesh.Mode = scenario.List[int]{pods}, scenario.List[string]{"strict"}
	spec.Mesh.Dataplane, spec.Mesh.PodsPerNode = scenario.List[string]{"ambient"}, pods/nodes
	spec.Phases.Baseline, spec.Phases.Settle, spec.Phases.Steady, spec.Load.Probes = second, 2*second, 2*second, 2
	spec.Instrument.Calibrate = false
	spec.Out, spec.State = GinkgoT().TempDir(), GinkgoT().TempDir()
	spec.Programs = component.Options{
		BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR"), Progress: func(msg string) { GinkgoWriter.Println(msg) },
	}
	driver, _, err := drivers.Find(nil, spec.ControlPlane.Name)
	Expect(err).NotTo(HaveOccurred())
	ztunnels := &watchedZtunnels{on: map[string]*watchedZtunnel{}}
	spec.Drivers = []controlplane.Driver{ztunnels.driver(driver)}
	disturbed := &disturbedZtunnels{state: spec.State, ztunnels: ztunnels}
	ladder := run.Ladder{Spec: spec}
	runs, err := ladder.Run(ctx, run.Progress{Say: func(msg string) {
		GinkgoWriter.Println(msg)
		if strings.HasPrefix(msg, fmt.Sprintf("%s: ", record.PhaseSettle)) { // no phase is measured meanwhile
			disturbed.disturb(ctx)
		}
	}})
	Expect(err).NotTo(HaveOccurred())
	Expect(disturbed.began).To(BeTrue())
	Expect(runs).To(HaveLen(1))
	run := &runs[0]
	Expect(run.Status).To(Equal(record.StatusCompleted))
	for _, w := range run.Warnings {
		// What is held after all of that, and what istiod counts, is exactly what is expected.
		Expect(w.Reason).NotTo(BeElementOf(record.ReasonCountsDiffer, record.ReasonUnexpectedResources, record.ReasonMissingResources), w.Text)
	}
	Expect(known(run.Proxies)).To(Equal(record.Proxies{Name: "ztunnel", Nodes: nodes, Ready: new(nodes)}))
	Expect(run.Pods.Converged).To(HaveValue(Equal(pods)))
	Expect(run.XDS.Nacks).To(HaveValue(BeZero()))
	Expect(run.Certificates.Failed).To(HaveValue(BeZero()), "all pods have one")
	Expect(run.Certificates.FailedAttempts).To(HaveValue(BeEquivalentTo(1)), "that of an identity that was not on the node")
	Expect(known(run.Latencies.Push[record.PolicyChange]).Count).To(BeEquivalentTo(spec.Load.Probes * nodes))
	Expect(known(run.Latencies.Push[record.PolicyChange]).Lost).To(BeZero())
}, SpecTimeout(10*time.Minute))

// Sidecars and ztunnels hold exactly what is expected in one mesh, and receive what concerns them.
var _ = It("rolls out a mesh with sidecars and ztunnels", acceptance, func(ctx SpecContext) {
	const pods, nodes, sidecars = 12, 2, 6
	spec := run.DefaultSpec()
	spec.Mesh.Dataplane, spec.Mesh.PodsPerNode, spec.Mesh.Mode = scenario.List[string]{"mixed"}, pods/nodes, scenario.List[string]{"strict"}
	spec.Mesh.Pods, spec.Mesh.Namespaces, spec.Mesh.Services = scenario.List[int]{pods}, 2, 4
	spec.Phases.Baseline, spec.Phases.Settle, spec.Phases.Steady, spec.Load.Probes = second, 2*second, second, 1
	spec.ControlPlane.Env = []string{"AMBIENT_SCOPED_ADDRESS_PUSHES=false"}
	spec.Instrument.Calibrate = false
	spec.Out, spec.State = GinkgoT().TempDir(), GinkgoT().TempDir()
	spec.Programs = component.Options{
		BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR"), Progress: func(msg string) { GinkgoWriter.Println(msg) },
	}
	run, err := run.RunOne(ctx, spec, run.Progress{Say: func(msg string) { GinkgoWriter.Println(msg) }})
	Expect(err).NotTo(HaveOccurred())
	for _, w := range run.Warnings {
		Expect(w.Reason).NotTo(BeElementOf(record.ReasonCountsDiffer, record.ReasonUnexpectedResources, record.ReasonMissingResources), w.Text)
	}
	Expect(known(run.Proxies).Namespaces).To(Equal([]string{"mesh-1"}))
	Expect(known(run.Proxies).Sidecars).To(HaveValue(Equal(sidecars)))
	Expect(known(run.Proxies).ConfigurationResources).To(And(HaveKey("Address"), Not(HaveKey("CDS"))))
	Expect(run.XDS.ConfigurationResources).To(And(HaveKey("CDS"), HaveKey("Workload"), Not(HaveKey("Address"))))
	Expect(known(run.Latencies.CompleteConfiguration).Count).To(BeEquivalentTo(sidecars))
	Expect(known(run.Latencies.Push[record.ServiceChange]).Count).To(BeEquivalentTo(nodes))
	for kind, push := range run.Latencies.Push {
		Expect(push.Lost).To(BeZero(), string(kind))
	}
}, SpecTimeout(5*time.Minute))
