package reference

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/pkg/proxy"
)

// Files of an Envoy, in its folder.
const (
	bootstrapFile = "bootstrap.json"
	keyFile       = "key.pem"
	chainFile     = "chain.pem"
	rootsFile     = "roots.pem"

	adsCluster = "ads"
)

// PodProxy returns an Envoy without an agent: the bootstrap states what an agent would,
// and its certificate comes from files.
func (c *ControlPlane) PodProxy(pod *corev1.Pod, at controlplane.ProxyPlace) (controlplane.RealProxy, error) {
	identity, err := c.Spec(pod)
	if err != nil {
		return controlplane.RealProxy{}, err
	}
	return c.envoy(identity, at)
}

// HostProxy returns the same for a workload of this host.
func (c *ControlPlane) HostProxy(w controlplane.HostWorkload, at controlplane.ProxyPlace) (controlplane.RealProxy, error) {
	id := w.Namespace + "/" + w.Name
	return c.envoy(proxy.Spec{
		ID: id, NodeID: id, NodeCluster: server.HostWorkload(w.Namespace, w.Name),
		Address: address(c.ports.secure), ServerName: server.ServerName, RootPEM: c.root,
		Identity: server.SPIFFE(w.Namespace, w.Account), Keepalive: keepalive,
	}, at)
}

func (c *ControlPlane) envoy(identity proxy.Spec, at controlplane.ProxyPlace) (controlplane.RealProxy, error) {
	if at.Discovery != "" {
		identity.Address = at.Discovery
	}
	bootstrap, err := bootstrapOf(identity, at.Ports)
	if err != nil {
		return controlplane.RealProxy{}, fmt.Errorf("writing the bootstrap of %s: %w", identity.ID, err)
	}
	return controlplane.RealProxy{
		Args: []string{
			"--config-path", bootstrapFile, "--concurrency", strconv.Itoa(max(1, at.Concurrency)),
			"--disable-hot-restart", "--log-level", "warning",
		},
		Env:     []string{"PATH=/usr/bin:/bin"},
		Files:   map[string][]byte{bootstrapFile: bootstrap, rootsFile: c.root},
		Cluster: adsCluster,
		KeyFile: keyFile, ChainFile: chainFile,
		Sidecar: identity,
	}, nil
}

// HostToken requests a token of the workload's service account.
func (c *ControlPlane) HostToken(ctx context.Context, w controlplane.HostWorkload) (proxy.Token, error) {
	return authority.Token(ctx, c.client, proxy.TokenRequest{Namespace: w.Namespace, ServiceAccount: w.Account, Audience: server.Audience})
}

// bootstrapOf returns the bootstrap of an Envoy that gets everything over ADS, with
// TLS, but its certificate.
func bootstrapOf(s proxy.Spec, ports controlplane.ProxyPorts) ([]byte, error) {
	type object = map[string]any
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	socket := func(host string, port int) object {
		return object{"socket_address": object{"address": host, "port_value": port}}
	}
	ads := object{"ads": object{}, "resource_api_version": "V3"}
	const tlsType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
	const httpType = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	return json.Marshal(object{
		"node":  object{"id": s.NodeID, "cluster": s.NodeCluster},
		"admin": object{"address": socket("127.0.0.1", ports.Admin)},
		"dynamic_resources": object{
			"cds_config": ads, "lds_config": ads,
			"ads_config": object{
				"api_type": "DELTA_GRPC", "transport_api_version": "V3",
				"grpc_services": []any{object{"envoy_grpc": object{"cluster_name": adsCluster}}},
			},
		},
		"static_resources": object{
			"clusters": []any{object{
				"name": adsCluster, "type": "STATIC", "connect_timeout": "5s",
				"typed_extension_protocol_options": object{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": object{
					"@type": httpType, "explicit_http_config": object{"http2_protocol_options": object{}},
				}},
				"load_assignment": object{"cluster_name": adsCluster, "endpoints": []any{object{
					"lb_endpoints": []any{object{"endpoint": object{"address": socket(host, number)}}},
				}}},
				"transport_socket": object{"name": "envoy.transport_sockets.tls", "typed_config": object{
					"@type": tlsType, "sni": s.ServerName,
					"common_tls_context": object{"validation_context": object{
						"trusted_ca": object{"filename": rootsFile},
						"match_typed_subject_alt_names": []any{object{
							"san_type": "DNS", "matcher": object{"exact": s.ServerName},
						}},
					}},
				}},
			}},
			"secrets": []any{
				object{"name": server.CertificateSecret, "tls_certificate": object{
					"certificate_chain": object{"filename": chainFile}, "private_key": object{"filename": keyFile},
				}},
				object{"name": server.RootsSecret, "validation_context": object{"trusted_ca": object{"filename": rootsFile}}},
			},
		},
	})
}
