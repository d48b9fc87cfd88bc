//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// chartObjects returns what Helm made of the chart with the values of a file.
func chartObjects(name string) []*unstructured.Unstructured {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "hack", "chart", "testdata", name))
	Expect(err).NotTo(HaveOccurred())
	return manifests(name, bytes.NewReader(text))
}

var _ = Describe("the Helm chart", func() {
	It("makes objects that an API server accepts, and pods that are restricted", func(ctx SpecContext) {
		where := newPlace()
		Expect(wait(where.start("cluster", "up", "chart"))).To(Equal(exitDone))
		_, client := connection(where.kubeconfig())
		must(client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "scaler", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}}, metav1.CreateOptions{}))
		resources := newResources(where.kubeconfig())
		dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
		pods := 0
		for _, name := range []string{"default.yaml", "all.yaml", "in-image.yaml"} {
			for _, o := range chartObjects(name) {
				objects, err := resources.of(o)
				Expect(err).NotTo(HaveOccurred())
				_, err = objects.Create(ctx, o, dryRun)
				Expect(err).NotTo(HaveOccurred(), "%s: %s %s", name, o.GetKind(), o.GetName())
				if o.GetKind() != "CronJob" {
					continue
				}
				var job batchv1.CronJob
				Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &job)).To(Succeed())
				pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rollout"}, Spec: job.Spec.JobTemplate.Spec.Template.Spec}
				pod.Spec.ServiceAccountName = "default" // that of the chart is not there
				Eventually(func(ctx context.Context) error {
					_, err := client.CoreV1().Pods("scaler").Create(ctx, &pod, dryRun)
					return err
				}).WithContext(ctx).Should(Succeed()) // the controllers make the service account
				pod.Spec.Containers[0].SecurityContext = nil
				_, err = client.CoreV1().Pods("scaler").Create(ctx, &pod, dryRun)
				Expect(err).To(MatchError(ContainSubstring("violates PodSecurity")))
				pods++
			}
		}
		Expect(pods).To(Equal(2))
		Expect(wait(where.start("cluster", "down", "chart"))).To(Equal(exitDone))
	}, SpecTimeout(3*time.Minute))
})
