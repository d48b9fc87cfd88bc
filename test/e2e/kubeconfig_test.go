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
)

// kubeconfig is that of the only cluster that runs.
func (p place) kubeconfig() string {
	GinkgoHelper()
	clusters, err := filepath.Glob(filepath.Join(p.state, "clusters", "*"))
	Expect(err).NotTo(HaveOccurred())
	Expect(clusters).To(HaveLen(1))
	return filepath.Join(clusters[0], "kubeconfig")
}

// connection is how a cluster is reached, with a client.
func connection(kubeconfig string) (*rest.Config, kubernetes.Interface) {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return config, client
}

// userWith writes the kubeconfig of a new service account that has the rights of a role alone.
func userWith(ctx context.Context, role *rbacv1.ClusterRole, kubeconfig, file string) {
	GinkgoHelper()
	_, client := connection(kubeconfig)
	_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	meta := metav1.ObjectMeta{Name: role.Name}
	accounts := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	_, err = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: meta.Name, Namespace: metav1.NamespaceDefault}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	token, err := accounts.CreateToken(ctx, meta.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
}
