package istio

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/pkg/proxy"
)

const (
	proxyContainer = "istio-proxy" // that istiod's webhook injects
	metaPrefix     = "ISTIO_META_"
	metaJSONPrefix = "ISTIO_METAJSON_"
)

// Spec returns the proxy of an injected pod that has its IP: what pilot-agent in
// that pod would say of itself, read from the injected container. It fails for
// a pod that was not injected or has no IP yet.
//
// The metadata follows GetNodeMetaData of Istio's pkg/bootstrap/config.go.
func (c *ControlPlane) Spec(pod *corev1.Pod) (proxy.Spec, error) {
	id := pod.Namespace + "/" + pod.Name
	if pod.Status.PodIP == "" {
		return proxy.Spec{}, fmt.Errorf("pod %s has no IP yet", id)
	}
	if c.hasZtunnels() && isZtunnel(pod) {
		return ambient{c}.spec(pod), nil
	}
	container, err := injected(pod)
	if err != nil {
		return proxy.Spec{}, err
	}
	build, err := proxyBuild()
	if err != nil {
		return proxy.Spec{}, err
	}
	env := controlplane.EnvironmentOf(pod, container)
	metadata, err := nodeMetadata(c.proxyVersion(), c.serverName(), pod, container, env)
	if err != nil {
		return proxy.Spec{}, fmt.Errorf("reading the node metadata of pod %s: %w", id, err)
	}
	return proxy.Spec{
		ID:          id,
		Address:     c.reached.address,
		ServerName:  c.serverName(),
		RootPEM:     c.root,
		NodeID:      fmt.Sprintf("%s~%s~%s.%s~%s.svc.%s", kindOfProxy(container), pod.Status.PodIP, pod.Name, pod.Namespace, pod.Namespace, trustDomain),
		NodeCluster: serviceCluster(pod) + "." + pod.Namespace,
		Metadata:    metadata,
		Build:       build,
		Headers:     map[string]string{"ClusterID": env[metaPrefix+"CLUSTER_ID"]},
		Keepalive:   30 * time.Second, // GRPC_KEEPALIVE_INTERVAL's default in the agent
		Drain:       drainOf(metadata),
		Token:       authority.TokenRequest(pod, tokenAudience),
		Identity:    fmt.Sprintf("spiffe://%s/ns/%s/sa/%s", trustDomain, pod.Namespace, pod.Spec.ServiceAccountName),
	}, nil
}

// kindOfProxy returns the type of a proxy: the argument that its agent was started with.
func kindOfProxy(container *corev1.Container) string {
	for _, kind := range []string{"router", "waypoint"} {
		if slices.Contains(container.Args, kind) {
			return kind
		}
	}
	return "sidecar"
}

// serviceCluster returns the first part of node.cluster; that of a waypoint is its account, as its
// template has it.
func serviceCluster(pod *corev1.Pod) string {
	if pod.Labels[capture.GatewayName] != "" {
		return pod.Spec.ServiceAccountName
	}
	return pod.Labels["app"]
}

// nodeMetadata is node.metadata of the first request.
func nodeMetadata(version, serverName string, pod *corev1.Pod, container *corev1.Container, env map[string]string) (map[string]any, error) {
	metadata := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := env[name]
		if key, ok := strings.CutPrefix(name, metaPrefix); ok {
			metadata[key] = value
		} else if strings.HasPrefix(name, metaJSONPrefix) {
			if err := json.Unmarshal([]byte(value), &metadata); err != nil {
				return nil, fmt.Errorf("parsing %s %q: %w", name, value, err)
			}
		}
	}
	labels := map[string]any{}
	for k, v := range pod.Labels {
		if k != "pod-template-hash" { // the agent leaves it out
			labels[k] = v
		}
	}
	annotations := map[string]any{}
	for k, v := range pod.Annotations {
		annotations[k] = v
	}
	if ports, ok := metadata["POD_PORTS"].(string); ok {
		var compact bytes.Buffer
		if json.Compact(&compact, []byte(ports)) == nil { // the agent reads and writes it
			metadata["POD_PORTS"] = compact.String()
		}
	}
	proxyConfig, err := effectiveConfig(container, env["PROXY_CONFIG"])
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]any{
		"NAME":                  pod.Name,
		"NAMESPACE":             pod.Namespace,
		"SERVICE_ACCOUNT":       pod.Spec.ServiceAccountName,
		"INSTANCE_IPS":          pod.Status.PodIP,
		"ISTIO_VERSION":         version,
		"LABELS":                labels,
		"ANNOTATIONS":           annotations,
		"PROXY_CONFIG":          proxyConfig,
		"NODE_NAME":             pod.Spec.NodeName,
		"PILOT_SAN":             []any{serverName},
		"ENVOY_STATUS_PORT":     float64(15021),
		"ENVOY_PROMETHEUS_PORT": float64(15090),
		// What the agent says of itself in any pod, by default.
		"ENVOY_SKIP_DEPRECATED_LOGS":    "true",
		"WORKLOAD_IDENTITY_SOCKET_FILE": "socket",
	} {
		metadata[k] = v
	}
	metadata["METADATA_DISCOVERY"] = "false"
	if metadata["ENABLE_HBONE"] == "true" { // unless PEER_METADATA_DISCOVERY says otherwise
		metadata["METADATA_DISCOVERY"] = "true"
	}
	return metadata, nil
}

// effectiveConfig returns the proxy's configuration as the agent reports it: its
// defaults (DefaultProxyConfig in Istio's pkg/config/mesh), what injection gave
// the container over them, and as many threads as the container's processor
// limit allows.
func effectiveConfig(container *corev1.Container, given string) (map[string]any, error) {
	config := map[string]any{
		"binaryPath":               "/usr/local/bin/envoy",
		"configPath":               "./etc/istio/proxy",
		"controlPlaneAuthPolicy":   "MUTUAL_TLS",
		"discoveryAddress":         serverName + ":15012",
		"drainDuration":            "45s",
		"proxyAdminPort":           float64(15000),
		"serviceCluster":           "istio-proxy",
		"statNameLength":           float64(189),
		"statusPort":               float64(15020),
		"terminationDrainDuration": "5s",
	}
	if limit, ok := container.Resources.Limits[corev1.ResourceCPU]; ok {
		config["concurrency"] = float64(limit.Value()) // whole ones, rounded up
	}
	if given != "" {
		if err := json.Unmarshal([]byte(given), &config); err != nil {
			return nil, fmt.Errorf("parsing PROXY_CONFIG %q: %w", given, err)
		}
	}
	return config, nil
}

// drainOf returns the effective drainDuration of a proxy's metadata, the agent's
// default where that is no duration.
func drainOf(metadata map[string]any) time.Duration {
	config, _ := metadata["PROXY_CONFIG"].(map[string]any)
	text, _ := config["drainDuration"].(string)
	drain, err := time.ParseDuration(text)
	if err != nil {
		return 45 * time.Second
	}
	return drain
}

// envoyNode is the part of Envoy's node, in its first request, that does not depend on the
// workload: of version 1.40.0, as Istio's agent sends it.
// hack/update-proxy.sh writes it.
//
//go:embed proxy/envoy.json
var envoyNode []byte

// proxyBuild is envoyNode encoded, once for all sidecars.
var proxyBuild = sync.OnceValues(func() ([]byte, error) {
	var node corev3.Node
	if err := protojson.Unmarshal(envoyNode, &node); err != nil {
		return nil, fmt.Errorf("reading what an Envoy says of itself: %w", err)
	}
	return proto.Marshal(&node)
})

// injected returns the container that injection put into a pod.
func injected(pod *corev1.Pod) (*corev1.Container, error) {
	if container := controlplane.Injected(pod, proxyContainer); container != nil {
		return container, nil
	}
	return nil, fmt.Errorf("pod %s/%s has no container %s: injection did not happen; see istiod's log", pod.Namespace, pod.Name, proxyContainer)
}
