package diff

import "strings"

// Meaning is what a difference that is known means to the operator.
type Meaning struct {
	Text   string `json:"text"`
	Source string `json:"source"` // release note or documentation
}

// meanings are the differences between released versions that are known.
var meanings = []struct {
	kind, path string
	op         Op
	to         string // "" = any value
	Meaning
}{
	{
		"CDS", "common_lb_config.healthy_panic_threshold", Added, "0%",
		Meaning{
			"Envoy never panics. Its default of 50% has it send requests to all endpoints while fewer than half of them are healthy; " +
				"now it sends them to healthy ones alone, and fails them (503, no healthy upstream) while there is none. " +
				"From 1.31 on istiod sends endpoints that are not ready, as unhealthy, and this keeps requests from them. " +
				"PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS=false switches both off.",
			"https://istio.io/latest/news/releases/1.31.x/announcing-1.31/upgrade-notes/",
		},
	},
}

// meaningOf is what a difference means; nil where that is not known.
func meaningOf(key groupKey, values []Value) *Meaning {
	for _, m := range meanings {
		if m.kind == key.kind && m.path == key.path && m.op == key.op && len(values) == 1 && (m.to == "" || strings.EqualFold(m.to, values[0].To)) {
			return &m.Meaning
		}
	}
	return nil
}
