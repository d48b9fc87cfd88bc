package experiment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// SidecarConfig is the configuration of a simulated sidecar: what its control plane
// says of it, with the tokens and the certificates of its pod.
func SidecarConfig(s controlplane.Sidecar, variant xdsprobe.Variant, tokens proxy.TokenSource, authority controlplane.Issuer, keys *KeyPool) xdsprobe.Config {
	return xdsprobe.Config{
		ID:          s.ID,
		Address:     s.Address,
		ServerName:  s.ServerName,
		RootPEM:     s.RootPEM,
		Variant:     variant,
		NodeID:      s.NodeID,
		NodeCluster: s.NodeCluster,
		Metadata:    s.Metadata,
		Build:       s.Build,
		Headers:     s.Headers,
		Keepalive:   s.Keepalive,
		Drain:       s.Drain,
		Token:       tokens,
		Issuer:      Issuer{authority},
		Keys:        keys.Key,
		Identity:    s.Identity,
	}
}

// PodTokens requests the tokens of one pod.
type PodTokens struct {
	adapter *controlplane.ControlPlane
	pod     *corev1.Pod
}

// TokensOf requests the tokens of a pod. It keeps of the pod only what a token is requested for: thousands are
// simulated, and an injected pod is large.
func TokensOf(adapter *controlplane.ControlPlane, pod *corev1.Pod) PodTokens {
	return PodTokens{adapter, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Spec:       corev1.PodSpec{ServiceAccountName: pod.Spec.ServiceAccountName},
	}}
}

// Token is part of xdsprobe.TokenSource.
func (t PodTokens) Token(ctx context.Context) (proxy.Token, error) {
	token, err := t.adapter.Identities.Token(ctx, t.pod)
	return proxy.Token(token), err
}

// Issuer has one pod's certificates signed.
type Issuer struct{ Authority controlplane.Issuer }

// Issue is part of xdsprobe.Issuer.
func (i Issuer) Issue(ctx context.Context, token string, csrPEM []byte) (proxy.Issued, error) {
	issued, err := i.Authority.Issue(ctx, token, csrPEM)
	return proxy.Issued(issued), err
}
