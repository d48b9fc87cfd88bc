//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/cluster"
	"scaler.mesh/scaler/kwok"
)

const workloadNamespace = "mesh"

func clientOf(c *cluster.Cluster) *kubernetes.Clientset {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

// workloadDeployment is service i: pods that are simulated sidecars' if run is not "".
func workloadDeployment(i, replicas int, run string) *appsv1.Deployment {
	name := fmt.Sprintf("service-%d", i)
	labels := map[string]string{kwok.ServiceLabel: name}
	if run != "" {
		labels[kwok.RunLabel] = run
	}
	n := int32(replicas)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: workloadNamespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{kwok.ServiceLabel: name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					InitContainers: []corev1.Container{{Name: "init", Image: "none"}},
					Containers:     []corev1.Container{{Name: "app", Image: "none"}, {Name: "proxy", Image: "none"}},
					NodeSelector:   kwok.NodeSelector(),
					Tolerations:    []corev1.Toleration{kwok.Toleration()},
				},
			},
		},
	}
}

func workloadService(i int) *corev1.Service {
	name := fmt.Sprintf("service-%d", i)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: workloadNamespace},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{kwok.ServiceLabel: name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}

// applyWorkload creates nodes and deployments with their services, many at a time.
func applyWorkload(ctx context.Context, client kubernetes.Interface, deployments, replicas int, run string) {
	GinkgoHelper()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workloadNamespace}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for i := range kwok.Nodes(deployments * replicas) {
		_, err := client.CoreV1().Nodes().Create(ctx, kwok.Node(i, "test"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	var g errgroup.Group
	g.SetLimit(32)
	for i := range deployments {
		g.Go(func() error {
			if _, err := client.CoreV1().Services(workloadNamespace).Create(ctx, workloadService(i), metav1.CreateOptions{}); err != nil {
				return err
			}
			_, err := client.AppsV1().Deployments(workloadNamespace).Create(ctx, workloadDeployment(i, replicas, run), metav1.CreateOptions{})
			return err
		})
	}
	Expect(g.Wait()).To(Succeed())
}

// workloadPods lists all pods of the namespace.
func workloadPods(ctx context.Context, client kubernetes.Interface) []corev1.Pod {
	GinkgoHelper()
	list, err := client.CoreV1().Pods(workloadNamespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

func podReady(p corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// countPods returns how many pods there are, run with an address of their own, and
// are ready.
func countPods(all []corev1.Pod) (total, running, isReady int) {
	addresses := map[string]bool{}
	for _, p := range all {
		if p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" && !addresses[p.Status.PodIP] {
			addresses[p.Status.PodIP] = true
			running++
		}
		if podReady(p) {
			isReady++
		}
	}
	return len(all), running, isReady
}

// stepOf describes the status of a pod that starts.
func stepOf(p *corev1.Pod) string {
	text := string(p.Status.Phase)
	if p.Status.PodIP != "" {
		text += " at its address"
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodInitialized && c.Status == corev1.ConditionTrue {
			text += ", initialized"
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		text += ", " + c.Name + " "
		switch {
		case c.State.Waiting != nil:
			text += "waits"
		case c.State.Terminated != nil:
			text += "ended"
		case c.Ready:
			text += "is ready"
		case *c.Started:
			text += "has started"
		default:
			text += "runs"
		}
	}
	return text
}

// reportSidecars sets or removes ("") the sidecar annotation of all pods.
func reportSidecars(ctx context.Context, client kubernetes.Interface, all []corev1.Pod, value string) {
	GinkgoHelper()
	var annotation any
	if value != "" {
		annotation = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{kwok.SidecarAnnotation: annotation}}})
	Expect(err).NotTo(HaveOccurred())
	var g errgroup.Group
	g.SetLimit(32)
	for _, p := range all {
		g.Go(func() error {
			_, err := client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	Expect(g.Wait()).To(Succeed())
}

var _ = Describe("the workload of a cluster", Ordered, func() {
	const deployments, replicas = 20, 5
	var (
		c      *cluster.Cluster
		client *kubernetes.Clientset
	)
	BeforeAll(func(ctx SpecContext) {
		c = upCluster(ctx, clusterOptions(ctx, GinkgoT().TempDir(), "workload"))
		client = clientOf(c)
	})
	// settle waits until so many pods are ready, of all, all running.
	settle := func(ctx context.Context, isReady int) time.Duration {
		GinkgoHelper()
		start := time.Now()
		Eventually(func() []int {
			total, running, r := countPods(workloadPods(ctx, client))
			return []int{total, running, r}
		}).Should(Equal([]int{deployments * replicas, deployments * replicas, isReady}))
		return time.Since(start)
	}

	It("runs, each pod with an address of its own and unready", func(ctx SpecContext) {
		start := time.Now()
		applyWorkload(ctx, client, deployments, replicas, "test")
		settle(ctx, 0)
		AddReportEntry("all running after", time.Since(start).String())
		Consistently(func() int { _, _, r := countPods(workloadPods(ctx, client)); return r }).WithTimeout(time.Second).Should(BeZero())
		nodes := map[string]int{}
		for _, p := range workloadPods(ctx, client) {
			nodes[p.Spec.NodeName]++
			Expect(p.Status.HostIP).To(HavePrefix("10.1."))
			Expect(p.Status.ContainerStatuses).To(HaveLen(2))
			Expect(p.Status.ContainerStatuses[1].Ready).To(BeFalse())
			Expect(p.ManagedFields).To(BeEmpty(), "nobody reads them, and the policy of the cluster removes them")
		}
		Expect(nodes).To(HaveLen(kwok.Nodes(deployments * replicas)))
		events, err := client.CoreV1().Events(workloadNamespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		// The API server compares Services with allocated addresses every few minutes, the first time when it has started, and reports one
		// that was created meanwhile (ipallocator/controller in pkg/registry/core/service).
		Expect(slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.ReportingController == "ipallocator-repair-controller" })).
			To(BeEmpty(), "controllers and scheduler may not make any")
	})

	It("makes a pod ready, promptly, when its sidecar says so", func(ctx SpecContext) {
		one := workloadPods(ctx, client)[:1]
		watch, err := client.CoreV1().Pods(workloadNamespace).Watch(ctx, metav1.SingleObject(one[0].ObjectMeta))
		Expect(err).NotTo(HaveOccurred())
		defer watch.Stop()
		start := time.Now()
		reportSidecars(ctx, client, one, kwok.SidecarReady)
		for event := range watch.ResultChan() {
			if p, ok := event.Object.(*corev1.Pod); ok && podReady(*p) {
				Expect(p.Status.PodIP).To(Equal(one[0].Status.PodIP))
				Expect(p.Status.ContainerStatuses[1].Ready).To(BeTrue())
				break
			}
		}
		AddReportEntry("one pod ready after", time.Since(start).String())

		By("all others at once")
		start = time.Now()
		reportSidecars(ctx, client, workloadPods(ctx, client), kwok.SidecarReady)
		AddReportEntry("all annotated after", time.Since(start).String())
		settle(ctx, deployments*replicas)
		AddReportEntry("all ready after", time.Since(start).String())
		Eventually(func() (int, error) {
			list, err := client.DiscoveryV1().EndpointSlices(workloadNamespace).List(ctx, metav1.ListOptions{})
			n := 0
			for _, s := range list.Items {
				for _, e := range s.Endpoints {
					if *e.Conditions.Ready {
						n++
					}
				}
			}
			return n, err
		}).Should(Equal(deployments * replicas))
	})

	It("makes it unready again when the sidecar takes that back", func(ctx SpecContext) {
		some := workloadPods(ctx, client)[:50]
		before := map[string]string{}
		for _, p := range some {
			before[p.Name] = p.Status.PodIP
		}
		reportSidecars(ctx, client, some, "")
		settle(ctx, deployments*replicas-50)
		reportSidecars(ctx, client, some, kwok.SidecarReady)
		settle(ctx, deployments*replicas)
		for _, p := range workloadPods(ctx, client) {
			if address := before[p.Name]; address != "" {
				Expect(p.Status.PodIP).To(Equal(address))
			}
		}
	})

	It("gives tokens bound to a pod, for the mesh's audience", func(ctx SpecContext) {
		pod := workloadPods(ctx, client)[0]
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences:      []string{"istio-ca"},
			BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}
		token, err := client.CoreV1().ServiceAccounts(workloadNamespace).CreateToken(ctx, "default", request, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token, Audiences: []string{"istio-ca"}}}
		review, err = client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.Authenticated).To(BeTrue(), review.Status.Error)
		Expect(review.Status.User.Username).To(Equal("system:serviceaccount:" + workloadNamespace + ":default"))
		Expect(review.Status.User.Extra).To(HaveKeyWithValue("authentication.kubernetes.io/pod-name", authenticationv1.ExtraValue{pod.Name}))
	})

	It("is replaced and scaled by its controllers", func(ctx SpecContext) {
		reportSidecars(ctx, client, workloadPods(ctx, client), kwok.SidecarReady)
		before := map[string]bool{}
		for _, p := range workloadPods(ctx, client) {
			before[p.Status.PodIP] = true
		}
		doomed := workloadPods(ctx, client)[:5]
		for _, p := range doomed {
			Expect(client.CoreV1().Pods(workloadNamespace).Delete(ctx, p.Name, metav1.DeleteOptions{})).To(Succeed())
		}
		Eventually(func() int { return len(workloadPods(ctx, client)) }).Should(Equal(deployments * replicas))
		settle(ctx, deployments*replicas-5)
		fresh := 0
		for _, p := range workloadPods(ctx, client) {
			if !before[p.Status.PodIP] {
				fresh++
			}
		}
		Expect(fresh).To(Equal(5), "no address is used again")
	})

	It("is deleted promptly, with the namespace", func(ctx SpecContext) {
		start := time.Now()
		Expect(client.CoreV1().Namespaces().Delete(ctx, workloadNamespace, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() int { return len(workloadPods(ctx, client)) }).Should(BeZero())
		AddReportEntry("all pods gone after", time.Since(start).String())
		// The namespace waits for its pods' grace period before it looks again.
		Eventually(func() bool {
			_, err := client.CoreV1().Namespaces().Get(ctx, workloadNamespace, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}).WithTimeout(time.Minute).Should(BeTrue())
		AddReportEntry("the namespace gone after", time.Since(start).String())
	})

	// The first sequence was seen of a kubelet (docs/results/data/real-node.txt).
	DescribeTable("has its status written for each step of its containers", func(ctx SpecContext, shape func(*corev1.PodSpec), before, after []string) {
		spec := workloadDeployment(0, 1, "test").Spec.Template.Spec
		shape(&spec)
		pods := client.CoreV1().Pods(metav1.NamespaceDefault)
		pod, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "steps-", Labels: map[string]string{kwok.RunLabel: "test"}}, Spec: spec,
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(pods.Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
		})
		changes, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion})
		Expect(err).NotTo(HaveOccurred())
		defer changes.Stop()
		// next returns the state of the pod after each of n writes of its status.
		next := func(n int) (states []string) {
			GinkgoHelper()
			for len(states) < n {
				var event watch.Event
				Eventually(changes.ResultChan()).Should(Receive(&event), "after %q", states)
				p := event.Object.(*corev1.Pod)
				changed := !equality.Semantic.DeepEqual(p.Status, pod.Status)
				pod = p
				if changed && len(p.Status.ContainerStatuses) > 0 {
					states = append(states, stepOf(p))
				}
			}
			return states
		}
		Expect(next(len(before))).To(Equal(before))
		Consistently(changes.ResultChan()).WithTimeout(time.Second).ShouldNot(Receive(), "it waits for its sidecar")
		reportSidecars(ctx, client, []corev1.Pod{*pod}, kwok.SidecarReady)
		Expect(next(len(after))).To(Equal(after))
		Expect(podReady(*pod)).To(BeTrue())
		for _, gate := range spec.ReadinessGates {
			Expect(pod.Status.Conditions).To(ContainElement(And(HaveField("Type", gate.ConditionType), HaveField("Status", corev1.ConditionTrue))))
		}
	},
		Entry("with a native sidecar", func(spec *corev1.PodSpec) {
			spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "proxy", Image: "none", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
			spec.Containers = spec.Containers[:1]
		}, []string{
			"Pending, init waits, proxy waits, app waits",
			"Pending at its address, init waits, proxy waits, app waits",
			"Pending at its address, init runs, proxy waits, app waits",
			"Pending at its address, init ended, proxy waits, app waits",
			"Pending at its address, init ended, proxy runs, app waits",
		}, []string{
			"Pending at its address, init ended, proxy has started, app waits",
			"Pending at its address, initialized, init ended, proxy has started, app waits",
			"Pending at its address, initialized, init ended, proxy is ready, app waits",
			"Running at its address, initialized, init ended, proxy is ready, app is ready",
		}),
		Entry("with a sidecar among its containers", func(*corev1.PodSpec) {}, []string{
			"Pending, init waits, app waits, proxy waits",
			"Pending at its address, init waits, app waits, proxy waits",
			"Pending at its address, init runs, app waits, proxy waits",
			"Pending at its address, init ended, app waits, proxy waits",
			"Pending at its address, initialized, init ended, app waits, proxy waits",
			"Running at its address, initialized, init ended, app has started, proxy has started",
		}, []string{
			"Running at its address, initialized, init ended, app is ready, proxy is ready",
		}),
		Entry("without init containers, on its node's network, with a readiness gate", func(spec *corev1.PodSpec) {
			spec.InitContainers, spec.Containers = nil, spec.Containers[:1]
			spec.HostNetwork, spec.ReadinessGates = true, []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
		}, []string{
			"Pending, initialized, app waits",
			"Pending at its address, initialized, app waits",
			"Running at its address, initialized, app has started",
		}, []string{
			"Running at its address, initialized, app is ready",
		}),
	)

	It("without a run's label is ready at once, and runs on for its grace period", func(ctx SpecContext) {
		template := corev1.PodTemplateSpec{Spec: workloadDeployment(0, 1, "").Spec.Template.Spec}
		const grace = 2 * time.Second
		kwok.SetGracePeriod(&template, grace)
		_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "plain", Annotations: template.Annotations}, Spec: template.Spec,
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (bool, error) {
			p, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "plain", metav1.GetOptions{})
			return podReady(*p), err
		}).Should(BeTrue())
		plain, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, "plain", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		changes, err := client.CoreV1().Pods(metav1.NamespaceDefault).Watch(ctx, metav1.SingleObject(plain.ObjectMeta))
		Expect(err).NotTo(HaveOccurred())
		defer changes.Stop()
		begin := time.Now()
		Expect(client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, "plain", metav1.DeleteOptions{})).To(Succeed())
		var deleting []watch.EventType
		for len(deleting) == 0 || deleting[len(deleting)-1] != watch.Deleted {
			var event watch.Event
			Eventually(changes.ResultChan()).Should(Receive(&event))
			if p, ok := event.Object.(*corev1.Pod); ok && p.DeletionTimestamp != nil {
				Expect(podReady(*p)).To(BeTrue(), "%s", event.Type)
				deleting = append(deleting, event.Type)
			}
		}
		Expect(time.Since(begin)).To(BeNumerically(">=", grace))
	})

	It("is seen in the metrics of every component", func(ctx SpecContext) {
		for name, metric := range map[string]string{
			cluster.Etcd: "etcd_server_has_leader", cluster.APIServer: "apiserver_request_total", cluster.ControllerManager: "workqueue_adds_total",
			cluster.Scheduler: "scheduler_schedule_attempts_total", cluster.Kwok: "process_cpu_seconds_total",
		} {
			Expect(scrapeComponent(ctx, c, name)).To(ContainSubstring(metric), name)
		}
	})
})

// scrapeComponent fetches a component's metrics as Prometheus would.
func scrapeComponent(ctx context.Context, c *cluster.Cluster, name string) string {
	GinkgoHelper()
	for _, component := range c.Components() {
		if component.Name != name {
			continue
		}
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		if component.CAFile != "" {
			ca, err := os.ReadFile(component.CAFile)
			Expect(err).NotTo(HaveOccurred())
			cert, err := tls.LoadX509KeyPair(component.CertFile, component.KeyFile)
			Expect(err).NotTo(HaveOccurred())
			transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{cert}}
			Expect(transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(ca)).To(BeTrue())
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, component.MetricsURL, nil)
		Expect(err).NotTo(HaveOccurred())
		response, err := (&http.Client{Transport: transport}).Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
		return string(body)
	}
	Fail("no component " + name)
	return ""
}
