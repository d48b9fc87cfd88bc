package capture

import (
	"fmt"
	"testing"
)

// Pods of one owner that differ in what istiod reads are workloads of their own, with names that no other workload has.
func TestPodsOfOneOwner(t *testing.T) {
	const deployment = "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: shop}, spec: {replicas: %[2]d, template: {metadata: {labels: {app: %[1]s}}, spec: {serviceAccountName: new, containers: [{name: app}]}}}}\n"
	const pod = "---\n{apiVersion: v1, kind: Pod, metadata: {name: %[1]s-a-%[2]d, namespace: shop, labels: {app: %[1]s, pod-template-hash: a, role: %[3]s}, " +
		"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %[1]s-a, uid: u, controller: true}]}, spec: {serviceAccountName: %[4]s, containers: [{name: app}, {name: istio-proxy}]}}\n"
	// A rollout that does not go on leaves pods of the earlier template, whose account is their identity in the mesh:
	// https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#failed-deployment, https://istio.io/latest/docs/concepts/security/#istio-identity
	t.Run("of two accounts", func(t *testing.T) {
		m := meshOfText(t, fmt.Sprintf(deployment, "cart", 3)+fmt.Sprintf(pod, "cart", 1, "x", "old")+fmt.Sprintf(pod, "cart", 2, "x", "old")+fmt.Sprintf(pod, "cart", 3, "x", "new"))
		expectWorkloads(t, m, "cart 2 sidecar", "cart-2 1 sidecar")
		var accounts []string
		for _, w := range m.Workloads {
			accounts = append(accounts, w.Spec.Account)
		}
		if got := fmt.Sprint(accounts); got != "[old new]" {
			t.Errorf("accounts %s, want old and new", got)
		}
	})
	// Patroni labels the pods of its primary and of its replicas: https://patroni.readthedocs.io/en/latest/kubernetes.html
	t.Run("beside another owner with such a name", func(t *testing.T) {
		m := meshOfText(t, "{apiVersion: v1, kind: Service, metadata: {name: primary, namespace: shop}, spec: {selector: {role: primary}, ports: [{port: 80}]}}\n"+
			fmt.Sprintf(deployment, "db", 2)+fmt.Sprintf(deployment, "db-2", 4)+fmt.Sprintf(pod, "db", 1, "primary", "new")+fmt.Sprintf(pod, "db", 2, "replica", "new")+fmt.Sprintf(pod, "db-2", 1, "none", "new"))
		expectWorkloads(t, m, "db 1 sidecar", "db-2 4 sidecar", "db-3 1 sidecar")
		if m.Endpoints() != 1 {
			t.Errorf("%d endpoints, want that of the primary", m.Endpoints())
		}
	})
	// A Service may be for one index of a Job, as that of the leader of a distributed training is:
	// https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/
	t.Run("of a Job with indices", func(t *testing.T) {
		text := "{apiVersion: v1, kind: Service, metadata: {name: leader, namespace: shop}, spec: {clusterIP: None, selector: {batch.kubernetes.io/job-name: train, batch.kubernetes.io/job-completion-index: \"0\"}, ports: [{port: 80}]}}\n"
		for i := range 4 {
			text += fmt.Sprintf("---\n{apiVersion: v1, kind: Pod, metadata: {name: train-%[1]d-abcde, namespace: shop, labels: {job-name: train, batch.kubernetes.io/job-name: train, batch.kubernetes.io/job-completion-index: \"%[1]d\", batch.kubernetes.io/controller-uid: u}, "+
				"ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: u, controller: true}]}, spec: {containers: [{name: app}]}}\n", i)
		}
		m := meshOfText(t, text)
		if m.Endpoints() != 1 || len(m.Workloads) != 4 || len(m.Dangling()) > 0 {
			t.Errorf("%d endpoints of %v, dangling %v", m.Endpoints(), workloadsOf(m), m.Dangling())
		}
	})
}
