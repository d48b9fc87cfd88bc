//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/pkg/record"
)

// speedInPod returns what 'scaler calibrate --speed' prints in a pod of the real node, as the guide for plans has it made.
func speedInPod(ctx context.Context, kubeconfig string) record.MachineSpeed {
	GinkgoHelper()
	const name = "scaler-speed"
	_, client := connection(kubeconfig)
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	_, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: "realnode"}, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: name, Image: "scaler.mesh/scaler:realnode", Args: []string{"calibrate", "--speed", "-o", "json"}}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(pods.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})).To(Succeed()) }()
	Eventually(func() (corev1.PodPhase, error) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		return pod.Status.Phase, err
	}).WithContext(ctx).WithTimeout(time.Minute).Should(BeElementOf(corev1.PodSucceeded, corev1.PodFailed))
	printed, err := pods.GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	var of record.MachineSpeed
	Expect(json.Unmarshal(printed, &of)).To(Succeed(), string(printed))
	return of
}
