//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
)

// hostMesh is a cluster with a control plane and nothing else.
type hostMesh struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	dynamic dynamic.Interface
	place   controlplane.RealSidecars
}

// startHostMesh starts one for a spec.
func startHostMesh(ctx context.Context, name string) *hostMesh {
	GinkgoHelper()
	driver, _, err := drivers.Find(nil, name)
	Expect(err).NotTo(HaveOccurred())
	say := func(msg string) { GinkgoWriter.Println(msg) }
	programs, err := component.Paths(ctx, component.Options{
		BinDir: os.Getenv("SCALER_BIN_DIR"), CacheDir: os.Getenv("SCALER_CACHE_DIR"), Envoy: os.Getenv("SCALER_ENVOY"), Progress: say,
	}, append(drivers.RunPrograms(driver), driver.SidecarPrograms...)...)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	m := &hostMesh{}
	group, err := process.OpenGroup(filepath.Join(dir, "clusters", "real-"+name), process.GroupOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(group.Remove(ctx)).To(Succeed()) })
	m.cluster, err = cluster.Up(ctx, cluster.Options{
		Group: group, LogDir: filepath.Join(dir, "logs"), KwokConfig: kwok.Stages(), Progress: say,
		Programs: embedded.Programs(programs),
	})
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.BuildConfigFromFlags("", m.cluster.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())
	m.client, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	m.dynamic, err = dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	adapter, err := driver.Start(ctx, controlplane.StartOptions{
		Programs: programs, Scaler: "test", Kubeconfig: m.cluster.Kubeconfig(), REST: config, Group: group,
		LogDir: filepath.Join(dir, "logs"), Progress: say, RealSidecars: true,
	})
	Expect(err).NotTo(HaveOccurred())
	m.place = controlplane.RealSidecars{
		Adapter: adapter, Programs: programs, Group: group,
		Dir: filepath.Join(dir, "sidecars"), Logs: filepath.Join(dir, "logs"), Concurrency: 1,
	}
	return m
}

// hostResources of the kinds that an adapter's host objects are of.
var hostResources = map[string]string{
	"ServiceAccount": "serviceaccounts", "ConfigMap": "configmaps", "ServiceEntry": "serviceentries", "WorkloadEntry": "workloadentries",
	"Sidecar": "sidecars", "PeerAuthentication": "peerauthentications",
}

// run starts sidecars for workloads and ends them with the spec.
func (m *hostMesh) run(ctx context.Context, services []controlplane.HostService, workloads []controlplane.HostWorkload) map[string]*sidecar.Sidecar {
	GinkgoHelper()
	knobs := scenario.Settings{MTLS: "strict", Scope: "all", Authz: "none"}
	objects := append(m.place.Adapter.Mesh.Objects(topology.Mesh{}, knobs), m.place.Adapter.Real.Host.HostObjects(services, workloads)...)
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		gvr := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: hostResources[gvk.Kind]}
		_, err := m.dynamic.Resource(gvr).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred(), "%s %s", gvk.Kind, o.GetName())
	}
	life, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	DeferCleanup(func() { end(); running.Wait() })
	all := map[string]*sidecar.Sidecar{}
	for _, w := range workloads {
		s, err := m.place.ForHost(ctx, w, nil)
		Expect(err).NotTo(HaveOccurred())
		all[w.Name] = s
		running.Go(func() {
			defer GinkgoRecover()
			Expect(s.Run(life)).To(Succeed())
		})
	}
	for _, s := range all {
		Expect(s.AwaitReady(ctx)).To(Succeed())
	}
	return all
}

// portOf returns the port of a test server's URL.
func portOf(rawURL string) int {
	GinkgoHelper()
	u, err := url.Parse(rawURL)
	Expect(err).NotTo(HaveOccurred())
	n, err := strconv.Atoi(u.Port())
	Expect(err).NotTo(HaveOccurred())
	return n
}

// Ordered: workloads have the same addresses in each.
var _ = Describe("real sidecars of workloads of this host", Ordered, ContinueOnFailure, func() {
	for _, controlPlane := range []string{"istiod", "reference"} {
		It("carry requests with mutual TLS, of "+controlPlane, func(ctx SpecContext) {
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintln(w, r.Header.Get("X-Forwarded-Client-Cert"))
			}))
			DeferCleanup(app.Close)
			m := startHostMesh(ctx, controlPlane)
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "real", Labels: m.place.Adapter.Sidecars.NamespaceLabels}}
			_, err := m.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			echo := controlplane.HostService{Namespace: "real", Name: "echo", Host: "echo.real.host", Port: 8080}
			ports, err := process.FreePorts(1)
			Expect(err).NotTo(HaveOccurred())
			server := controlplane.HostWorkload{
				Namespace: "real", Name: "server", Account: "server", Address: "127.0.1.1",
				Serves: "echo", ListenPort: ports[0], AppPort: portOf(app.URL),
			}
			client := controlplane.HostWorkload{
				Namespace: "real", Name: "client", Account: "client", Address: "127.0.1.2",
				Egress: []controlplane.HostService{echo},
			}
			all := m.run(ctx, []controlplane.HostService{echo}, []controlplane.HostWorkload{server, client})

			get := func(url string) func() (string, error) {
				return func() (string, error) {
					request, err := http.NewRequest(http.MethodGet, url, nil)
					if err != nil {
						return "", err
					}
					request.Host = echo.Host
					answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}).Do(request)
					if err != nil {
						return "", err
					}
					defer answer.Body.Close()
					text, err := io.ReadAll(answer.Body)
					return answer.Status + " " + string(text), err
				}
			}
			through := get(fmt.Sprintf("http://%s:%d/", client.Address, echo.Port))
			Eventually(through).Should(And(HavePrefix("200 OK"), ContainSubstring("URI=spiffe://cluster.local/ns/real/sa/client")))
			for range 20 {
				Expect(through()).To(HavePrefix("200 OK"))
			}
			By("sending plain text to the server's port")
			_, err = get(fmt.Sprintf("http://%s:%d/", server.Address, ports[0]))()
			Expect(err).To(MatchError(Or(ContainSubstring("reset"), ContainSubstring("EOF"))))

			By("reading what both hold")
			for name, s := range all {
				held, err := s.Configuration(ctx)
				Expect(err).NotTo(HaveOccurred())
				Expect(held.Refused).To(BeEmpty(), name)
				Expect(held.Held).NotTo(BeEmpty(), name)
				Expect(s.Crashes()).To(BeEmpty(), name)
			}

			By("killing the server's Envoy")
			before := all["server"].Life()
			process, err := os.FindProcess(before.Envoy.PID())
			Expect(err).NotTo(HaveOccurred())
			Expect(process.Kill()).To(Succeed())
			Eventually(func() []sidecar.Crash { return all["server"].Crashes() }).Should(HaveLen(1))
			Eventually(through).Should(HavePrefix("200 OK"))
			Expect(all["server"].Life().Number).To(Equal(2))
			if before.Process != before.Envoy {
				By("killing the client's agent: its Envoy ends with it")
				before := all["client"].Life()
				agent, err := os.FindProcess(before.Process.PID())
				Expect(err).NotTo(HaveOccurred())
				Expect(agent.Kill()).To(Succeed())
				Eventually(func() string {
					text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", before.Envoy.PID()))
					return strings.ReplaceAll(string(text), "\x00", " ")
				}).Should(BeEmpty())
				Eventually(through).Should(HavePrefix("200 OK"))
			}
		}, SpecTimeout(5*time.Minute))
	}
})
