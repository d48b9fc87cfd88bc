package capture

import (
	"cmp"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/mask"
)

// keepProxySettings keeps the annotations of pods by which their proxies have settings of their own. Injection gives them to the
// proxy, which reports them to the control plane. Values that look like credentials are masked.
func (g *Gatherer) keepProxySettings(of *WorkloadSpec, annotations map[string]string) {
	for _, name := range []string{proxyConfigKey, interceptionKey} {
		value := annotations[name]
		if value == "" {
			continue
		}
		if name == proxyConfigKey {
			value = g.maskedProxyConfig(value)
		}
		if of.Annotations == nil {
			of.Annotations = map[string]string{}
		}
		of.Annotations[name] = value
	}
}

// maskedProxyConfig returns the text of a ProxyConfig without credentials, as it is if it has none.
func (g *Gatherer) maskedProxyConfig(text string) string {
	hidden, count := mask.Template(text)
	if config, ok := proxyConfigOf(text); ok {
		if count = mask.Tree(config); count > 0 {
			hidden = proxyConfigText(config)
		}
	}
	if count == 0 {
		return text
	}
	g.LeaveOut("credentials", masked, count)
	return hidden
}

// proxyConfigOf parses the text of a ProxyConfig of Istio. Not ok = it is none, and injection refuses the pod.
func proxyConfigOf(text string) (of map[string]any, ok bool) {
	return of, yaml.Unmarshal([]byte(text), &of) == nil && of != nil
}

// proxyConfigText returns the text of a ProxyConfig that proxyConfigOf returned.
func proxyConfigText(of map[string]any) string {
	text, err := yaml.Marshal(of)
	if err != nil {
		panic(err) // it was parsed
	}
	return string(text)
}

// Redirected reports whether connections to and from the pods of a workload with sidecars are redirected to these. Where they are not
// (interceptionMode NONE), a proxy has no listeners for that, and no clusters of its own ports.
func (s *WorkloadSpec) Redirected() bool {
	config, _ := proxyConfigOf(s.Annotations[proxyConfigKey])
	mode, _ := config["interceptionMode"].(string)
	return cmp.Or(s.Annotations[interceptionKey], mode) != "NONE"
}

// OwnProxyConfig reports whether the proxies of a workload have a ProxyConfig of their own.
func (s *WorkloadSpec) OwnProxyConfig() bool { return s.Annotations[proxyConfigKey] != "" }
