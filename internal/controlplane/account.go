package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime is the lifetime of an account's token, which is not renewed: longer than any run.
const tokenLifetime = 30 * 24 * time.Hour

// Account is the service account of programs of a control plane that run outside of the cluster, with
// the rights that it would have inside.
type Account struct {
	Namespace, Name string
	Rules           []rbacv1.PolicyRule // of its ClusterRole, which has its name
}

// Create makes the account, its role and what binds the two. What is there already stays as it is.
func (a Account) Create(ctx context.Context, client kubernetes.Interface) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
	if _, err := client.CoreV1().ServiceAccounts(a.Namespace).Create(ctx, account, metav1.CreateOptions{}); Created(err) != nil {
		return fmt.Errorf("creating service account %s: %w", a.Name, err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.Name}, Rules: a.Rules}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); Created(err) != nil {
		return fmt.Errorf("creating cluster role %s: %w", a.Name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.Name},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); Created(err) != nil {
		return fmt.Errorf("creating cluster role binding %s: %w", a.Name, err)
	}
	return nil
}

// WriteKubeconfig writes a file with a token of the account and the cluster of another kubeconfig, next to
// that one. It returns the name of the file, which ends in the account's.
func (a Account) WriteKubeconfig(ctx context.Context, client kubernetes.Interface, of string) (string, error) {
	seconds := int64(tokenLifetime.Seconds())
	token, err := client.CoreV1().ServiceAccounts(a.Namespace).CreateToken(ctx, a.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of service account %s/%s: %w", a.Namespace, a.Name, err)
	}
	config, err := clientcmd.LoadFromFile(of)
	if err != nil {
		return "", fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := filepath.Join(filepath.Dir(of), a.Name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", a.Name, err)
	}
	return file, nil
}

// Rule allows these verbs on resources of one API group, "" for the core group.
func Rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// Created returns the error of a creation, unless the object was there.
func Created(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
