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

// keptProxySettings returns the annotations of a pod by which its proxy has settings of its own. Injection gives them to the
// proxy, which reports them to the control plane. Values that look like credentials are masked. Fields that name what a replay does not have
// are left out, as those of the mesh configuration are, and returned.
func keptProxySettings(annotations map[string]string) (kept map[string]string, left []string) {
	kept = map[string]string{}
	text := annotations[proxyConfigKey]
	if text != "" {
		kept[proxyConfigKey], left = keptProxyConfig(text)
	}
	mode := annotations[interceptionKey]
	// With Istio's CNI plugin injection writes the mode of every pod.
	written := annotations[injectionStatus] != "" && mode == interceptionModes[0] && interceptionMode(text) == ""
	if slices.Contains(interceptionModes, mode) && !written {
		kept[interceptionKey] = mode
	}
	return kept, left
}

// keptProxyConfig returns the text of a ProxyConfig without credentials, also in comments, and without fields that name what a replay does not
// have; as it is if it has none of these.
func keptProxyConfig(text string) (kept string, left []string) {
	hidden, masked := mask.Template(text)
	config, ok := proxyConfigOf(text)
	if !ok {
		return hidden, nil
	}
	masked += mask.Tree(config)
	left = dropForeign(config)
	if _, there := config["discoveryAddress"]; there {
		delete(config, "discoveryAddress")
		left = append(left, "discoveryAddress")
	}
	if masked == 0 && left == nil {
		return text, nil
	}
	return proxyConfigText(config), left
}

// asksForNames reports whether the agents of a workload answer DNS queries by settings of its own.
func (s *WorkloadSpec) asksForNames() bool {
	config, _ := proxyConfigOf(s.Annotations[proxyConfigKey])
	metadata, _ := config["proxyMetadata"].(map[string]any)
	return metadata[DNSCapture] == "true"
}

// maskedIn returns how many credentials are masked in what a workload's proxies have of their own.
func (s *WorkloadSpec) maskedIn() int {
	return strings.Count(s.Annotations[proxyConfigKey], mask.Masked)
}

// proxyConfigOf parses the text of a ProxyConfig of Istio. Not ok = it is none, and injection refuses the pod.
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

// Redirected reports whether connections to and from the pods of a workload with sidecars are redirected to these, by its own settings.
// Where they are not, a proxy has no listeners for that, and no clusters of its own ports.
func (s *WorkloadSpec) Redirected() bool {
	if mode := s.Annotations[interceptionKey]; mode != "" {
		return mode != notRedirected
	}
	return s.Annotations[proxyConfigKey] == "" || interceptionMode(s.Annotations[proxyConfigKey]) != notRedirected
}

// OwnProxyConfig reports whether the proxies of a workload have a ProxyConfig of their own.
func (s *WorkloadSpec) OwnProxyConfig() bool { return s.Annotations[proxyConfigKey] != "" }
