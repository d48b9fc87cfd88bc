//go:build e2e

package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/workload"
)

// echo are injected pods of an HTTP server on the real node, in a namespace of their own.
type echo struct {
	client kubernetes.Interface
	config *rest.Config
}

const echoNamespace = "real"

func newEcho(ctx context.Context, kubeconfig string, pods int32) echo {
	GinkgoHelper()
	config, client := connection(kubeconfig)
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: echoNamespace, Labels: map[string]string{"istio-injection": "enabled"}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	labels := map[string]string{"app": "echo"}
	_, err = client.CoreV1().Services(echoNamespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "echo"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: 8080}}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.AppsV1().Deployments(echoNamespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "echo"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &pods, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{corev1.LabelHostname: "realnode"}, TerminationGracePeriodSeconds: new(int64(1)),
					Containers: []corev1.Container{{Name: "app", Image: "scaler.mesh/app:realnode", Args: workload.EchoArguments(8080, "echo")}},
				},
			},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return echo{client, config}
}

// answers returns the answers of the pods that are ready and whose Envoy passed a plain HTTP request on.
func (e echo) answers(ctx context.Context) ([]string, error) {
	pods, err := e.client.CoreV1().Pods(echoNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=echo"})
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 2 * time.Second}
	var all []string
	for _, pod := range pods.Items {
		ready := false
		for _, c := range pod.Status.Conditions {
			ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		if !ready || len(pod.Spec.Containers)+len(pod.Spec.InitContainers) < 3 { // with istio-init and istio-proxy
			continue
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pod.Status.PodIP+":8080/", nil)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil && response.Header.Get("server") == "istio-envoy" && strings.TrimSpace(string(text)) == pod.Name {
			all = append(all, pod.Name)
		}
	}
	return all, nil
}

// requireTLS makes istiod have the pods' Envoys refuse what is not mutual TLS.
func (e echo) requireTLS(ctx context.Context) {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(e.config)
	Expect(err).NotTo(HaveOccurred())
	resource := schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "peerauthentications"}
	_, err = client.Resource(resource).Namespace(echoNamespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"mtls": map[string]any{"mode": "STRICT"}},
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// delete deletes the namespace with all that is in it.
func (e echo) delete(ctx context.Context) {
	GinkgoHelper()
	Expect(e.client.CoreV1().Namespaces().Delete(ctx, echoNamespace, metav1.DeleteOptions{})).To(Succeed())
}
