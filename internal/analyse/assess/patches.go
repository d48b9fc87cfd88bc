package assess

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"scaler.mesh/scaler/internal/analyse/diff"
	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/output"
)

// Patch is the part of an EnvoyFilter's patch that can be found in the resources of proxies.
type Patch struct {
	Object string `json:"object"` // as in "EnvoyFilter shop/header"
	Number int    `json:"number"` // of the patch, from 1
	// Name is the name of what the patch adds, such as a filter; "" = it has none.
	Name string `json:"name,omitempty"`
	// Fields are the values that it sets, by their paths in Envoy's messages, of a patch without a name.
	Fields map[string]string `json:"fields,omitempty"`
}

// String names the patch.
func (p Patch) String() string { return fmt.Sprintf("%s (patch %d)", p.Object, p.Number) }

// patchesOf returns the patches of all EnvoyFilters of a mesh, except those that remove something: they leave nothing to find.
func patchesOf(m *capture.Mesh) (all []Patch) {
	for _, o := range m.Objects {
		if o.GetKind() != "EnvoyFilter" {
			continue
		}
		spec, _ := o.Object["spec"].(map[string]any)
		list, _ := spec["configPatches"].([]any)
		for i, one := range list {
			outer, _ := one.(map[string]any)
			patch, _ := outer["patch"].(map[string]any)
			value, _ := patch["value"].(map[string]any)
			if value == nil {
				continue
			}
			p := Patch{Object: capture.Identity(o.GetKind(), o.GetNamespace(), o.GetName()), Number: i + 1}
			if p.Name, _ = value["name"].(string); p.Name == "" || patch["operation"] == "MERGE" {
				p.Name, p.Fields = "", map[string]string{}
				leaves("", value, p.Fields)
			}
			if p.Name != "" || len(p.Fields) > 0 {
				all = append(all, p)
			}
		}
	}
	return all
}

// leaves enters the values of a message in JSON by their paths. Lists are left out: which element is meant is not known.
func leaves(path string, value map[string]any, into map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if strings.HasPrefix(name, "@") || name == "name" {
			continue
		}
		at := strings.TrimPrefix(path+"."+snake(name), ".")
		switch v := value[name].(type) {
		case map[string]any:
			leaves(at, v, into)
		case []any:
		default:
			text, err := json.Marshal(v)
			if err == nil {
				into[at] = strings.Trim(string(text), `"`)
			}
		}
	}
}

// snake returns the name of a field of a message that JSON may write in camel case.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// lostIn reports whether a difference is that what the patch puts in is gone.
func (p Patch) lostIn(g diff.Group) bool {
	if g.Op != diff.Removed && g.Op != diff.Changed {
		return false
	}
	if p.Name != "" {
		return g.Op == diff.Removed && (strings.HasSuffix(g.Path, "["+p.Name+"]") || g.Path == "" && slices.Contains(g.Resources, p.Name))
	}
	for path, value := range p.Fields {
		if g.Path != path && !strings.HasSuffix(g.Path, "."+path) {
			continue
		}
		if slices.ContainsFunc(g.Values, func(v diff.Value) bool { return strings.Trim(v.From, `"`) == value }) {
			return true
		}
	}
	return false
}

// patches checks that what EnvoyFilters put into proxies is there with the new version, too.
func (f Facts) patches() Check {
	c := Check{Name: "EnvoyFilters"}
	switch {
	case len(f.Captured.Patches) == 0:
		c.Outcome, c.Text = Holds, "the mesh has no patch of one that adds or sets something"
		return c
	case f.Diff == nil:
		c.Outcome, c.Text = NotChecked, "a version did not come so far"
		return c
	}
	var lost []string
	for _, p := range f.Captured.Patches {
		var most diff.Group
		for _, g := range f.Diff.Groups {
			if p.lostIn(g) && g.Sidecars > most.Sidecars {
				most = g
			}
		}
		if most.Sidecars > 0 {
			lost = append(lost, fmt.Sprintf("%s on %d of %d %s%s", p, most.Sidecars, most.OfSidecars, f.Diff.Proxies(), f.movedIn(most)))
		}
	}
	if lost != nil {
		c.Outcome, c.Text = Broken, "the new version does not apply "+output.FirstOf(lost, 3)
		return c
	}
	c.Outcome, c.Text = Holds, fmt.Sprintf("everything that their patches add or set exists (%d checked)", len(f.Captured.Patches))
	return c
}
