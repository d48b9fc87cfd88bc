package istio

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/controlplane/authority"
	"scaler.mesh/scaler/pkg/proxy"
)

// tokenAudience is what istiod has tokens reviewed for.
const tokenAudience = "istio-ca"

// Token requests a token for a pod, of the audience of Istio's certificate
// authority.
func (c *ControlPlane) Token(ctx context.Context, pod *corev1.Pod) (proxy.Token, error) {
	return authority.Token(ctx, c.client, pod, tokenAudience)
}

// Issuer makes the certificate client of one proxy; it does not connect yet.
func (c *ControlPlane) Issuer(s controlplane.Sidecar) (controlplane.Issuer, error) {
	return authority.New(s)
}
