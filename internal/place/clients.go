package place

import (
	"context"
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// Clients are the clients of the API server of a cluster.
type Clients struct {
	Config  *rest.Config
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
}

// Connect makes the clients of an environment. They have no rate limit of their own.
func Connect(env Environment) (s Clients, err error) {
	s.Config = env.API().Config
	if s.Client, err = kubernetes.NewForConfig(s.Config); err != nil {
		return s, fmt.Errorf("making a client: %w", err)
	}
	if s.Dynamic, err = dynamic.NewForConfig(s.Config); err != nil {
		return s, fmt.Errorf("making a client: %w", err)
	}
	return s, nil
}

// ClientConfig returns the configuration of a client of the cluster that a kubeconfig file
// names, without a rate limit of its own.
func ClientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}

// Resource returns the API of an object.
func (a Clients) Resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return a.Dynamic.Resource(plural).Namespace(object.GetNamespace())
}

// SetReplicas changes how many pods a service has. Those on real nodes stay.
func (a Clients) SetReplicas(ctx context.Context, s topology.Service, replicas int) error {
	_, err := a.Client.AppsV1().Deployments(s.Namespace).UpdateScale(ctx, s.Object(), &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: s.Object(), Namespace: s.Namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: int32(replicas - s.Real)},
	}, metav1.UpdateOptions{})
	return err
}

// SidecarPatch returns the patch of a pod with which its sidecar reports value.
func SidecarPatch(value string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{kwok.SidecarAnnotation: value}}})
}

// ReportSidecar sets what a pod's sidecar reports.
func (a Clients) ReportSidecar(ctx context.Context, namespace, name, value string) error {
	patch, err := SidecarPatch(value)
	if err != nil {
		return err
	}
	_, err = a.Client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
