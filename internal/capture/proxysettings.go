package capture

import (
	"cmp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/mask"
)

// notRedirected is the interception mode of a proxy to which no connections are redirected.
const notRedirected = "NONE"

// interceptionModes are those that injection accepts; the first is the default.
var interceptionModes = []string{"REDIRECT", "TPROXY", notRedirected}

// keptProxySettings returns the annotations with which a pod configures its own proxy, as they are in a mesh. Injection applies them to the
// proxy, which reports them to the control plane. Values that look like credentials are masked. Fields of the ProxyConfig whose values refer
// to the captured cluster are left out; their paths are returned.
func keptProxySettings(annotations map[string]string) (kept map[string]string, leftOut []string) {
	kept = map[string]string{}
	text := annotations[proxyConfigKey]
	if text != "" {
		kept[proxyConfigKey], leftOut = keptProxyConfig(text)
	}
	mode := annotations[interceptionKey]
	// With Istio's CNI plugin injection writes the mode of every pod.
	written := annotations[injectionStatus] != "" && mode == interceptionModes[0] && interceptionMode(text) == ""
	if slices.Contains(interceptionModes, mode) && !written {
		kept[interceptionKey] = mode
	}
	return kept, leftOut
}

// keptProxyConfig returns the text of a ProxyConfig without credentials, also in comments, and without fields whose values refer to the
// captured cluster. A text that has none of these is returned unchanged.
func keptProxyConfig(text string) (kept string, leftOut []string) {
	hidden, credentials := mask.Template(text)
	config, ok := proxyConfigOf(text)
	if !ok {
		return hidden, nil
	}
	credentials += mask.Tree(config)
	if leftOut = dropForeign(config); credentials == 0 && leftOut == nil {
		return text, nil
	}
	return proxyConfigText(config), leftOut
}

// maskedCredentials returns how many credentials are masked in the settings of a workload's own proxies.
func (s *WorkloadSpec) maskedCredentials() int {
	return strings.Count(s.Annotations[proxyConfigKey], mask.Masked)
}

// proxyConfigOf parses the text of a ProxyConfig of Istio. Not ok = it is empty or invalid. Injection refuses a pod with an invalid one.
func proxyConfigOf(text string) (of map[string]any, ok bool) {
	return of, yaml.Unmarshal([]byte(text), &of) == nil && of != nil
}

// proxyConfigText returns the text of a ProxyConfig that proxyConfigOf returned.
func proxyConfigText(of map[string]any) string {
	text, err := yaml.Marshal(of)
	if err != nil {
		return mask.Masked // which does not happen to what was parsed
	}
	return string(text)
}

// interceptionMode returns the mode that the text of a ProxyConfig states; "" = none.
func interceptionMode(text string) string {
	config, _ := proxyConfigOf(text)
	mode, _ := config["interceptionMode"].(string)
	other, _ := config["interception_mode"].(string) // which injection reads, too
	return cmp.Or(mode, other)
}

// Redirected reports whether, by the settings of the workload, connections to and from its pods are redirected to their sidecars.
// A sidecar without redirection has no listeners for redirected connections, and no clusters of the ports of its pod.
func (s *WorkloadSpec) Redirected() bool {
	if mode := s.Annotations[interceptionKey]; mode != "" {
		return mode != notRedirected
	}
	return s.Annotations[proxyConfigKey] == "" || interceptionMode(s.Annotations[proxyConfigKey]) != notRedirected
}

// OwnProxyConfig reports whether the proxies of a workload have a ProxyConfig of their own.
func (s *WorkloadSpec) OwnProxyConfig() bool { return s.Annotations[proxyConfigKey] != "" }
