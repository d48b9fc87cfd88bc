package istio

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/pkg/proxy"
)

// Files of an agent, below its working folder as they are below / in a pod.
const (
	tokenFile     = "var/run/secrets/tokens/istio-token"
	rootFile      = "var/run/secrets/istio/root-cert.pem"
	templateFile  = "var/lib/istio/envoy/envoy_bootstrap_tmpl.json"
	labelsFile    = "etc/istio/pod/labels"
	annotationsAt = "etc/istio/pod/annotations"
	configFolder  = "etc/istio/proxy"
)

// drainTime is the time for which a stopping agent waits; the default is 5 s.
const drainTime = "0.5s"

// statusPortAnnotation sets the port on which an agent serves the kubelet's probes and metrics, on all
// addresses of its pod, which here are those of this machine. Nothing uses it; 0 = no such port.
const statusPortAnnotation = "status.sidecar.istio.io/port"

// localBootstrap returns a template with the listeners for metrics and readiness on loopback.
// In a pod they are on all addresses, which here are the machine's.
func localBootstrap(template []byte) []byte {
	text := strings.ReplaceAll(string(template), `"address": "{{ .wildcard }}"`, `"address": "{{ .localhost }}"`)
	return []byte(strings.ReplaceAll(text, `"address": "{{ .additional_wildcard }}"`, `"address": "{{ .additional_localhost }}"`))
}

// tokenAudience is the audience of the tokens that istiod accepts.
const tokenAudience = "istio-ca"

// realProxies configures real proxies of the mesh.
type realProxies struct{ *ControlPlane }

// PodProxy returns the agent of an injected pod, with the environment of the injected
// container but for what a host must have otherwise: ports and addresses.
func (c realProxies) PodProxy(pod *corev1.Pod, at controlplane.ProxyPlace) (controlplane.RealProxy, error) {
	identity, err := c.Spec(pod)
	if err != nil {
		return controlplane.RealProxy{}, err
	}
	container, err := injected(pod)
	if err != nil {
		return controlplane.RealProxy{}, err
	}
	env := controlplane.EnvironmentOf(pod, container)
	// The agent makes these of the injected container's arguments and files.
	return c.agent(identity, pod.Namespace, env, pod.Annotations, map[string][]byte{labelsFile: downward(pod.Labels)}, at)
}

// HostProxy returns the agent of a workload of this host. It intercepts nothing: its
// listeners are those of the workload's Sidecar.
func (c realProxies) HostProxy(w controlplane.HostWorkload, at controlplane.ProxyPlace) (controlplane.RealProxy, error) {
	labels, err := json.Marshal(hostLabels(w))
	if err != nil {
		return controlplane.RealProxy{}, fmt.Errorf("writing the labels of workload %s/%s: %w", w.Namespace, w.Name, err)
	}
	env := map[string]string{
		"POD_NAME":                       w.Name,
		"POD_NAMESPACE":                  w.Namespace,
		"SERVICE_ACCOUNT":                w.Account,
		"INSTANCE_IP":                    w.Address,
		"HOST_IP":                        "127.0.0.1",
		"TRUST_DOMAIN":                   trustDomain,
		"PILOT_CERT_PROVIDER":            "istiod",
		metaPrefix + "CLUSTER_ID":        clusterID,
		metaPrefix + "MESH_ID":           trustDomain,
		metaPrefix + "WORKLOAD_NAME":     w.Name,
		metaPrefix + "INTERCEPTION_MODE": "NONE",
		metaJSONPrefix + "LABELS":        string(labels),
	}
	identity := proxy.Spec{
		ID:       w.Namespace + "/" + w.Name,
		NodeID:   fmt.Sprintf("sidecar~%s~%s.%s~%s.svc.%s", w.Address, w.Name, w.Namespace, w.Namespace, trustDomain),
		Identity: fmt.Sprintf("spiffe://%s/ns/%s/sa/%s", trustDomain, w.Namespace, w.Account),
	}
	return c.agent(identity, w.Namespace, env, nil, map[string][]byte{}, at)
}

// agent is pilot-agent for a proxy, with these annotations of its pod and without a
// status port.
func (c realProxies) agent(identity proxy.Spec, namespace string, env, annotations map[string]string, files map[string][]byte, at controlplane.ProxyPlace) (controlplane.RealProxy, error) {
	// The agent's certificate client verifies the name that it dials.
	discovery := net.JoinHostPort(customHost, strconv.Itoa(c.reached.secure))
	if at.Discovery != "" {
		discovery = at.Discovery
	}
	proxyConfig := map[string]any{}
	if text := env["PROXY_CONFIG"]; text != "" {
		if err := json.Unmarshal([]byte(text), &proxyConfig); err != nil {
			return controlplane.RealProxy{}, fmt.Errorf("parsing PROXY_CONFIG %q: %w", text, err)
		}
	}
	maps.Copy(proxyConfig, map[string]any{
		"discoveryAddress":         discovery,
		"binaryPath":               at.Envoy,
		"configPath":               configFolder,
		"proxyAdminPort":           at.Ports.Admin,
		"terminationDrainDuration": drainTime,
	})
	if at.Concurrency > 0 {
		proxyConfig["concurrency"] = at.Concurrency
	}
	text, err := json.Marshal(proxyConfig)
	if err != nil {
		return controlplane.RealProxy{}, fmt.Errorf("writing PROXY_CONFIG: %w", err)
	}
	env = maps.Clone(env)
	maps.Copy(env, map[string]string{
		"PROXY_CONFIG":          string(text),
		"CA_ADDR":               discovery,
		"ISTIOD_SAN":            c.serverName(),
		"ENVOY_PROMETHEUS_PORT": strconv.Itoa(at.Ports.Metrics),
		"ENVOY_STATUS_PORT":     strconv.Itoa(at.Ports.Ready),
		// What it stands in a pod for are other programs' probes, on fixed ports.
		"ISTIO_KUBE_APP_PROBERS": "",
		"PATH":                   "/usr/bin:/bin",
	})
	// With DNS capture each agent listens for DNS queries, by default on the same port. Agents share this machine's ports, so each gets a
	// free one.
	metadata, _ := proxyConfig["proxyMetadata"].(map[string]any)
	if env[capture.DNSCapture] != "" || metadata[capture.DNSCapture] != nil {
		env["DNS_PROXY_ADDR"] = "127.0.0.1:0"
	}
	if at.CertificateLifetime > 0 {
		env["SECRET_TTL"] = at.CertificateLifetime.String()
	}
	proxy := controlplane.RealProxy{
		Agent:   true,
		Cluster: "xds-grpc", Certificate: "default",
		Args:      []string{"proxy", "sidecar", "--domain", namespace + ".svc." + trustDomain, "--proxyLogLevel=warning", "--proxyComponentLogLevel=misc:error", "--log_output_level=default:info"},
		Files:     files,
		TokenFile: tokenFile,
		Sidecar:   identity,
	}
	own := map[string]string{}
	maps.Copy(own, annotations)
	own[statusPortAnnotation] = "0"
	files[annotationsAt] = downward(own)
	files[rootFile], files[templateFile] = c.root, localBootstrap(c.bootstrap)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		proxy.Env = append(proxy.Env, name+"="+env[name])
	}
	return proxy, nil
}

// downward writes labels or annotations as the kubelet does for the downward
// API: one NAME="VALUE" a line, the value quoted as Go does.
func downward(all map[string]string) []byte {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s=%s\n", name, strconv.Quote(all[name]))
	}
	return []byte(b.String())
}

// Token requests a token for a pod, of the audience of Istio's certificate authority.
func (c realProxies) Token(ctx context.Context, pod *corev1.Pod) (proxy.Token, error) {
	return authority.Token(ctx, c.client, authority.TokenRequest(pod, tokenAudience))
}

// HostToken requests a token of the workload's service account. It is bound to
// no pod: there is none.
func (c realProxies) HostToken(ctx context.Context, w controlplane.HostWorkload) (proxy.Token, error) {
	return authority.Token(ctx, c.client, proxy.TokenRequest{Namespace: w.Namespace, ServiceAccount: w.Account, Audience: tokenAudience})
}
