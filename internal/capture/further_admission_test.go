package capture

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What admission and scheduling act by is no part of the replay's pods and namespaces: quotas and limits, annotations of namespaces by which
// nodes are chosen, and what pods and their owners ask for.
func TestNothingActsOnPods(t *testing.T) {
	m := meshOfText(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled, team: a}, finalizers: [example.com/keep], annotations: {
  scheduler.alpha.kubernetes.io/node-selector: "pool=shop", openshift.io/node-selector: "pool=shop", openshift.io/sa.scc.uid-range: 1000/1000}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: shop}, spec: {hard: {pods: "1"}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: small, namespace: shop}, spec: {limits: [{type: Container, min: {cpu: 1}}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: cart, namespace: shop}, spec: {minAvailable: 3}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop, finalizers: [example.com/keep]}, spec: {replicas: 3, paused: true, minReadySeconds: 600, template: {
  metadata: {labels: {app: cart}, finalizers: [example.com/keep], annotations: {kwok.x-k8s.io/usage-cpu: "1"}}, spec: {
    priorityClassName: high, runtimeClassName: sandboxed, schedulerName: own, nodeSelector: {pool: shop}, schedulingGates: [{name: example.com/wait}],
    containers: [{name: app, ports: [{containerPort: 8080, hostPort: 8080}], resources: {requests: {cpu: 100}}}]}}}}
`)
	expectWorkloads(t, m, "cart 3 sidecar")
	// https://kubernetes.io/docs/concepts/policy/resource-quotas/, https://kubernetes.io/docs/concepts/policy/limit-range/
	var left []string
	for _, l := range m.LeftOut {
		left = append(left, fmt.Sprint(l.Count, " ", l.Kind, ": ", l.Reason))
	}
	if diff := cmp.Diff([]string{"1 LimitRange: " + notDocumented, "1 PodDisruptionBudget.policy: " + notDocumented, "1 ResourceQuota: " + notDocumented}, left); diff != "" {
		t.Error("left out:", diff)
	}
	// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podnodeselector
	for _, o := range m.Surroundings(map[string]string{injectionLabel: "enabled"}) {
		if o.GetKind() == "Namespace" && (o.GetAnnotations() != nil || o.GetFinalizers() != nil || len(o.GetLabels()) != 2) {
			t.Errorf("the namespace is %v", o)
		}
	}
	// https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/, https://kubernetes.io/docs/concepts/containers/runtime-class/
	made := m.Workloads[0].Template()
	if s := made.Spec; s.PriorityClassName+s.SchedulerName != "" || s.RuntimeClassName != nil || s.NodeSelector != nil || s.SchedulingGates != nil {
		t.Errorf("the pods are %v", s)
	}
	if c := made.Spec.Containers[0]; c.Ports[0].HostPort != 0 || c.Resources.Requests != nil {
		t.Errorf("the container is %v", c)
	}
	if made.Finalizers != nil || len(made.Annotations) > 0 {
		t.Errorf("the pods are %v", made.ObjectMeta)
	}
}
