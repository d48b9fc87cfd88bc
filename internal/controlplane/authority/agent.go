package authority

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/istioagent"
	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// NewProxy returns a sidecar with Istio's agent that gets its certificates from this
// authority. It has tokens if its specification has a request for them. It is
// controlplane.Proxy.New of control planes that offer this API.
func NewProxy(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
	return NewProxyOf(spec, s, nil)
}

// NewProxyOf is NewProxy for one that subscribes to these of the store's types; nil = all.
func NewProxyOf(spec proxy.Spec, s controlplane.ProxyServices, types []convergence.Type) (proxy.Proxy, error) {
	issuer, err := New(spec, s.Backends)
	if err != nil {
		return nil, err
	}
	services := istioagent.Services{Store: s.Store, Observer: s.Observer, Issuer: issuer, Keys: s.Keys, Backends: s.Backends, Types: types}
	if spec.Token != (proxy.TokenRequest{}) && s.Tokens != nil {
		services.Token = s.Tokens(spec.Token)
	}
	agent, err := istioagent.New(spec, services)
	if err != nil {
		return nil, err
	}
	return agent, nil
}

// NewZtunnel returns the ztunnel of a node, which gets the certificates of the node's workloads
// from this authority. It is controlplane.Proxy.New of data planes that have
// ztunnels in place of sidecars.
func NewZtunnel(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
	issuer, err := NewNode(spec, s.Backends)
	if err != nil {
		return nil, err
	}
	services := ztunnel.Services{Store: s.Store, Observer: s.Observer, Issuer: issuer, Backends: s.Backends}
	if spec.Token != (proxy.TokenRequest{}) && s.Tokens != nil {
		services.Token = s.Tokens(spec.Token)
	}
	z, err := ztunnel.New(spec, services)
	if err != nil {
		return nil, err
	}
	return z, nil
}

// TokenRequest returns the request for the tokens of a pod, as the kubelet makes it.
func TokenRequest(pod *corev1.Pod, audience string) proxy.TokenRequest {
	return proxy.TokenRequest{
		Namespace: pod.Namespace, Pod: pod.Name, UID: string(pod.UID),
		ServiceAccount: pod.Spec.ServiceAccountName, Audience: audience,
	}
}

// Tokens requests tokens from a cluster. It is controlplane.ProxyServices.Tokens.
func Tokens(client kubernetes.Interface) func(proxy.TokenRequest) proxy.TokenSource {
	return func(r proxy.TokenRequest) proxy.TokenSource { return podTokens{client, r} }
}

// podTokens are the tokens of one pod.
type podTokens struct {
	client  kubernetes.Interface
	request proxy.TokenRequest
}

// Token is part of proxy.TokenSource.
func (t podTokens) Token(ctx context.Context) (proxy.Token, error) {
	return Token(ctx, t.client, t.request)
}
