package diff

import (
	"regexp"
	"slices"
)

// Meaning is the consequence of a known difference for the operator.
type Meaning struct {
	Text   string `json:"text"`
	Source string `json:"source"` // release note, documentation or source text
}

// Where Istio 1.31.0 has its source text, and its release notes.
const (
	sources = "https://github.com/istio/istio/blob/1.31.0/"
	notes   = sources + "releasenotes/notes/"
)

// meanings are the differences between released versions that are known. A pattern matches all values of a difference; nil
// matches any.
var meanings = []struct {
	kinds    []string
	ops      []Op
	path     *regexp.Regexp
	from, to *regexp.Regexp
	Meaning
}{
	{
		[]string{"CDS"}, []Op{Added}, regexp.MustCompile(`^common_lb_config\.healthy_panic_threshold$`), nil, regexp.MustCompile(`^0%$`),
		Meaning{
			"Envoy never panics. Its default of 50% has it send requests to all endpoints while fewer than half of them are healthy; " +
				"now it sends them to healthy ones alone, and fails them (503, no healthy upstream) while there is none. " +
				"From 1.31 on istiod sends endpoints that are not ready, as unhealthy, and this keeps requests from them. " +
				"PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS=false switches both off.",
			"https://istio.io/latest/news/releases/1.31.x/announcing-1.31/upgrade-notes/",
		},
	},
	{
		[]string{"LDS", "ECDS"}, []Op{Renamed}, nil, regexp.MustCompile(`^"?extensions\.istio\.io/wasmplugin/`), regexp.MustCompile(`^"?extensions\.istio\.io/trafficextension/.*~istio-translated-wasmplugin"?$`),
		Meaning{
			"From 1.30 on istiod translates each WasmPlugin to the API TrafficExtension, and its filter has another name. It does what it did. " +
				"An EnvoyFilter that matches the filter by its old name does not find it any more.",
			notes + "trafficextension.yaml",
		},
	},
	{
		[]string{"LDS"}, []Op{Changed, Renamed}, nil, regexp.MustCompile(`^"?istio-ext-authz(-ns\[.*)?"?$`), regexp.MustCompile(`^"?istio-ext-authz-.+`),
		Meaning{
			"From 1.30 on the rules of a policy CUSTOM are named after its provider, since a workload can have several " +
				"(PILOT_ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS). The rules and the filter that reads their names change together: the same requests are checked.",
			notes + "58082.yaml",
		},
	},
	{
		[]string{"EDS", "CDS"}, []Op{Changed}, regexp.MustCompile(`filter_metadata\[istio\].*`), regexp.MustCompile(`^"?;;`), regexp.MustCompile(`^"?[^;"]+;[^;]+;`),
		Meaning{
			"From 1.30 on endpoints that a ServiceEntry lists, or has by the DNS name of its host, have a name and a namespace: those of the ServiceEntry, the name with " +
				"the number of a listed endpoint. Telemetry of the caller names the destination so; it was unknown. Requests go where they went. No release note has it.",
			sources + "pilot/pkg/serviceregistry/serviceentry/conversion.go",
		},
	},
	{
		[]string{"LDS"}, []Op{Changed}, regexp.MustCompile(`\.retry_policy\.retry_on$`), regexp.MustCompile(`^"reset-before-request"$`), regexp.MustCompile(`^"connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"$`),
		Meaning{
			"From 1.30 on the routes of a waypoint to its Services retry by the mesh's defaultHttpRetryPolicy, as those of sidecars do, and no longer " +
				"only requests of which nothing was sent.",
			notes + "60682.yaml",
		},
	},
}

// meaningOf returns the meaning of a difference; nil where it is not known.
func meaningOf(key groupKey, values []Value) *Meaning {
	matches := func(pattern *regexp.Regexp, text string) bool { return pattern == nil || pattern.MatchString(text) }
	for _, m := range meanings {
		if len(values) == 0 || !slices.Contains(m.kinds, key.kind) || !slices.Contains(m.ops, key.op) || !matches(m.path, key.path) {
			continue
		}
		if !slices.ContainsFunc(values, func(v Value) bool { return !matches(m.from, v.From) || !matches(m.to, v.To) }) {
			return &m.Meaning
		}
	}
	return nil
}
