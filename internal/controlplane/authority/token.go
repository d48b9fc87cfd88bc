// Package authority is the client of the certificate API that Istio made a
// standard of (istio.v1.auth.IstioCertificateService), for control planes that
// offer it. Which token and which roots belong to a proxy is left to them.
package authority

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/pkg/proxy"
)

const (
	// tokenLife is the expirationSeconds of Istio's injection template.
	tokenLife = 12 * time.Hour
	// DefaultLifetime is what Istio's agent requests by itself (SECRET_TTL).
	DefaultLifetime = 24 * time.Hour
)

// Token requests a token for a pod as the kubelet would: for that audience ("" = that of the API
// server) and bound to that very pod, so that no cache of the API server answers for two.
func Token(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, audience string) (proxy.Token, error) {
	bound := &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	token, err := request(ctx, client, pod.Namespace, pod.Spec.ServiceAccountName, audience, bound)
	if err != nil {
		return proxy.Token{}, fmt.Errorf("requesting a token for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return token, nil
}

// AccountToken requests a token of a service account that is bound to no pod.
func AccountToken(ctx context.Context, client kubernetes.Interface, namespace, account, audience string) (proxy.Token, error) {
	token, err := request(ctx, client, namespace, account, audience, nil)
	if err != nil {
		return proxy.Token{}, fmt.Errorf("requesting a token for service account %s/%s: %w", namespace, account, err)
	}
	return token, nil
}

func request(ctx context.Context, client kubernetes.Interface, namespace, account, audience string, bound *authenticationv1.BoundObjectReference) (proxy.Token, error) {
	seconds := int64(tokenLife / time.Second)
	var audiences []string
	if audience != "" {
		audiences = []string{audience}
	}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds, BoundObjectRef: bound},
	}, metav1.CreateOptions{})
	if err != nil {
		return proxy.Token{}, err
	}
	return proxy.Token{Value: answer.Status.Token, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}
