package fidelity

import (
	"regexp"

	"scaler.mesh/scaler/pkg/record"
)

// explanations state why a difference is expected, by what it is about.
var explanations = []struct {
	about *regexp.Regexp
	why   string
}{
	{regexp.MustCompile(`^node metadata (NAME|INSTANCE_IPS)$`), "they are two pods"},
	{
		regexp.MustCompile(`^node metadata (ENVOY_(PROMETHEUS|STATUS)_PORT|PROXY_CONFIG\.proxyAdminPort)$`),
		"the real one shares its host's ports with others, so it has ports of its own",
	},
	{
		regexp.MustCompile(`^node metadata (ANNOTATIONS\.status\.sidecar\.istio\.io/port|PROXY_CONFIG\.statusPort)$`),
		"the real one has no status port, which would be open to the network",
	},
	{
		regexp.MustCompile(`^node metadata (PILOT_SAN|PROXY_CONFIG\.(discoveryAddress|binaryPath|configPath|concurrency|terminationDrainDuration))$`),
		"the real one runs on this host, from a folder of its own, and finds istiod behind the proxy that listens",
	},
}

// explain states why a difference is expected; "" if it is not.
func explain(d record.Difference) string {
	for _, e := range explanations {
		if e.about.MatchString(d.About) {
			return e.why
		}
	}
	return ""
}
