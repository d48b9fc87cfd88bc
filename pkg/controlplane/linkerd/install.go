package linkerd

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"scaler.mesh/scaler/pkg/controlplane"
)

// tokenLifetime is that of the programs' tokens, which are not renewed: longer than any run.
const tokenLifetime = 30 * 24 * time.Hour

var customResources = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// kinds are those of the chart.
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
	core := c.client.CoreV1()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"linkerd.io/is-control-plane": "true", controllerLabel: namespace}}}
	if _, err := core.Namespaces().Create(ctx, space, metav1.CreateOptions{}); made(err) != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	var definitions []*unstructured.Unstructured
	for _, kind := range kinds {
		definitions = append(definitions, kind.Definition())
		if _, err := c.dynamic.Resource(customResources).Create(ctx, kind.Definition(), metav1.CreateOptions{}); made(err) != nil {
			return fmt.Errorf("creating %s: %w", kind.Name(), err)
		}
	}
	for name, rules := range rights() {
		if err := c.allow(ctx, name, rules); err != nil {
			return err
		}
	}
	// Identity looks for its Deployment at its start, and writes Events about it.
	if _, err := c.client.AppsV1().Deployments(namespace).Create(ctx, standIn(identityName), metav1.CreateOptions{}); made(err) != nil {
		return fmt.Errorf("creating deployment %s: %w", identityName, err)
	}
	return controlplane.AwaitDefinitions(ctx, c.client.Discovery(), definitions)
}

// allow makes the account of a program, with these rights.
func (c *controlPlane) allow(ctx context.Context, name string, rules []rbacv1.PolicyRule) error {
	if _, err := c.client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: own(name)}, metav1.CreateOptions{}); made(err) != nil {
		return fmt.Errorf("creating service account %s: %w", name, err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); made(err) != nil {
		return fmt.Errorf("creating cluster role %s: %w", name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); made(err) != nil {
		return fmt.Errorf("creating cluster role binding %s: %w", name, err)
	}
	return nil
}

// made is the error of a creation, unless the object was there.
func made(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func own(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// standIn is the Deployment of a program, without pods.
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

// rights are those of the chart's cluster roles, by the names of the accounts.
func rights() map[string][]rbacv1.PolicyRule {
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	read := []string{"list", "get", "watch"}
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
	}
}

// writeKubeconfig writes a file with the cluster and a token of an account, and returns its name.
func (c *controlPlane) writeKubeconfig(ctx context.Context, account string) (string, error) {
	seconds := int64(tokenLifetime.Seconds())
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of service account %s/%s: %w", namespace, account, err)
	}
	config, err := clientcmd.LoadFromFile(c.options.Kubeconfig)
	if err != nil {
		return "", fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := filepath.Join(filepath.Dir(c.options.Kubeconfig), account+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", account, err)
	}
	return file, nil
}
