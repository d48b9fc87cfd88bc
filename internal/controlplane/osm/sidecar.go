package osm

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"scaler.mesh/scaler/internal/informer"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

const (
	uuidLabel       = "osm-proxy-uuid" // of a pod that was injected
	bootstrapSecret = "envoy-bootstrap-config-"

	bootstrapLabels = "app.kubernetes.io/name=openservicemesh.io,app.kubernetes.io/instance=" + meshName // of such Secrets

	// secretTimeout bounds how long the API server may take for a Secret.
	secretTimeout = 30 * time.Second
)

// secrets gives a Secret with a bootstrap certificate. It has usually been watched already when its
// pod has an address, so that no sidecar waits for a request that is made for another; one that was
// not is requested.
type secrets func(namespace, name string) (*corev1.Secret, error)

// watchSecrets watches the Secrets until ctx ends.
func watchSecrets(ctx context.Context, client kubernetes.Interface) (secrets, error) {
	watched := informer.New(client, client.CoreV1().Secrets(metav1.NamespaceAll), &corev1.Secret{}, bootstrapLabels)
	lister := corelisters.NewSecretLister(watched.GetIndexer())
	go watched.RunWithContext(ctx)
	if !toolscache.WaitForCacheSync(ctx.Done(), watched.HasSynced) {
		return nil, fmt.Errorf("watching the secrets of %s: %w", Name, context.Cause(ctx))
	}
	return func(namespace, name string) (*corev1.Secret, error) {
		secret, err := lister.Secrets(namespace).Get(name)
		if !apierrors.IsNotFound(err) {
			return secret, err
		}
		limited, cancel := context.WithTimeout(ctx, secretTimeout)
		defer cancel()
		return client.CoreV1().Secrets(namespace).Get(limited, name, metav1.GetOptions{})
	}, nil
}

// Spec is part of controlplane.Proxies: an Envoy with the certificate that the injector wrote into
// the Secret of the pod.
func (c *controlPlane) Spec(pod *corev1.Pod) (proxy.Spec, error) {
	secret, err := c.bootstrap(pod)
	if err != nil {
		return proxy.Spec{}, err
	}
	return c.spec(pod, secret)
}

// bootstrap returns the Secret that the injector made for a pod.
func (c *controlPlane) bootstrap(pod *corev1.Pod) (*corev1.Secret, error) {
	id := pod.Labels[uuidLabel]
	if id == "" {
		return nil, fmt.Errorf("pod %s/%s has no label %s: the injector has not changed it", pod.Namespace, pod.Name, uuidLabel)
	}
	secret, err := c.secrets(pod.Namespace, bootstrapSecret+id)
	if err != nil {
		return nil, fmt.Errorf("reading the bootstrap certificate of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return secret, nil
}

func (c *controlPlane) spec(pod *corev1.Pod, secret *corev1.Secret) (proxy.Spec, error) {
	chain, key := secret.Data["sds_cert.pem"], secret.Data["sds_key.pem"]
	node, err := commonName(chain)
	if err != nil {
		return proxy.Spec{}, fmt.Errorf("reading secret %s/%s: %w", pod.Namespace, secret.Name, err)
	}
	return proxy.Spec{
		ID: pod.Namespace + "/" + pod.Name, Address: local(c.controller.ports.ads), ServerName: serverName, RootPEM: secret.Data["cacert.pem"],
		ClientCertificatePEM: chain, ClientKeyPEM: key,
		XDS: string(xdsprobe.SotW), NodeID: node,
		Identity: pod.Spec.ServiceAccountName + "." + pod.Namespace + "." + trustDomain,
	}, nil
}

// commonName returns the common name of the first certificate of a chain in PEM, which is the Envoy's node.id.
func commonName(chain []byte) (string, error) {
	block, _ := pem.Decode(chain)
	if block == nil {
		return "", errors.New("it has no certificate")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("parsing its certificate: %w", err)
	}
	return leaf.Subject.CommonName, nil
}
