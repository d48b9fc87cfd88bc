package report

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
)

// limited is one reason, with its warnings.
type limited struct {
	ID, Letter, Title, Meaning string
	Extents                    []extent
	Warnings                   []warned // nil when the extents have all of them
}

// extent says what is limited, and how much.
type extent struct{ About, Text string }

// warned is one warning in a page.
type warned struct{ Run, About, Text string }

// warningsListed is the number of warnings of one reason that a text lists; of more it has
// the extents.
const warningsListed = 6

// text returns the heading of a reason in a text, by its number.
func (l limited) text(number int) string {
	return strings.TrimSuffix(fmt.Sprintf("[%d] %s. %s", number, l.Title, l.Meaning), " ")
}

// lines returns what is limited and how much, for a text.
func (l limited) lines() []string {
	var lines []string
	if n := len(l.Warnings); n > 0 && n <= warningsListed {
		for _, w := range l.Warnings {
			line := w.About + ": " + w.Text
			if w.Run != "" {
				line = w.Run + ", " + line
			}
			lines = append(lines, line)
		}
		return lines
	}
	for _, e := range l.Extents {
		lines = append(lines, e.About+": "+e.Text)
	}
	return lines
}

// limits returns the reasons that limit the figures of a report. several reports that the
// report is about several runs.
func (d *warnings) limits(several bool) []limited {
	var list []limited
	for i, r := range d.reasons {
		e := explained(r)
		l := limited{ID: limitID(i + 1), Letter: letters(i + 1), Title: e.title, Meaning: e.meaning}
		warnings := d.of(r)
		var about []string // and the component, where the warning names one
		key := func(n runWarning) string {
			if n.warning.Component == "" {
				return orAbsent(n.warning.About)
			}
			return orAbsent(n.warning.About) + " (" + n.warning.Component + ")"
		}
		for _, n := range warnings {
			w := warned{About: orAbsent(n.warning.About), Text: output.Plain(n.run.Sentence(n.warning))}
			if several {
				w.Run = orAbsent(n.run.Name)
			}
			about = appendNew(about, key(n))
			l.Warnings = append(l.Warnings, w)
		}
		whole := true // the extents have all that the warnings say
		for _, path := range about {
			of := slices.DeleteFunc(slices.Clone(warnings), func(n runWarning) bool { return key(n) != path })
			text, all := e.over(of, several)
			if all { // the sentence names the component
				path = orAbsent(of[0].warning.About)
			}
			l.Extents = append(l.Extents, extent{output.Plain(path), text})
			whole = whole && all
		}
		if whole {
			l.Warnings = nil
		}
		list = append(list, l)
	}
	return list
}

// over summarizes the warnings about one figure: by the sentence if it is the same in
// all, else by the range of their values. all reports that it is the sentence.
func (e explanation) over(warnings []runWarning, several bool) (text string, all bool) {
	var names, sentences []string
	var values []float64
	for _, n := range warnings {
		names, sentences = appendNew(names, orAbsent(n.run.Name)), appendNew(sentences, n.run.Sentence(n.warning))
		if v, ok := n.warning.Values[e.value]; ok {
			values = append(values, v)
		}
	}
	sentence := len(sentences) == 1 && (!several || len(values) == 0)
	switch {
	case sentence:
		text = sentences[0]
	case len(values) > 0:
		text = e.rangeOf(values)
	default:
		text = output.Many(len(warnings), "warning")
	}
	if several {
		in := output.Many(len(names), "run")
		if len(names) == 1 || sentence && len(names) <= 3 {
			in = listed(names)
		}
		text += " (" + in + ")"
	}
	return output.Plain(text), sentence && (!several || len(names) <= 3)
}
