package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"scaler.mesh/scaler/internal/httpget"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/kwok"
)

// newHTTPClient makes a client that trusts the cluster's authority and presents the
// admin's certificate.
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

// answers returns a probe that succeeds when url answers 200.
func answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := httpget.Get(ctx, client, url)
		return err
	}
}

// writeKubeconfig writes a kubeconfig file that contains the certificates, so that it can
// be copied.
func writeKubeconfig(path, name, server, ca, certificate, key string) error {
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthority: ca}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificate: certificate, ClientKey: key}
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

// newClient makes a client of the cluster without a rate limit.
func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

const (
	firstRun = "scaler-first" // run of runPod's node
	firstPod = "scaler-first"
	// firstPodTimeout is the age at which a first pod that does not run is replaced,
	// together with its node: on a busy machine KWOK was seen to ignore one for minutes.
	firstPodTimeout = 20 * time.Second
)

// runPod runs one pod on a fake node and removes both again, which shows that all
// components work together.
func runPod(ctx context.Context, kubeconfig string, player *process.Process) error {
	client, err := newClient(kubeconfig)
	if err != nil {
		return fmt.Errorf("running a first pod: %w", err)
	}
	f := first{client}
	for _, step := range []func(context.Context) error{f.create, f.runs, f.remove} {
		if err := player.WaitReady(ctx, step); err != nil {
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
	if err := f.loadSchemas(ctx, pod.Spec); err != nil {
		return err
	}
	// It is refused until the namespace has its service account.
	_, err = f.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// loadSchemas makes the API server apply the policy of managed fields to one object of
// each API group, as a dry run. For the first object the server loads the schema of the
// group, which takes a second and must not be part of a run.
func (f first) loadSchemas(ctx context.Context, spec corev1.PodSpec) error {
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	labels := map[string]string{kwok.RunLabel: firstRun}
	meta := metav1.ObjectMeta{Name: firstPod, Labels: labels}
	if _, err := f.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{ObjectMeta: meta, Spec: spec}, dry); exists(err) != nil {
		return err // as long as the namespace has no service account
	}
	_, err := f.client.AppsV1().ReplicaSets(metav1.NamespaceDefault).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}, dry)
	if err != nil {
		return err
	}
	_, err = f.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4}, dry)
	return err
}

func (f first) runs(ctx context.Context) error {
	pod, err := f.client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, firstPod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // it was removed below
		return errors.Join(err, f.create(ctx))
	}
	if err != nil {
		return err
	}
	if pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
		return nil
	}
	err = fmt.Errorf("pod %s is %s, on node %q, with address %q: %v", firstPod, pod.Status.Phase, pod.Spec.NodeName, pod.Status.PodIP, pod.Status.Conditions)
	if time.Since(pod.CreationTimestamp.Time) > firstPodTimeout {
		err = errors.Join(err, f.remove(ctx))
	}
	return err
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
