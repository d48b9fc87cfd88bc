// Package authority is the client of the certificate API that Istio made a
// standard of (istio.v1.auth.IstioCertificateService), for control planes that
// offer it. Which token and which roots belong to a proxy is left to them.
package authority

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/pkg/proxy"
)

const (
	// tokenLife is the expirationSeconds of Istio's injection template.
	tokenLife = 12 * time.Hour
	// DefaultLifetime is the lifetime that Istio's agent requests by default (SECRET_TTL).
	DefaultLifetime = 24 * time.Hour
)

// Token requests the token that r describes: of its service account, for its audience ("" = that of the API server). If r
// names a pod, the token is bound to it, as the kubelet's, so that no cache of the API server answers for two pods.
func Token(ctx context.Context, client kubernetes.Interface, r proxy.TokenRequest) (proxy.Token, error) {
	seconds := int64(tokenLife / time.Second)
	spec, of := authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}, "service account "+r.Namespace+"/"+r.ServiceAccount
	if r.Audience != "" {
		spec.Audiences = []string{r.Audience}
	}
	if r.Pod != "" {
		spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: r.Pod, UID: types.UID(r.UID)}
		of = "pod " + r.Namespace + "/" + r.Pod
	}
	answer, err := client.CoreV1().ServiceAccounts(r.Namespace).CreateToken(ctx, r.ServiceAccount, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return proxy.Token{}, fmt.Errorf("requesting a token for %s: %w", of, err)
	}
	return proxy.Token{Value: answer.Status.Token, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}
