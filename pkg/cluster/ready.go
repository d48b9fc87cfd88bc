package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
)

// newHTTPClient trusts the cluster's authority and carries the admin's
// certificate.
func newHTTPClient(files pki) (*http.Client, error) {
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(files.AdminCert, files.AdminKey)
	if err != nil {
		return nil, fmt.Errorf("reading the admin's certificate: %w", err)
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
	}}, nil
}

// answers is a probe that succeeds when url answers 200.
func answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := httpget.Get(ctx, client, url)
		return err
	}
}

// writeKubeconfig writes a file with the certificates in it, so that it can be
// copied.
func writeKubeconfig(path, name, server string, files pki) error {
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthority: files.CA}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificate: files.AdminCert, ClientKey: files.AdminKey}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := api.FlattenConfig(config); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	return nil
}

const (
	firstRun = "scaler-first" // run of runPod's node
	firstPod = "scaler-first"
)

// runPod has the cluster run one pod on a fake node and removes both again: it
// shows that all components work together.
func runPod(ctx context.Context, kubeconfig string, player *process.Process) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("running a first pod: %w", err)
	}
	config.QPS = -1 // no limit of the client's own
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("running a first pod: %w", err)
	}
	f := first{client}
	for _, step := range []func(context.Context) error{f.create, f.runs, f.remove} {
		if err := process.WaitReady(ctx, player, step); err != nil {
			return fmt.Errorf("running a first pod: %w", err)
		}
	}
	return nil
}

// first is runPod's steps, each a probe to be repeated until it succeeds.
type first struct{ client kubernetes.Interface }

func (f first) create(ctx context.Context) error {
	node := kwok.Node(0, firstRun)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: firstPod},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "none", Image: "none"}},
			NodeSelector: kwok.NodeSelector(),
			Tolerations:  []corev1.Toleration{kwok.Toleration()},
		},
	}
	_, err := f.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Refused until the namespace has its service account.
	_, err = f.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (f first) runs(ctx context.Context) error {
	pod, err := f.client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, firstPod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
		return fmt.Errorf("pod %s is %s, on node %q, with address %q: %v", firstPod, pod.Status.Phase, pod.Spec.NodeName, pod.Status.PodIP, pod.Status.Conditions)
	}
	return nil
}

func (f first) remove(ctx context.Context) error {
	err := f.client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, firstPod, *metav1.NewDeleteOptions(0))
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	err = f.client.CoreV1().Nodes().Delete(ctx, kwok.Node(0, firstRun).Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
