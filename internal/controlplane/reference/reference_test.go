package reference

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

func TestReference(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(2 * time.Millisecond)
	RunSpecs(t, "adapter of the reference control plane")
}

var _ = BeforeEach(func() {
	before := goleak.IgnoreCurrent()
	DeferCleanup(func() {
		Eventually(func() error { return goleak.Find(before) }).Should(Succeed())
	})
})

// startServer runs the server over a fake cluster and returns its ADS address
// and the URL of its metrics.
func startServer(client *fake.Clientset) (ads, monitoring string) {
	GinkgoHelper()
	authority, err := server.NewAuthority()
	Expect(err).NotTo(HaveOccurred())
	var listeners [3]net.Listener
	for i := range listeners {
		listeners[i], err = net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
	}
	monitoring = "http://" + listeners[2].Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- server.Run(ctx, server.Options{Client: client, Authority: authority, Secure: listeners[0], Plain: listeners[1], Monitoring: listeners[2]})
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(Succeed()))
	})
	Eventually(controlplane.Answers(monitoring + "/ready")).WithContext(ctx).Should(Succeed())
	return listeners[1].Addr().String(), monitoring
}

// held has the contents that one sidecar holds.
type held struct {
	mu      sync.Mutex
	content map[convergence.Key]*convergence.Content
	markers int
}

func (h *held) TokenFetched(string, proxy.TokenFetched) {}
func (h *held) StreamOpened(string, proxy.StreamOpened) {}
func (h *held) StreamEnded(string, proxy.StreamEnded)   {}
func (h *held) Certified(string, proxy.Certificate)     {}

func (h *held) Updated(_ string, u proxy.Update) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range u.Removed {
		delete(h.content, k)
	}
	for _, r := range u.Set {
		h.content[r.Key] = r.Content
		if r.Content != nil {
			h.markers += len(r.Content.Markers)
		}
	}
}

// Keys returns all that is held, sorted.
func (h *held) Keys() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var keys []string
	for k := range h.content {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}

// Members returns the domains of the route configurations held, sorted.
func (h *held) Members() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var members []string
	for k, c := range h.content {
		if k.Type == convergence.RDS {
			members = append(members, c.Members...)
		}
	}
	slices.Sort(members)
	return members
}

// Marked reports whether anything came that carried a marker.
func (h *held) Marked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.markers > 0
}

// apply creates an object of the adapter's in the fake cluster.
func apply(client *fake.Clientset, object *unstructured.Unstructured) {
	GinkgoHelper()
	var config corev1.ConfigMap
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config)).To(Succeed())
	_, err := client.CoreV1().ConfigMaps(config.Namespace).Create(context.Background(), &config, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("what the adapter expects", func() {
	knobs := map[string]scenario.Settings{
		"at the most permissive":    controlplane.Modes["permissive"],
		"at the strictest":          controlplane.Modes["strict"],
		"with a declared scope":     {MTLS: "permissive", Scope: "declared", Authz: "none"},
		"with declared permissions": {MTLS: "strict", Scope: "all", Authz: "declared"},
	}
	for _, name := range slices.Sorted(maps.Keys(knobs)) {
		It("is what the server sends, "+name+", and a probe reaches those that it is to reach", func() {
			adapter, mesh, knobs := &ControlPlane{}, topology.Build(topology.Spec{Pods: 24, Services: 12, Namespaces: 3, FanOut: 2, Seed: 1}), knobs[name]
			client := fake.NewClientset()
			for _, s := range mesh.Services {
				object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
				for _, p := range s.Ports {
					object.Spec.Ports = append(object.Spec.Ports, corev1.ServicePort{Name: p.Name, Port: int32(p.Number), TargetPort: intstr.FromInt32(int32(p.Target))})
				}
				_, err := client.CoreV1().Services(s.Namespace).Create(context.Background(), object, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			for _, object := range adapter.Objects(mesh, knobs) {
				apply(client, object)
			}
			address, _ := startServer(client)

			store := xdsprobe.NewStore()
			sidecars := make([]*held, len(mesh.Services))
			for i, s := range mesh.Services {
				sidecars[i] = &held{content: map[convergence.Key]*convergence.Content{}}
				node, err := adapter.Spec(podOf(s))
				Expect(err).NotTo(HaveOccurred())
				sidecar := xdsprobe.New(xdsprobe.Config{ID: node.ID, Address: address, NodeID: node.NodeID, NodeCluster: node.NodeCluster}, store, sidecars[i])
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- sidecar.Run(ctx) }()
				DeferCleanup(func() {
					cancel()
					Eventually(done).Should(Receive(Succeed()))
				})
			}
			for i, s := range mesh.Services {
				var keys, members []string
				for _, w := range adapter.Wants(mesh, knobs, i) {
					keys = append(keys, w.Key.String())
					members = append(members, w.Members...)
				}
				slices.Sort(keys)
				slices.Sort(members)
				Eventually(sidecars[i].Keys).Should(Equal(keys), s.Name)
				Expect(sidecars[i].Members()).To(Equal(members), s.Name)
			}
			for _, kind := range []controlplane.ProbeKind{controlplane.RouteProbe, controlplane.PolicyProbe} {
				for _, h := range sidecars {
					h.mu.Lock()
					h.markers = 0
					h.mu.Unlock()
				}
				const probed = 7
				object, concerned := adapter.Probe(kind, mesh, knobs, probed, xdsprobe.Marker(string(kind)+"1"))
				apply(client, object)
				for i := range mesh.Services {
					if slices.Contains(concerned, i) {
						Eventually(sidecars[i].Marked).Should(BeTrue(), "%s, service %d", kind, i)
					}
				}
				for i := range mesh.Services {
					if !slices.Contains(concerned, i) {
						Consistently(sidecars[i].Marked, 10*time.Millisecond).Should(BeFalse(), "%s, service %d", kind, i)
					}
				}
			}
		})
	}
})

func podOf(s topology.Service) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-x", Labels: map[string]string{kwok.ServiceLabel: s.Name}},
		Spec:       corev1.PodSpec{ServiceAccountName: s.Account},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1"},
	}
}

var _ = DescribeTable("pods that are no sidecar's", func(spoil func(*corev1.Pod), want string) {
	pod := podOf(topology.Service{Namespace: "one", Name: "a", Account: "a"})
	spoil(pod)
	_, err := (&ControlPlane{}).Spec(pod)
	Expect(err).To(MatchError(ContainSubstring(want)))
},
	Entry("of no service", func(p *corev1.Pod) { p.Labels = nil }, "not part of the mesh"),
	Entry("without an address", func(p *corev1.Pod) { p.Status.PodIP = "" }, "no IP yet"),
)

var _ = DescribeTable("health", func(ready, serving, terminating bool, want convergence.Health, sent bool) {
	health, ok := (&ControlPlane{}).EndpointHealth(ready, serving, terminating)
	Expect(ok).To(Equal(sent))
	if ok {
		Expect(health).To(Equal(want))
	}
},
	Entry("ready", true, true, false, convergence.Healthy, true),
	Entry("not ready", false, false, false, convergence.Unhealthy, true),
	Entry("terminating and serving", false, true, true, convergence.Draining, true),
	Entry("terminating", false, false, true, convergence.Healthy, false),
)

var _ = It("asks for metrics that the server has", func() {
	_, monitoring := startServer(fake.NewClientset())
	request, err := http.NewRequest(http.MethodGet, monitoring+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())

	m := metrics()
	exprs := []string{m.Counters.Connected, m.Counters.CertificateRequests, m.Counters.Certificates}
	for _, p := range m.Phase {
		exprs = append(exprs, p.Expr)
	}
	for _, expr := range m.Counters.Responses {
		series := regexp.MustCompile(`reference_\w+{.*}`).FindString(expr)
		Expect(string(text)).To(ContainSubstring("\n" + series + " 0"))
		exprs = append(exprs, expr)
	}
	for _, expr := range exprs {
		name := regexp.MustCompile(`reference_\w+`).FindString(expr)
		Expect(string(text)).To(ContainSubstring("# TYPE " + name + " "))
	}
})
