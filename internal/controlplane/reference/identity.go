package reference

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
)

// keepalive is between the proxies' HTTP/2 pings, as of Istio's agent.
const keepalive = 30 * time.Second

// Spec returns the proxy of a pod that has its IP: its node id is the pod's name,
// its node cluster the workload. The server needs to know no more.
func (c *ControlPlane) Spec(pod *corev1.Pod) (proxy.Spec, error) {
	id := pod.Namespace + "/" + pod.Name
	service := pod.Labels[kwok.ServiceLabel]
	if service == "" {
		return proxy.Spec{}, fmt.Errorf("pod %s has no label %s: it is not part of the mesh", id, kwok.ServiceLabel)
	}
	if pod.Status.PodIP == "" {
		return proxy.Spec{}, fmt.Errorf("pod %s has no IP yet", id)
	}
	return proxy.Spec{
		ID:          id,
		Address:     address(c.ports.secure),
		ServerName:  server.ServerName,
		RootPEM:     c.root,
		NodeID:      id,
		NodeCluster: server.Workload(pod.Namespace, service),
		Token:       authority.TokenRequest(pod, server.Audience),
		Identity:    server.SPIFFE(pod.Namespace, pod.Spec.ServiceAccountName),
		Keepalive:   keepalive,
	}, nil
}

// Token requests a token bound to that very pod, as for any mesh: whether the
// server looks at it is its own setting.
func (c *ControlPlane) Token(ctx context.Context, pod *corev1.Pod) (proxy.Token, error) {
	return authority.Token(ctx, c.client, authority.TokenRequest(pod, server.Audience))
}

// Issuer makes the certificate client of one proxy; it does not connect yet.
func (c *ControlPlane) Issuer(s proxy.Spec) (controlplane.Issuer, error) {
	return authority.New(s, nil)
}
