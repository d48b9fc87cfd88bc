package linkerd

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
)

// kinds are the custom resources of the chart.
var kinds = []controlplane.CustomResource{
	{Group: "linkerd.io", Versions: []string{"v1alpha2", "v1alpha1"}, Kind: "ServiceProfile", Plural: "serviceprofiles"},
	{Group: "split.smi-spec.io", Versions: []string{"v1alpha1", "v1alpha2"}, Kind: "TrafficSplit", Plural: "trafficsplits"},
}

// install makes all that the programs need in their cluster.
func (c *controlPlane) install(ctx context.Context) error {
	var err error
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if c.webhook, err = newWebhookCertificate(); err != nil {
		return err
	}
	core := c.client.CoreV1()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
		"linkerd.io/is-control-plane": "true", controllerLabel: namespace, webhooksLabel: "disabled",
	}}}
	if _, err := core.Namespaces().Create(ctx, space, metav1.CreateOptions{}); controlplane.Created(err) != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	for name, rules := range rights() {
		if err := (controlplane.Account{Namespace: namespace, Name: name, Rules: rules}).Create(ctx, c.client); err != nil {
			return err
		}
	}
	// Identity looks for its Deployment at its start, and writes Events about it.
	if _, err := c.client.AppsV1().Deployments(namespace).Create(ctx, standIn(identityName), metav1.CreateOptions{}); controlplane.Created(err) != nil {
		return fmt.Errorf("creating deployment %s: %w", identityName, err)
	}
	return controlplane.CreateDefinitions(ctx, c.dynamic, c.client.Discovery(), kinds)
}

func own(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// standIn returns the Deployment of a program, without pods.
func standIn(name string) *appsv1.Deployment {
	labels := map[string]string{"linkerd.io/control-plane-component": name}
	return &appsv1.Deployment{ObjectMeta: own(name), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{ServiceAccountName: name, Containers: []corev1.Container{{Name: name, Image: "scaler.mesh/simulated"}}},
		},
	}}
}

// rights returns the rules of the chart's cluster roles, by the names of the accounts.
func rights() map[string][]rbacv1.PolicyRule {
	rule, read := controlplane.Rule, []string{"list", "get", "watch"}
	return map[string][]rbacv1.PolicyRule{
		destinationName: {
			rule("apps", read, "replicasets"),
			rule("batch", read, "jobs"),
			rule("", read, "pods", "endpoints", "services", "nodes", "namespaces"),
			rule("linkerd.io", read, "serviceprofiles"),
			rule("split.smi-spec.io", read, "trafficsplits"),
		},
		identityName: {
			rule("authentication.k8s.io", []string{"create"}, "tokenreviews"),
			rule("apps", []string{"get"}, "deployments"),
			rule("", []string{"create", "patch"}, "events"),
		},
		injectorName: {
			rule("", []string{"create", "patch"}, "events"),
			rule("", read, "namespaces", "replicationcontrollers"),
			rule("", []string{"list", "watch"}, "pods"),
			rule("apps", read, "deployments", "replicasets", "daemonsets", "statefulsets"),
			rule("batch", read, "jobs"),
		},
	}
}
