package assess

import (
	"fmt"
	"maps"
	"slices"

	"scaler.mesh/scaler/internal/output"
)

// Environment states which of the variables that are set for the control plane the new version still reads. The programs of both
// versions list the variables that they read.
type Environment struct {
	Kept     []string   `json:"kept,omitempty"`     // that the new version lists
	Removed  []Variable `json:"removed,omitempty"`  // that the old one lists alone
	Unlisted []string   `json:"unlisted,omitempty"` // that neither does
	// Unknown states why the programs did not list their variables; "" = they did.
	Unknown string `json:"unknown,omitempty"`
}

// Variable is one that is set.
type Variable struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"` // "" = it is not known
	Default string `json:"default"`         // of the old version
}

// CompareEnvironment sorts the variables that are set by which version reads them. from and onto are the variables that the old
// and the new version list, with their defaults.
func CompareEnvironment(set, from, onto map[string]string) *Environment {
	e := new(Environment)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		standard, before := from[name]
		_, now := onto[name]
		switch {
		case now:
			e.Kept = append(e.Kept, name)
		case before:
			e.Removed = append(e.Removed, Variable{Name: name, Value: set[name], Default: standard})
		default:
			e.Unlisted = append(e.Unlisted, name)
		}
	}
	return e
}

// environment checks that the new version has the variables that are set.
func (f Facts) environment() Check {
	c := Check{Name: "settings", Outcome: Holds}
	e := f.Environment
	if e == nil {
		c.Outcome, c.Text = NotChecked, "the variables that the versions read were not asked for"
		return c
	}
	if e.Unknown != "" {
		c.Outcome, c.Text = NotChecked, e.Unknown
		return c
	}
	var gone, without []string
	for _, v := range e.Removed {
		if v.Value == v.Default {
			without = append(without, v.Name)
			continue
		}
		text := v.Name
		if v.Value != "" {
			text += "=" + v.Value
		}
		if v.Default != "" {
			text += " (default " + v.Default + ")"
		}
		gone = append(gone, text)
	}
	switch {
	case gone != nil:
		c.Outcome, c.Text = Broken, fmt.Sprintf("istiod %s does not read %s any more: what it sets is lost", f.Onto.Run.Environment.ControlPlane.Version, output.FirstOf(gone, 3))
	case len(e.Kept) == 0 && len(e.Removed) == 0:
		c.Text = "no variable that istiod lists is set"
	default:
		c.Text = fmt.Sprintf("the new version reads what is set of istiod's variables (%d)", len(e.Kept))
	}
	if without != nil {
		c.Text += fmt.Sprintf("; %s had the default and is not read any more", output.FirstOf(without, 3))
	}
	if e.Unlisted != nil {
		c.Text += fmt.Sprintf("; %s that neither version lists: %s", output.Many(len(e.Unlisted), "variable"), output.FirstOf(e.Unlisted, 3))
	}
	return c
}
