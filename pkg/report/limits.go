package report

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/output"
)

// limited is one reason in a page, with its warnings.
type limited struct {
	ID, Letter, Title, Meaning string
	Extents                    []extent
	Warnings                   []warned // nil when the extents have all of them
}

// extent is what is limited, and by how much.
type extent struct{ About, Text string }

// warned is one warning in a page.
type warned struct{ Run, About, Text string }

// limits are the reasons that limit the figures of a page; several says that the
// page is about several runs.
func (d *doubts) limits(several bool) []limited {
	var list []limited
	for i, r := range d.reasons {
		e := explained(r)
		l := limited{ID: limitID(i + 1), Letter: letters(i + 1), Title: e.title, Meaning: e.meaning}
		warnings := d.of(r)
		var about []string
		for _, n := range warnings {
			w := warned{About: orAbsent(n.warning.About), Text: output.Plain(n.warning.Sentence())}
			if several {
				w.Run = orAbsent(n.run.Name)
			}
			about = appendNew(about, w.About)
			l.Warnings = append(l.Warnings, w)
		}
		for _, path := range about {
			of := slices.DeleteFunc(slices.Clone(warnings), func(n doubt) bool { return orAbsent(n.warning.About) != path })
			l.Extents = append(l.Extents, extent{path, e.over(of, several)})
		}
		if len(l.Warnings) == len(about) && !several {
			l.Warnings = nil
			for n := range l.Extents {
				l.Extents[n].Text = output.Plain(warnings[n].warning.Sentence())
			}
		}
		list = append(list, l)
	}
	return list
}

// over states the range of the values of warnings about one figure, and of which
// runs they are.
func (e explanation) over(warnings []doubt, several bool) string {
	var names, parts []string
	var values []float64
	for _, n := range warnings {
		names = appendNew(names, orAbsent(n.run.Name))
		if v, ok := n.warning.Values[e.value]; ok {
			values = append(values, v)
		}
	}
	if len(values) > 0 {
		text := valueText(e.value, slices.Min(values))
		if most := valueText(e.value, slices.Max(values)); most != text {
			text += " to " + most
		}
		parts = append(parts, fmt.Sprintf(e.extent, text))
	}
	if several {
		text := output.Many(len(names), "run")
		if len(names) == 1 {
			text = names[0]
		}
		parts = append(parts, "in "+text)
	}
	if len(warnings) > len(names) || parts == nil {
		parts = append(parts, "("+output.Many(len(warnings), "warning")+")")
	}
	return output.Plain(strings.Join(parts, " "))
}
