//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/process"
)

// prometheusConfig has what a Prometheus scrapes, with the labels that the usual configurations give. The one that scaler builds finds no targets
// in a cluster itself.
func prometheusConfig(ctx context.Context, client kubernetes.Interface) string {
	GinkgoHelper()
	config := "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: kubernetes-pods\n  static_configs:\n"
	pods, err := client.CoreV1().Pods("istio-system").List(ctx, metav1.ListOptions{LabelSelector: "app=istiod"})
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range pods.Items {
		target := net.JoinHostPort(pod.Status.PodIP, pod.Annotations["prometheus.io/port"])
		config += fmt.Sprintf("  - {targets: [%q], labels: {namespace: %s, pod: %s, app: istiod}}\n", target, pod.Namespace, pod.Name)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "realnode", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	kubelet := net.JoinHostPort(node.Status.Addresses[0].Address, fmt.Sprint(node.Status.DaemonEndpoints.KubeletEndpoint.Port))
	return config + "- job_name: kubernetes-nodes-cadvisor\n  metrics_path: /metrics/cadvisor\n  scheme: https\n  tls_config: {insecure_skip_verify: true}\n" +
		fmt.Sprintf("  static_configs:\n  - {targets: [%q]}\n", kubelet)
}

// newPrometheus starts a Prometheus as a process of this machine, and makes it a Service of the cluster. Both end with the spec.
func newPrometheus(ctx context.Context, kubeconfig string) {
	GinkgoHelper()
	_, client := connection(kubeconfig)
	slice, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	machine := slice.Endpoints[0].Addresses[0] // the API server passes no requests to loopback
	ports, err := process.FreePorts(1)
	Expect(err).NotTo(HaveOccurred())

	dir := GinkgoT().TempDir()
	group, err := process.OpenGroup(filepath.Join(dir, "group"), process.GroupOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(group.Stop(ctx)).To(Succeed()) })
	file := filepath.Join(dir, "prometheus.yml")
	Expect(os.WriteFile(file, []byte(prometheusConfig(ctx, client)), 0o600)).To(Succeed())
	_, err = group.Start(process.Spec{
		Name: "prometheus", Path: prometheus, Dir: dir, Log: filepath.Join(dir, "prometheus.log"),
		Args: []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + net.JoinHostPort(machine, fmt.Sprint(ports[0]))},
	})
	Expect(err).NotTo(HaveOccurred())

	const namespace, name = "monitoring", "prometheus-k8s"
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() error {
			_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			return err
		}).WithContext(ctx).WithTimeout(time.Minute).Should(MatchError(apierrors.IsNotFound, "not found"))
	})
	// The API server passes requests to endpoints that are pods: this one is on no node.
	pod, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: "none", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "prometheus", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	pod.Status.PodIP, pod.Status.PodIPs = machine, []corev1.PodIP{{IP: machine}}
	_, err = client.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "prometheus"}}
	_, err = client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "web", Port: 9090}}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().Endpoints(namespace).Create(ctx, &corev1.Endpoints{ //nolint:staticcheck // what the API server looks at
		ObjectMeta: meta,
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // as above
			Addresses: []corev1.EndpointAddress{{IP: machine, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name}}},
			Ports:     []corev1.EndpointPort{{Name: "web", Port: int32(ports[0])}},
		}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	count := func(g Gomega) {
		text, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/"+namespace+"/services/"+name+":9090/proxy/api/v1/query").
			Param("query", `count({__name__=~"process_cpu_seconds_total|container_cpu_usage_seconds_total",namespace="istio-system",pod=~"istiod-.+",container=~"discovery|"})`).DoRaw(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(MatchRegexp(`"[4-9]"`)) // two pods, by both
	}
	Eventually(count).WithContext(ctx).WithTimeout(time.Minute).Should(Succeed())
}

// prometheus looks for the Prometheus of the cluster with the rights of the user.
func (u *user) prometheus(ctx context.Context) *clusterprometheus.Source {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", u.kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	istiod, err := drivers.Default().Installed.Find(ctx, controlplane.FindOptions{REST: config})
	Expect(err).NotTo(HaveOccurred())
	return clusterprometheus.Look(ctx, clusterprometheus.Options{
		Address: clusterprometheus.Address{Detect: true}, Cluster: config, Client: client,
		Program: clusterprometheus.Program{Namespace: istiod.Namespace, Deployment: istiod.Deployment, Container: "discovery"},
	})
}
