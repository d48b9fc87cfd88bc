package testmesh

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
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
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// TestMain lets the tests' own program be the control plane's.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Name {
		if err := Serve(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestTestmesh(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(2 * time.Millisecond)
	RunSpecs(t, "control plane for tests")
}

// startServer serves a fake cluster in this process.
func startServer(client *fake.Clientset) *adapter {
	GinkgoHelper()
	before := goleak.IgnoreCurrent()
	authority, err := ensureAuthority(context.Background(), client)
	Expect(err).NotTo(HaveOccurred())
	s := server{client: client, authority: authority}
	s.ads, err = net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	s.monitoring, err = net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(Succeed()))
		Eventually(func() error { return goleak.Find(before) }).Should(Succeed())
	})
	return &adapter{ads: s.ads.Addr().String(), monitoring: s.monitoring.Addr().String(), authority: authority}
}

// observed is a simulated sidecar and what it reports.
type observed struct {
	mu           sync.Mutex
	content      map[convergence.Key]*convergence.Content
	marked       bool
	certificates []proxy.Certificate
	ended        []proxy.StreamEnded
	store        *xdsprobe.Store
	stop         func()
}

// observe runs the sidecar of a specification until it is stopped, or the spec ends.
func observe(spec proxy.Spec) *observed {
	GinkgoHelper()
	driver := Driver("")
	store, err := driver.NewStore()
	Expect(err).NotTo(HaveOccurred())
	o := &observed{content: map[convergence.Key]*convergence.Content{}, store: store}
	agent, err := driver.Proxy.New(spec, controlplane.ProxyServices{Store: store, Observer: o})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	o.stop = sync.OnceFunc(func() {
		cancel()
		Eventually(done).Should(Receive(Succeed()))
	})
	DeferCleanup(o.stop)
	return o
}

func (o *observed) note(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

func (o *observed) TokenFetched(string, proxy.TokenFetched) {}
func (o *observed) StreamOpened(string, proxy.StreamOpened) {}
func (o *observed) StreamEnded(_ string, e proxy.StreamEnded) {
	o.note(func() { o.ended = append(o.ended, e) })
}
func (o *observed) Certified(_ string, e proxy.Certificate) {
	o.note(func() { o.certificates = append(o.certificates, e) })
}
func (o *observed) Updated(_ string, u proxy.Update) {
	o.note(func() {
		for _, k := range u.Removed {
			delete(o.content, k)
		}
		for _, r := range u.Set {
			o.content[r.Key] = r.Content
			o.marked = o.marked || r.Content != nil && len(r.Content.Markers) > 0
		}
	})
}

// Held are the resources that are held, sorted.
func (o *observed) Held() (keys []string) {
	o.note(func() {
		for k := range o.content {
			keys = append(keys, k.String())
		}
	})
	slices.Sort(keys)
	return keys
}

// Members are the domains of the routes that are held, sorted.
func (o *observed) Members() (members []string) {
	o.note(func() {
		for k, c := range o.content {
			if k.Type == convergence.RDS {
				members = append(members, c.Members...)
			}
		}
	})
	slices.Sort(members)
	return members
}

func (o *observed) Certificates() (all []proxy.Certificate) {
	o.note(func() { all = slices.Clone(o.certificates) })
	return all
}

func (o *observed) Ended() (all []proxy.StreamEnded) {
	o.note(func() { all = slices.Clone(o.ended) })
	return all
}

func (o *observed) Marked() (marked bool) {
	o.note(func() { marked = o.marked })
	return marked
}

func create(client *fake.Clientset, s topology.Service) {
	GinkgoHelper()
	object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	for _, p := range s.Ports {
		object.Spec.Ports = append(object.Spec.Ports, corev1.ServicePort{Name: p.Name, Port: int32(p.Number), TargetPort: intstr.FromInt32(int32(p.Target))})
	}
	_, err := client.CoreV1().Services(s.Namespace).Create(context.Background(), object, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func apply(client *fake.Clientset, object *unstructured.Unstructured) {
	GinkgoHelper()
	var config corev1.ConfigMap
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config)).To(Succeed())
	_, err := client.CoreV1().ConfigMaps(config.Namespace).Create(context.Background(), &config, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func podOf(s topology.Service) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + "-x", Labels: map[string]string{kwok.ServiceLabel: s.Name}},
		Spec:       corev1.PodSpec{ServiceAccountName: s.Account},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1"},
	}
}

func specOf(a *adapter, s topology.Service) proxy.Spec {
	GinkgoHelper()
	spec, err := a.Spec(podOf(s))
	Expect(err).NotTo(HaveOccurred())
	return spec
}

var _ = Describe("what sidecars are to hold", func() {
	for _, mode := range Driver("").Modes {
		It("is what the server sends, in mode "+mode.Name+", and probes reach whom they are to reach", func() {
			mesh := topology.Build(topology.Spec{Pods: 12, Services: 6, Namespaces: 2, FanOut: 2, Seed: 1})
			client := fake.NewClientset()
			for _, s := range mesh.Services[1:] {
				create(client, s)
			}
			a := startServer(client)
			for _, object := range a.Objects(mesh, mode.Knobs) {
				apply(client, object)
			}
			var sidecars []*observed
			for _, s := range mesh.Services {
				sidecars = append(sidecars, observe(specOf(a, s)))
			}
			create(client, mesh.Services[0]) // while they are connected
			for i, s := range mesh.Services {
				var keys, members []string
				for _, w := range a.Wants(mesh, mode.Knobs, i) {
					keys = append(keys, w.Key.String())
					members = append(members, w.Members...)
				}
				slices.Sort(keys)
				slices.Sort(members)
				Eventually(sidecars[i].Held).Should(Equal(keys), s.Name)
				Eventually(sidecars[i].Members).Should(Equal(members), s.Name)
				// It is reported after the update that has the secret.
				Eventually(sidecars[i].Certificates).Should(ConsistOf(HaveField("Err", BeNil())), s.Name)
				Expect(sidecars[i].store.Counters().Nacks.Load()).To(BeZero())
			}
			for _, kind := range []controlplane.ProbeKind{controlplane.RouteProbe, controlplane.PolicyProbe} {
				for _, o := range sidecars {
					o.note(func() { o.marked = false })
				}
				object, concerned := a.Probe(kind, mesh, mode.Knobs, 4, xdsprobe.Marker(string(kind)+"1"))
				apply(client, object)
				for i, o := range sidecars {
					if slices.Contains(concerned, i) {
						Eventually(o.Marked).Should(BeTrue(), "%s, service %d", kind, i)
					}
				}
				for i, o := range sidecars {
					if !slices.Contains(concerned, i) {
						Consistently(o.Marked, 10*time.Millisecond).Should(BeFalse(), "%s, service %d", kind, i)
					}
				}
			}
		})
	}
})

var _ = Describe("the server", func() {
	service := topology.Build(topology.Spec{Pods: 1}).Services[0]

	It("issues the certificate when it is requested, one for each sidecar, and again after a reconnect", func() {
		client := fake.NewClientset()
		create(client, service)
		a := startServer(client)
		for range 2 {
			o := observe(specOf(a, service))
			Eventually(o.Certificates).Should(HaveLen(1))
			first := o.Certificates()[0]
			Expect(first.Err).NotTo(HaveOccurred())
			Expect(first.Sent).NotTo(BeZero())
			Expect(first.Verified).To(BeTemporally(">=", first.Sent))
			o.stop()
			Expect(o.Ended()).To(ConsistOf(HaveField("Class", proxy.Stopped)))
		}
		Eventually(func() (string, error) { return metricsOf(a) }).Should(And(
			ContainSubstring(metricCertificates+" 2\n"), ContainSubstring(metricStreams+" 0\n"), ContainSubstring(metricRejects+" 0\n")))
	})

	DescribeTable("refuses", func(spoil func(*proxy.Spec), want ...proxy.Class) {
		client := fake.NewClientset()
		create(client, service)
		spec := specOf(startServer(client), service)
		spoil(&spec)
		o := observe(spec)
		Eventually(o.Ended).Should(ContainElement(HaveField("Class", BeElementOf(want))))
		Expect(o.Held()).To(BeEmpty())
	},
		Entry("clients without a certificate", func(s *proxy.Spec) { s.ClientCertificatePEM, s.ClientKeyPEM = nil, nil }, proxy.Unreachable),
		Entry("clients with another's certificate", func(s *proxy.Spec) { s.NodeID = "mesh-0/other" }, proxy.Unauthorized),
		Entry("certificates of another authority", func(s *proxy.Spec) {
			a, err := newAuthority()
			Expect(err).NotTo(HaveOccurred())
			s.ClientCertificatePEM, s.ClientKeyPEM, err = a.bootstrap(workload{"mesh-0", "x", "x", "x"})
			Expect(err).NotTo(HaveOccurred())
		}, proxy.Unreachable),
		Entry("the delta variant", func(s *proxy.Spec) { s.XDS = string(xdsprobe.Delta) }, proxy.Lost),
	)
})

func metricsOf(a *adapter) (string, error) {
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + a.monitoring + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

var _ = It("is asked for metrics that the server has", func() {
	a := startServer(fake.NewClientset())
	text, err := metricsOf(a)
	Expect(err).NotTo(HaveOccurred())
	m := metrics()
	exprs := []string{m.Counters.Connected, m.Counters.CertificateRequests, m.Counters.Certificates}
	for _, p := range m.Phase {
		exprs = append(exprs, p.Expr)
	}
	for _, expr := range m.Counters.Responses {
		Expect(text).To(ContainSubstring(regexp.MustCompile(`testmesh_\w+{.*}`).FindString(expr) + " 0\n"))
	}
	for _, expr := range exprs {
		Expect(text).To(MatchRegexp(`(?m)^` + regexp.MustCompile(`testmesh_\w+`).FindString(expr) + `[ {]`))
	}
})

var _ = DescribeTable("pods that are no sidecar's", func(spoil func(*corev1.Pod)) {
	pod := podOf(topology.Build(topology.Spec{Pods: 1}).Services[0])
	spoil(pod)
	authority, err := newAuthority()
	Expect(err).NotTo(HaveOccurred())
	_, err = (&adapter{authority: authority}).Spec(pod)
	Expect(err).To(MatchError(ContainSubstring("not part of the mesh")))
},
	Entry("of no service", func(p *corev1.Pod) { p.Labels = nil }),
	Entry("without a service account", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "" }),
)
