package istio

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// otherService is a service of the cluster that is not part of the mesh: the API
// server's, istiod's own, those of the manifests. Sidecars that are configured
// for everything are configured for these too.
type otherService struct {
	namespace     string
	host, address string // address: the cluster IP
	ports         []otherPort
}

type otherPort struct {
	number int
	kind   listenerKind
}

// listenerKind is the kind of listener that istiod makes for a port's protocol.
type listenerKind uint8

const (
	opaque  listenerKind = iota // a listener on the service's address
	routed                      // the listener on any address, and a route configuration, both of the port
	sniffed                     // a listener on the service's address, and a route configuration of its own
)

// kindOf follows kube.ConvertProtocol and the names in protocol.Parse of
// Istio's pkg/config: a port's protocol is its appProtocol, or what its name
// begins with.
func kindOf(p corev1.ServicePort) listenerKind {
	name, _, _ := strings.Cut(p.Name, "-")
	if p.AppProtocol != nil {
		name = *p.AppProtocol
	}
	switch strings.ToLower(name) {
	case "http", "http2", "grpc":
		return routed
	case "https", "tls", "tcp":
		return opaque
	default:
		return sniffed
	}
}

// findOtherServices reads the services that are there before the mesh is.
func (c *ControlPlane) findOtherServices(ctx context.Context) error {
	services, err := c.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the services outside the mesh: %w", err)
	}
	for _, s := range services.Items {
		if c.opts.Next && c.opts.Revision != "" && s.Labels[tagLabel] == "" && s.Labels[revisionLabel] != "" && s.Labels[revisionLabel] != c.opts.Revision {
			continue // of the revision that this one replaces
		}
		b := otherService{namespace: s.Namespace, host: fqdn(s.Name, s.Namespace), address: s.Spec.ClusterIP}
		for _, p := range s.Spec.Ports {
			if p.Protocol != corev1.ProtocolUDP {
				b.ports = append(b.ports, otherPort{int(p.Port), kindOf(p)})
			}
		}
		c.others = append(c.others, b)
	}
	if c.hasZtunnels() {
		return c.findPodless(ctx)
	}
	return nil
}

// findPodless reads the endpoints that have no pod, each of which is a workload of its own.
func (c *ControlPlane) findPodless(ctx context.Context) error {
	slices, err := c.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the endpoints outside the mesh: %w", err)
	}
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if s.Labels[discoveryv1.LabelServiceName] != "" && (e.TargetRef == nil || e.TargetRef.Kind != "Pod") && len(e.Addresses) > 0 {
				c.podless = append(c.podless, fmt.Sprintf("%s/discovery.k8s.io/EndpointSlice/%s/%s/%s", clusterID, s.Namespace, s.Name, e.Addresses[0]))
			}
		}
	}
	return nil
}
