//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/measure"
	where "scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/kwok"
)

const (
	rolledNamespaces, rolledDeployments, rolledReplicas = 2, 5, 20 // deployments in each namespace, with so many pods each
	rolledPods                                          = rolledNamespaces * rolledDeployments * rolledReplicas
)

// rollObjects creates the objects of a run, which all carry its label, and waits until
// its pods run.
func rollObjects(ctx context.Context, client kubernetes.Interface, run string) {
	GinkgoHelper()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: run + "-" + name, Labels: map[string]string{kwok.RunLabel: run, "app": name}}
	}
	for i := range kwok.Nodes(rolledPods) {
		_, err := client.CoreV1().Nodes().Create(ctx, kwok.Node(i, run), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	for n := range rolledNamespaces {
		namespace := fmt.Sprintf("%s-%d", run, n)
		_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: meta("").Labels}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		for i := range rolledDeployments {
			name := fmt.Sprint("app-", i)
			_, err := client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
				ObjectMeta: meta(name),
				Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			_, err = client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
				ObjectMeta: meta(name),
				Spec: appsv1.DeploymentSpec{
					Replicas: new(int32(rolledReplicas)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: meta(name).Labels},
						Spec: corev1.PodSpec{
							Containers: []corev1.Container{{Name: "app", Image: "none"}}, NodeSelector: kwok.NodeSelector(),
							Tolerations: []corev1.Toleration{kwok.Toleration()},
						},
					},
				},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	}
	_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta("elsewhere")}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() (running int) {
		list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: kwok.RunLabel + "=" + run})
		Expect(err).NotTo(HaveOccurred())
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running
	}).Should(Equal(rolledPods))
}

var _ = Describe("an embedded environment", Ordered, func() {
	var (
		env    *embedded.Environment
		client *kubernetes.Clientset
	)
	BeforeAll(func(ctx SpecContext) {
		var err error
		env, err = embedded.Start(ctx, clusterOptions(ctx, GinkgoT().TempDir(), "one"))
		Expect(err).NotTo(HaveOccurred())
		client, err = kubernetes.NewForConfig(env.API().Config)
		Expect(err).NotTo(HaveOccurred())
	})

	It("has components that are measured and scraped", func() {
		sampler := measure.NewSampler(0)
		for _, c := range env.Components() {
			Expect(sampler.Watch(c.Name, c.Usage)).To(Succeed())
			Expect(c.Target.Job).To(Equal(c.Name))
			Expect(c.Settings).NotTo(BeEmpty())
			Expect(c.Note).NotTo(BeEmpty())
		}
		Expect(env.Components()).To(HaveLen(5))
		_, err := where.Find(env, where.APIServer)
		Expect(err).NotTo(HaveOccurred())
		_, err = where.Find(env, "none")
		Expect(err).To(HaveOccurred())
	})

	It("deletes what carries a run's label, and nothing else", func(ctx SpecContext) {
		rollObjects(ctx, client, "one")
		rollObjects(ctx, client, "other")
		begin := time.Now()
		deleted, err := env.Delete(ctx, "one")
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("deleting", fmt.Sprintf("%d objects in %v: %v", deleted.Total(), time.Since(begin), deleted))
		Expect(deleted).To(HaveKeyWithValue("pods", BeNumerically(">=", rolledPods)))
		Expect(deleted).To(HaveKeyWithValue("deployments.apps", rolledNamespaces*rolledDeployments))
		Expect(deleted).To(HaveKeyWithValue("services", rolledNamespaces*rolledDeployments))
		Expect(deleted).To(HaveKeyWithValue("configmaps", 1))
		Expect(deleted).To(HaveKeyWithValue("namespaces", rolledNamespaces))
		Expect(deleted).To(HaveKeyWithValue("nodes", kwok.Nodes(rolledPods)))

		By("leaving another run and the cluster's own namespaces")
		all, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(all.Items).To(HaveLen(rolledPods))
		own, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: "!" + kwok.RunLabel})
		Expect(err).NotTo(HaveOccurred())
		Expect(own.Items).To(HaveLen(4))

		By("a second time, and for a run that made nothing")
		Expect(env.Delete(ctx, "one")).To(BeEmpty())
		Expect(env.Delete(ctx, "none")).To(BeEmpty())
		_, err = env.Delete(ctx, "")
		Expect(err).To(MatchError(ContainSubstring("no run named")))
	})

	It("reports what is left when time is over", func(ctx SpecContext) {
		limited, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
		defer cancel()
		deleted, err := env.Delete(limited, "other")
		Expect(err).To(MatchError(ContainSubstring("deleting the objects of run other")))
		Expect(err).To(MatchError(context.DeadlineExceeded))
		AddReportEntry("cut short", fmt.Sprint(deleted, err))
		_, err = env.Delete(ctx, "other")
		Expect(err).NotTo(HaveOccurred())
	})

	It("deletes nothing without its API server", func(ctx SpecContext) {
		const length = 4 * time.Second // clients try a lost connection again after 1 s
		// On a busy machine it may be there again before it is missed: then it goes once more.
		missed := func() bool {
			gone := make(chan error, 1)
			go func() { gone <- env.Absent(ctx, where.APIServer, length) }()
			for {
				if _, err := env.Delete(ctx, "one"); errors.Is(err, where.ErrNoAPIServer) {
					Expect(<-gone).To(Succeed())
					return true
				}
				select {
				case err := <-gone:
					Expect(err).NotTo(HaveOccurred())
					return false
				default:
				}
			}
		}
		Eventually(missed).Should(BeTrue())
		Expect(env.Delete(ctx, "one")).To(BeEmpty())
		Expect(env.Died()).NotTo(Receive())
	})
})
