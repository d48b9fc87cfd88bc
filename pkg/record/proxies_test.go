package record

import "testing"

func TestSentenceOfProxies(t *testing.T) {
	w := Warning{Reason: ReasonRejected, Values: map[string]float64{"responses": 3}}
	for name, c := range map[string]struct {
		proxies *Proxies
		want    string
	}{
		"sidecars": {nil, "sidecars rejected 3 responses"},
		"nodes":    {&Proxies{Name: "ztunnel", Nodes: 2}, "ztunnels rejected 3 responses"},
		"both":     {&Proxies{Name: "ztunnel", Nodes: 2, Sidecars: new(5)}, "sidecars rejected 3 responses"},
	} {
		if got := (&Run{Proxies: c.proxies}).Sentence(w); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
