package authority

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/istioagent"
	"scaler.mesh/scaler/pkg/proxy"
)

// NewProxy is a sidecar with Istio's agent that gets its certificates from this
// authority, with that source of tokens; nil = without tokens.
func NewProxy(spec proxy.Spec, tokens proxy.TokenSource, o controlplane.ProxyOptions) (proxy.Proxy, error) {
	o.Apply(&spec)
	issuer, err := New(spec)
	if err != nil {
		return nil, err
	}
	agent, err := istioagent.New(spec, istioagent.Services{
		Store: o.Store, Observer: o.Observer, Token: tokens, Issuer: issuer, Keys: o.Keys,
	})
	if err != nil {
		return nil, err
	}
	return agent, nil
}

// PodTokens requests the tokens of one pod.
type PodTokens struct {
	credentials controlplane.Credentials
	pod         *corev1.Pod
}

var _ proxy.TokenSource = PodTokens{}

// TokensOf requests the tokens of a pod. It keeps of the pod only what a token is
// requested for: thousands are simulated, and an injected pod is large.
func TokensOf(credentials controlplane.Credentials, pod *corev1.Pod) PodTokens {
	return PodTokens{credentials, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Spec:       corev1.PodSpec{ServiceAccountName: pod.Spec.ServiceAccountName},
	}}
}

// Token is part of proxy.TokenSource.
func (t PodTokens) Token(ctx context.Context) (proxy.Token, error) {
	return t.credentials.Token(ctx, t.pod)
}
