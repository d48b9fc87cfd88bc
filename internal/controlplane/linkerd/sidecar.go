package linkerd

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"scaler.mesh/scaler/internal/controlplane"
	tokens "scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/informer"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
)

// watchServices watches the Services until ctx ends.
func watchServices(ctx context.Context, client kubernetes.Interface) (corelisters.ServiceLister, error) {
	watched := informer.New(client, client.CoreV1().Services(metav1.NamespaceAll), &corev1.Service{}, "")
	go watched.RunWithContext(ctx)
	if !toolscache.WaitForCacheSync(ctx.Done(), watched.HasSynced) {
		return nil, fmt.Errorf("watching the services of %s: %w", Name, context.Cause(ctx))
	}
	return corelisters.NewServiceLister(watched.GetIndexer()), nil
}

// The environment of an injected proxy, of which linkerd/app/src/env.rs of linkerd2-proxy is the reader.
const (
	proxyContainer = "linkerd-proxy"

	envDestination = "LINKERD2_PROXY_DESTINATION_SVC_ADDR"
	envIdentity    = "LINKERD2_PROXY_IDENTITY_SVC_ADDR"
	envLocalName   = "LINKERD2_PROXY_IDENTITY_LOCAL_NAME"
	envAnchors     = "LINKERD2_PROXY_IDENTITY_TRUST_ANCHORS"
	envContext     = "LINKERD2_PROXY_DESTINATION_CONTEXT"
	envNetworks    = "LINKERD2_PROXY_DESTINATION_PROFILE_NETWORKS"
)

// Spec is part of controlplane.Proxies: the proxy that the injected container states, with its identity,
// roots, context and services. It looks up what the pod's service calls by the addresses of the called
// Services, as connections are made to them, where these are of the networks for which it does so; and its own service by name.
func (c *controlPlane) Spec(pod *corev1.Pod) (proxy.Spec, error) {
	id := pod.Namespace + "/" + pod.Name
	mesh := c.options.Mesh
	at := slices.IndexFunc(mesh.Services, func(s topology.Service) bool {
		return s.Name == pod.Labels[kwok.ServiceLabel] && s.Namespace == pod.Namespace
	})
	if at < 0 {
		return proxy.Spec{}, fmt.Errorf("pod %s is of no service of the mesh", id)
	}
	container := controlplane.Injected(pod, proxyContainer)
	if container == nil {
		return proxy.Spec{}, fmt.Errorf("pod %s has no container %s: the injector has not changed it", id, proxyContainer)
	}
	env := controlplane.EnvironmentOf(pod, container)
	spec := proxy.Spec{
		ID: id, RootPEM: []byte(env[envAnchors]), Identity: env[envLocalName], Token: tokens.TokenRequest(pod, ""),
	}
	var err error
	if spec.Address, err = c.reached(env, envDestination); err != nil {
		return proxy.Spec{}, fmt.Errorf("reading the proxy of pod %s: %w", id, err)
	}
	if spec.Authority, err = c.reached(env, envIdentity); err != nil {
		return proxy.Spec{}, fmt.Errorf("reading the proxy of pod %s: %w", id, err)
	}
	if err := json.Unmarshal([]byte(env[envContext]), &spec.Metadata); err != nil {
		return proxy.Spec{}, fmt.Errorf("reading %s %q of pod %s: %w", envContext, env[envContext], id, err)
	}
	networks, err := parseNetworks(env[envNetworks])
	if err != nil {
		return proxy.Spec{}, fmt.Errorf("reading %s of pod %s: %w", envNetworks, id, err)
	}
	own := mesh.Services[at]
	for _, p := range own.Ports {
		spec.Inbound = append(spec.Inbound, name(own, p))
	}
	for _, i := range own.Calls {
		s := mesh.Services[i]
		called, err := c.services.Services(s.Namespace).Get(s.Name)
		if err != nil {
			return proxy.Spec{}, fmt.Errorf("reading service %s/%s, which pod %s calls: %w", s.Namespace, s.Name, id, err)
		}
		if !networks.contain(called.Spec.ClusterIP) {
			continue
		}
		for _, p := range s.Ports {
			spec.Targets = append(spec.Targets, net.JoinHostPort(called.Spec.ClusterIP, strconv.Itoa(p.Number)))
		}
	}
	return spec, nil
}

// reached returns the address of the program that a variable of a proxy names as a service port of the cluster,
// which has no DNS.
func (c *controlPlane) reached(env map[string]string, variable string) (string, error) {
	switch env[variable] {
	case destinationAddress:
		return local(c.destination.grpc), nil
	case identityAddress:
		return local(c.identity.grpc), nil
	}
	return "", fmt.Errorf("parsing %s %q: want %s or %s", variable, env[variable], destinationAddress, identityAddress)
}

// networks are the networks whose addresses a proxy looks up profiles of.
type networks []netip.Prefix

func parseNetworks(list string) (networks, error) {
	var all networks
	for text := range strings.SplitSeq(list, ",") {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		all = append(all, network)
	}
	return all, nil
}

func (n networks) contain(address string) bool {
	parsed, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(n, func(network netip.Prefix) bool { return network.Contains(parsed) })
}
