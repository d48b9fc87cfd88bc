package rollout

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

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/cluster"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/topology"
)

// ClusterComponents are the names of the programs that an embedded cluster takes.
func ClusterComponents() []string {
	return []string{component.Etcd, component.KubeAPIServer, component.KubeControllerManager, component.KubeScheduler, component.Kwok}
}

// ClusterPrograms are the programs of ClusterComponents, of which paths says by name
// where each is.
func ClusterPrograms(paths map[string]string) cluster.Programs {
	return cluster.Programs{
		Etcd:              paths[component.Etcd],
		APIServer:         paths[component.KubeAPIServer],
		ControllerManager: paths[component.KubeControllerManager],
		Scheduler:         paths[component.KubeScheduler],
		Kwok:              paths[component.Kwok],
	}
}

// apiServer is how the API server of a cluster is spoken to.
type apiServer struct {
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

func connect(c *cluster.Cluster) (s apiServer, err error) {
	if s.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return s, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	s.config.QPS = -1 // no rate limit of the client's own: arrival is measured, not made
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		return s, fmt.Errorf("making a client: %w", err)
	}
	if s.dynamic, err = dynamic.NewForConfig(s.config); err != nil {
		return s, fmt.Errorf("making a client: %w", err)
	}
	return s, nil
}

// resource is the API of an object.
func (a apiServer) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return a.dynamic.Resource(plural).Namespace(object.GetNamespace())
}

// setReplicas changes how many pods a service has.
func (a apiServer) setReplicas(ctx context.Context, s topology.Service, replicas int) error {
	_, err := a.client.AppsV1().Deployments(s.Namespace).UpdateScale(ctx, s.Name, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
	}, metav1.UpdateOptions{})
	return err
}

// sidecarPatch is what a pod is patched with for its sidecar to report value.
func sidecarPatch(value string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{kwok.SidecarAnnotation: value}}})
}

// annotate sets what a pod's sidecar reports.
func (a apiServer) annotate(ctx context.Context, namespace, name, value string) error {
	patch, err := sidecarPatch(value)
	if err != nil {
		return err
	}
	_, err = a.client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
