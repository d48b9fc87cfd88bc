package istio

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/pkg/proxy"
)

// tokenAudience is what istiod has tokens reviewed for.
const tokenAudience = "istio-ca"

// credentials are those of the mesh's proxies.
type credentials struct{ client kubernetes.Interface }

// Token requests a token for a pod, of the audience of Istio's certificate
// authority.
func (c credentials) Token(ctx context.Context, pod *corev1.Pod) (proxy.Token, error) {
	return authority.Token(ctx, c.client, pod, tokenAudience)
}

// Issuer makes the certificate client of one proxy; it does not connect yet.
func (credentials) Issuer(spec proxy.Spec) (controlplane.Issuer, error) {
	return authority.New(spec, nil)
}
