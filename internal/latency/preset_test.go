package latency

import (
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

// Each preset sets its flags, and what is given in addition stays.
var _ = It("expands a preset", func() {
	t := GinkgoTB()
	for _, p := range Presets() {
		set := map[string]string{}
		err := ExpandPreset(p.Name, func(string) bool { return false }, func(flag, value string) error {
			set[flag] = value
			return nil
		})
		want := map[string]string{}
		for _, f := range p.Flags {
			want[f.Name] = f.Value
		}
		if err != nil || !maps.Equal(set, want) || p.Follows == "" {
			t.Errorf("%s: %v, %v, want %v", p.Name, set, err, want)
		}
	}
	set := map[string]string{}
	err := ExpandPreset("stages", func(flag string) bool { return flag == "repeats" }, func(flag, value string) error {
		set[flag] = value
		return nil
	})
	if err != nil || !maps.Equal(set, map[string]string{"rps": "50,450,3500"}) {
		t.Errorf("with --repeats: %v, %v", set, err)
	}
	for name, tt := range map[string]struct{ preset, given, want string }{
		"unknown":  {"ramp", "", "want stages, star, connections, chain"},
		"its own":  {"chain", "rps", "want it without --rps: it is --chain=100ms,100ms --servers=3"},
		"a closed": {"stages", "connections", "want it without --connections"},
	} {
		err := ExpandPreset(tt.preset, func(flag string) bool { return flag == tt.given }, func(string, string) error { return nil })
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
})
