//go:build e2e

package e2e

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"scaler.mesh/scaler/internal/place/existing"
)

// kubeconfig returns the path of the kubeconfig of the only cluster that runs.
func (p place) kubeconfig() string {
	GinkgoHelper()
	clusters, err := filepath.Glob(filepath.Join(p.state, "clusters", "*"))
	Expect(err).NotTo(HaveOccurred())
	Expect(clusters).To(HaveLen(1))
	return filepath.Join(clusters[0], "kubeconfig")
}

// connection returns the configuration of a cluster's client, and a client.
func connection(kubeconfig string) (*rest.Config, kubernetes.Interface) {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return config, client
}

// user is one of a cluster who has the rights that were given alone.
type user struct {
	client     kubernetes.Interface // with all rights
	kubeconfig string               // the user's
	roles      []string             // what the user is allowed
}

const account = "operator" // of the user, in namespace default

// newUser makes a user without rights, whose kubeconfig is the file.
func newUser(ctx context.Context, kubeconfig, file string) *user {
	GinkgoHelper()
	_, client := connection(kubeconfig)
	accounts := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	token, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	return &user{client: client, kubeconfig: file}
}

// allow gives the user a ClusterRole of rights.
func (u *user) allow(ctx context.Context, name string, rights []rbacv1.PolicyRule) {
	GinkgoHelper()
	_, err := u.client.RbacV1().ClusterRoles().Create(ctx, existing.Role(name, rights), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = u.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: metav1.NamespaceDefault}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	u.roles = append(u.roles, name)
}

// remove removes the user and what it is allowed.
func (u *user) remove(ctx context.Context) {
	GinkgoHelper()
	for _, name := range u.roles {
		Expect(u.client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		Expect(u.client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	}
	Expect(u.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Delete(ctx, account, metav1.DeleteOptions{})).To(Succeed())
}
