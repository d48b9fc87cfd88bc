package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"scaler.mesh/scaler/internal/istioagent"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

func TestServer(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(2 * time.Millisecond)
	RunSpecs(t, "reference control plane")
}

var _ = BeforeEach(func() {
	before := goleak.IgnoreCurrent()
	DeferCleanup(func() {
		Eventually(func() error { return goleak.Find(before) }).Should(Succeed())
	})
})

// plane is a server that runs in this process until the spec ends. Its cluster
// is client-go's fake one: what is tested here begins behind the watch.
type plane struct {
	client     *fake.Clientset
	authority  *Authority
	secure     string
	plain      string
	monitoring string
	stop       func()
}

// startPlane starts a server in whose cluster these services are already.
func startPlane(o Options, services ...string) *plane {
	GinkgoHelper()
	authority, err := NewAuthority()
	Expect(err).NotTo(HaveOccurred())
	p := &plane{client: fake.NewClientset(), authority: authority}
	for _, name := range services {
		p.serve(name)
	}
	return p.start(o)
}

// restarted returns a new server in the place of one that was stopped.
func (p *plane) restarted(o Options) *plane {
	GinkgoHelper()
	return (&plane{client: p.client, authority: p.authority, secure: p.secure, plain: p.plain, monitoring: p.monitoring}).start(o)
}

func (p *plane) start(o Options) *plane {
	GinkgoHelper()
	o.Client, o.Authority = p.client, p.authority
	for _, l := range []struct {
		listener *net.Listener
		address  *string
	}{{&o.Secure, &p.secure}, {&o.Plain, &p.plain}, {&o.Monitoring, &p.monitoring}} {
		var err error
		if *l.address == "" { // reserved, so that nobody takes it between two servers
			*l.address, err = process.FreeAddress()
			Expect(err).NotTo(HaveOccurred())
		}
		*l.listener, err = net.Listen("tcp", *l.address)
		Expect(err).NotTo(HaveOccurred())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		Eventually(done).Should(Receive(Succeed()))
	})
	DeferCleanup(p.stop)
	Eventually(func() error { return p.get("ready") }).Should(Succeed())
	return p
}

func (p *plane) call(method, path, body string) error {
	request, err := http.NewRequest(method, "http://"+p.monitoring+"/"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

func (p *plane) get(path string) error { return p.call(http.MethodGet, path, "") }

// metrics expects these values of counters and gauges.
func (p *plane) metrics(lines ...string) error {
	text := strings.Join(lines, "\n") + "\n"
	var names []string
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		names = append(names, name)
	}
	return testutil.ScrapeAndCompare("http://"+p.monitoring+"/metrics", bytes.NewBufferString(text), names...)
}

// serve creates a service of namespace "one" with a port 80 to 8080, without
// endpoints.
func (p *plane) serve(name string) {
	GinkgoHelper()
	_, err := p.client.CoreV1().Services("one").Create(context.Background(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// list makes these addresses the ready endpoints of a service.
func (p *plane) list(service string, addresses ...string) {
	GinkgoHelper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: service + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Ports:      []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
	}
	for _, a := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	slices := p.client.DiscoveryV1().EndpointSlices("one")
	_, err := slices.Update(context.Background(), slice, metav1.UpdateOptions{})
	if err != nil {
		_, err = slices.Create(context.Background(), slice, metav1.CreateOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
}

// config puts a ConfigMap of the reference control plane's there.
func (p *plane) config(kind, name string, data map[string]string) {
	GinkgoHelper()
	_, err := p.client.CoreV1().ConfigMaps("one").Create(context.Background(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: name, Labels: map[string]string{ConfigLabel: kind}}, Data: data,
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// sidecar is a simulated one that runs until the spec ends, and what it was
// told.
type sidecar struct {
	id   string
	stop func()

	mu           sync.Mutex
	held         map[convergence.Key]*convergence.Content
	times        map[convergence.Key]time.Time // received last
	updates      []proxy.Update
	ended        []proxy.StreamEnded
	certificates []proxy.Certificate
}

func (s *sidecar) TokenFetched(string, proxy.TokenFetched) {}
func (s *sidecar) StreamOpened(string, proxy.StreamOpened) {}

func (s *sidecar) StreamEnded(_ string, e proxy.StreamEnded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, e)
}

func (s *sidecar) Certified(_ string, e proxy.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificates = append(s.certificates, e)
}

func (s *sidecar) Updated(_ string, e proxy.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates = append(s.updates, e)
	for _, k := range e.Removed {
		delete(s.held, k)
	}
	for _, r := range e.Set {
		s.held[r.Key], s.times[r.Key] = r.Content, e.ReceivedAt
	}
}

// Held returns the names of all resources that are held, sorted.
func (s *sidecar) Held() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for k := range s.held {
		names = append(names, k.String())
	}
	slices.Sort(names)
	return names
}

// Endpoints returns the addresses held for a service of namespace "one", sorted.
func (s *sidecar) Endpoints(service string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	content := s.held[convergence.Key{Type: convergence.EDS, Name: "one/" + service + ":http"}]
	if content == nil {
		return nil
	}
	var all []string
	for a := range content.Endpoints {
		all = append(all, a.Addr().String())
	}
	slices.Sort(all)
	return all
}

// Rejections returns the responses that it rejected.
func (s *sidecar) Rejections() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for _, u := range s.updates {
		if u.Rejected != nil {
			all = append(all, u.Rejected)
		}
	}
	return all
}

func (s *sidecar) Certificates() []proxy.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.certificates)
}

func (s *sidecar) Ended() []proxy.StreamEnded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ended)
}

// received has the times at which the endpoints of a service were last received.
func (s *sidecar) received(service string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times[convergence.Key{Type: convergence.EDS, Name: "one/" + service + ":http"}]
}

// startSidecar starts the n-th sidecar of a service of namespace "one".
func startSidecar(store *xdsprobe.Store, n int, service string, c xdsprobe.Config) *sidecar {
	GinkgoHelper()
	s := newSidecar(fmt.Sprintf("one/%s-%d", service, n))
	c.ID, c.NodeID, c.NodeCluster = s.id, s.id, Workload("one", service)
	c.BackoffBase, c.BackoffMax = 5*time.Millisecond, 20*time.Millisecond
	s.start(xdsprobe.New(c, store, s).Run)
	return s
}

// startAgent starts a sidecar with its agent.
func startAgent(spec proxy.Spec, services func(*sidecar) istioagent.Services) *sidecar {
	GinkgoHelper()
	s := newSidecar(spec.ID)
	with, err := istioagent.New(spec, services(s))
	Expect(err).NotTo(HaveOccurred())
	s.start(with.Run)
	return s
}

func newSidecar(id string) *sidecar {
	return &sidecar{id: id, held: map[convergence.Key]*convergence.Content{}, times: map[convergence.Key]time.Time{}}
}

func (s *sidecar) start(run func(context.Context) error) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		Eventually(done).Should(Receive(Succeed()))
	})
	DeferCleanup(s.stop)
}
