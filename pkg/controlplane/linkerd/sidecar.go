package linkerd

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"scaler.mesh/scaler/kwok"
	tokens "scaler.mesh/scaler/pkg/controlplane/authority"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/topology"
)

// watchServices watches the Services until ctx ends.
func watchServices(ctx context.Context, client kubernetes.Interface) (corelisters.ServiceLister, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	watched := factory.Core().V1().Services()
	informer, lister := watched.Informer(), watched.Lister()
	factory.Start(ctx.Done())
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watching the services of %s: %w", Name, context.Cause(ctx))
	}
	return lister, nil
}

// Spec is part of controlplane.Proxies: a proxy that looks up what the pod's service calls by the addresses
// of the called Services, as connections are made to them, and its own service by name.
func (c *controlPlane) Spec(pod *corev1.Pod) (proxy.Spec, error) {
	mesh := c.options.Mesh
	at := slices.IndexFunc(mesh.Services, func(s topology.Service) bool {
		return s.Name == pod.Labels[kwok.ServiceLabel] && s.Namespace == pod.Namespace
	})
	if at < 0 {
		return proxy.Spec{}, fmt.Errorf("pod %s/%s is of no service of the mesh", pod.Namespace, pod.Name)
	}
	spec := proxy.Spec{
		ID: pod.Namespace + "/" + pod.Name, Address: local(c.destination.grpc), Authority: local(c.identity.grpc), RootPEM: c.authority.certificate,
		Metadata: map[string]any{"ns": pod.Namespace, "nodeName": pod.Spec.NodeName},
		Token:    tokens.TokenRequest(pod, ""),
		Identity: pod.Spec.ServiceAccountName + "." + pod.Namespace + ".serviceaccount.identity." + namespace + "." + trustDomain,
	}
	own := mesh.Services[at]
	for _, p := range own.Ports {
		spec.Inbound = append(spec.Inbound, name(own, p))
	}
	for _, i := range own.Calls {
		s := mesh.Services[i]
		called, err := c.services.Services(s.Namespace).Get(s.Name)
		if err != nil {
			return proxy.Spec{}, fmt.Errorf("reading service %s/%s, which pod %s calls: %w", s.Namespace, s.Name, spec.ID, err)
		}
		for _, p := range s.Ports {
			spec.Targets = append(spec.Targets, net.JoinHostPort(called.Spec.ClusterIP, strconv.Itoa(p.Number)))
		}
	}
	return spec, nil
}
