package istio

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestKindsOfPorts(t *testing.T) {
	http := "http"
	for _, c := range []struct {
		name string
		app  *string
		kind listenerKind
	}{
		{"http", nil, routed}, {"HTTP-web", nil, routed}, {"http2", nil, routed}, {"grpc-xds", nil, routed},
		{"https-dns", nil, opaque}, {"tcp-1", nil, opaque}, {"tls", nil, opaque},
		{"status-port", nil, sniffed}, {"", nil, sniffed}, {"tcp", &http, routed},
	} {
		if kind := kindOf(corev1.ServicePort{Name: c.name, AppProtocol: c.app}); kind != c.kind {
			t.Errorf("port %q is %v, want %v", c.name, kind, c.kind)
		}
	}
}
