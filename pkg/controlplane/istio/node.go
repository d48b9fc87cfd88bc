package istio

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/pkg/controlplane"
)

const (
	proxyContainer = "istio-proxy"
	metaPrefix     = "ISTIO_META_"
	metaJSONPrefix = "ISTIO_METAJSON_"
)

// Sidecar is the proxy of an injected pod that has its IP: what pilot-agent in
// that pod would say of itself, read from the injected container. It fails for
// a pod that was not injected or has no IP yet.
//
// The metadata follows GetNodeMetaData of Istio's pkg/bootstrap/config.go.
func (c *ControlPlane) Sidecar(pod *corev1.Pod) (controlplane.Sidecar, error) {
	id := pod.Namespace + "/" + pod.Name
	if pod.Status.PodIP == "" {
		return controlplane.Sidecar{}, fmt.Errorf("pod %s has no IP yet", id)
	}
	env, err := proxyEnv(pod)
	if err != nil {
		return controlplane.Sidecar{}, err
	}
	metadata, err := nodeMetadata(pod, env)
	if err != nil {
		return controlplane.Sidecar{}, fmt.Errorf("reading the node metadata of pod %s: %w", id, err)
	}
	return controlplane.Sidecar{
		ID:          id,
		Address:     net.JoinHostPort("127.0.0.1", strconv.Itoa(c.ports.secure)),
		ServerName:  serverName,
		RootPEM:     c.root,
		NodeID:      fmt.Sprintf("sidecar~%s~%s.%s~%s.svc.%s", pod.Status.PodIP, pod.Name, pod.Namespace, pod.Namespace, trustDomain),
		NodeCluster: pod.Labels["app"] + "." + pod.Namespace,
		Metadata:    metadata,
		Headers:     map[string]string{"ClusterID": env[metaPrefix+"CLUSTER_ID"]},
		Keepalive:   30 * time.Second, // GRPC_KEEPALIVE_INTERVAL's default in the agent
		Identity:    fmt.Sprintf("spiffe://%s/ns/%s/sa/%s", trustDomain, pod.Namespace, pod.Spec.ServiceAccountName),
	}, nil
}

// nodeMetadata is node.metadata of the first request.
func nodeMetadata(pod *corev1.Pod, env map[string]string) (map[string]any, error) {
	metadata := map[string]any{}
	for _, name := range sortedKeys(env) {
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
	proxyConfig := map[string]any{}
	if value := env["PROXY_CONFIG"]; value != "" {
		if err := json.Unmarshal([]byte(value), &proxyConfig); err != nil {
			return nil, fmt.Errorf("parsing PROXY_CONFIG %q: %w", value, err)
		}
	}
	for k, v := range map[string]any{
		"NAME":                  pod.Name,
		"NAMESPACE":             pod.Namespace,
		"SERVICE_ACCOUNT":       pod.Spec.ServiceAccountName,
		"INSTANCE_IPS":          pod.Status.PodIP,
		"ISTIO_VERSION":         Version,
		"LABELS":                labels,
		"ANNOTATIONS":           annotations,
		"PROXY_CONFIG":          proxyConfig,
		"NODE_NAME":             pod.Spec.NodeName,
		"PILOT_SAN":             []any{serverName},
		"ENVOY_STATUS_PORT":     float64(15021),
		"ENVOY_PROMETHEUS_PORT": float64(15090),
	} {
		metadata[k] = v
	}
	return metadata, nil
}

// proxyEnv is the environment of the injected container as the kubelet would
// resolve it. Native sidecars are injected as init containers.
func proxyEnv(pod *corev1.Pod) (map[string]string, error) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, container := range containers {
			if container.Name != proxyContainer {
				continue
			}
			env := map[string]string{}
			for _, e := range container.Env {
				env[e.Name] = e.Value
				if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
					env[e.Name] = field(pod, e.ValueFrom.FieldRef.FieldPath)
				}
			}
			return env, nil
		}
	}
	return nil, fmt.Errorf("pod %s/%s has no container %s: injection did not happen; see istiod's log", pod.Namespace, pod.Name, proxyContainer)
}

// field resolves the downward API's paths that Istio's injection template uses.
func field(pod *corev1.Pod, path string) string {
	switch path {
	case "metadata.name":
		return pod.Name
	case "metadata.namespace":
		return pod.Namespace
	case "spec.nodeName":
		return pod.Spec.NodeName
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName
	case "status.podIP":
		return pod.Status.PodIP
	case "status.hostIP":
		return pod.Status.HostIP
	default:
		return ""
	}
}
