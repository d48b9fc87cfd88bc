package latency

import (
	"fmt"
	"slices"
	"strings"
)

// Preset is a name for flags of `scaler latency` that follow a publication.
type Preset struct {
	Name    string
	Flags   []PresetFlag
	Follows string // the publication, what it measured, and the differences here
}

// PresetFlag is a flag, without dashes, and its value.
type PresetFlag struct{ Name, Value string }

// Text returns the flags as on a command line.
func (p Preset) Text() string {
	texts := make([]string, len(p.Flags))
	for i, f := range p.Flags {
		texts[i] = "--" + f.Name + "=" + f.Value
	}
	return strings.Join(texts, " ")
}

// Presets returns all presets. The publications are in the list of published figures.
func Presets() []Preset {
	return []Preset{
		{
			Name: "stages", Flags: []PresetFlag{{"rps", "50,450,3500"}, {"repeats", "5"}},
			Follows: "Shulyak and Savenko, a comparison of Istio, Linkerd and Traefik Mesh with ten instances of Emojivoto; here one client and one server",
		},
		{
			Name: "star", Flags: []PresetFlag{{"topology", StarTopology}, {"rps", "100,500,1000,2000,4000"}},
			Follows: "osm-edge, performance: one client that calls N echo servers (--servers); the rates are those of the client",
		},
		{
			Name: "connections", Flags: []PresetFlag{{"connections", "32,64,128"}, {"requests", "300000"}, {"keepalive", "false"}},
			Follows: "LiveWyer, a comparison of Istio, Linkerd and Cilium: 300000 requests, each on a connection of its own; here an echo server in place of Bookinfo",
		},
		{
			Name: "chain", Flags: []PresetFlag{{"chain", "100ms,100ms"}, {"servers", "3"}, {"rps", "300"}, {"duration", "60s"}, {"kill-server-every", "10s"}},
			Follows: "Shopify, Istio or Linkerd: 3 x 100 RPS to three clients that wait 100 ms and call three servers, which answer after 100 ms; here one load generator, and every 10 s a server is killed and starts again, while its sidecar and its endpoint stay",
		},
	}
}

// PresetNames returns the names of Presets, in their order.
func PresetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// presetOwn are the flags that a preset sets: none of them can be given in addition.
var presetOwn = []string{"rps", "connections", "chain", "topology"}

// ExpandPreset sets the flags of a preset, except those that are given in addition. Its
// error names the flag.
func ExpandPreset(name string, given func(flag string) bool, set func(flag, value string) error) error {
	at := slices.IndexFunc(Presets(), func(p Preset) bool { return p.Name == name })
	if at < 0 {
		return fmt.Errorf("parsing --preset %q: want %s", name, strings.Join(PresetNames(), ", "))
	}
	preset := Presets()[at]
	for _, flag := range presetOwn {
		if given(flag) {
			return fmt.Errorf("parsing --preset %q: want it without --%s: it is %s", name, flag, preset.Text())
		}
	}
	for _, f := range preset.Flags {
		if given(f.Name) {
			continue
		}
		if err := set(f.Name, f.Value); err != nil {
			return fmt.Errorf("parsing --preset %q: setting --%s=%s: %w", name, f.Name, f.Value, err)
		}
	}
	return nil
}
