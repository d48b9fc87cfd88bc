package existing

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
)

// KubeletRoleName is the name of the ClusterRole that has the rights of KubeletRights.
const KubeletRoleName = "scaler-kubelets"

// KubeletRights returns the rights that a run needs in addition to Rights to read the usage of real sidecars. A run without
// them does not read it, and states so: they are rights to all that a kubelet answers to GET requests.
func KubeletRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{Rule("", []string{"get"}, "nodes/proxy")}
}

// Cadvisor returns the metrics of the cAdvisor of a node's kubelet, read through the API server.
func (c *Cluster) Cadvisor(ctx context.Context, node string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	text, err := client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("metrics", "cadvisor").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the kubelet of node %s: %w", node, err)
	}
	return text, nil
}
