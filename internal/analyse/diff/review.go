package diff

import (
	"fmt"
	"strings"

	"scaler.mesh/scaler/internal/output"
)

// line is one of a difference, as a code review shows it.
type line struct {
	Class string // gone, come, place (where it is) or cut (what is left out); "" = it is the same on both sides
	Text  string // with the sign of its class
}

const (
	shownPlaces  = 5   // names of resources that are on one side alone, and values of one field
	shownLines   = 400 // of a value
	shownAround  = 3   // equal lines next to a difference
	shownInWidth = 90  // bytes of a value that stays on one line
)

// signs maps the class of a line to the sign at its beginning.
var signs = map[string]string{"gone": "- ", "come": "+ ", "": "  "}

func newLine(class, text string) line { return line{class, signs[class] + output.Plain(text)} }

// review returns a group as lines with signs.
func (g Group) review() (all []line) {
	add := func(class, text string) { all = append(all, newLine(class, text)) }
	if g.Path != "" {
		add("place", g.Path)
	}
	if len(g.Values) == 0 { // the names are what differs
		class := "come"
		if g.Op == Removed {
			class = "gone"
		}
		of := g.Resources
		if g.Path != "" && len(g.Elements) > 0 {
			of = g.Elements
		}
		for _, name := range of[:min(len(of), shownPlaces)] {
			add(class, name)
		}
		if more := len(of) - shownPlaces; more > 0 {
			add("cut", fmt.Sprintf("%d more, see below", more))
		}
		return all
	}
	for i, v := range g.Values[:min(len(g.Values), shownPlaces)] {
		if i > 0 {
			add("place", "or")
		}
		all = append(all, v.review()...)
	}
	if more := len(g.Values) - shownPlaces; more > 0 {
		add("cut", fmt.Sprintf("%s more; -o json has all", output.Many(more, "value")))
	}
	return all
}

// review aligns the lines of both values.
func (v Value) review() (all []line) {
	from, to := laidOut(v.From), laidOut(v.To)
	add := func(class, text string) { all = append(all, newLine(class, text)) }
	same := common(len(from), len(to), func(i, j int) bool { return from[i] == to[j] })
	var i, j int
	for _, m := range append(same, [2]int{len(from), len(to)}) {
		for ; i < m[0]; i++ {
			add("gone", from[i])
		}
		for ; j < m[1]; j++ {
			add("come", to[j])
		}
		if i < len(from) {
			add("", from[i])
		}
		i, j = m[0]+1, m[1]+1
	}
	return shortened(all)
}

// shortened leaves out lines that are equal on both sides and not next to a difference, and those beyond shownLines.
func shortened(all []line) (kept []line) {
	near := make([]bool, len(all))
	for i, l := range all {
		if l.Class == "" {
			continue
		}
		for k := max(0, i-shownAround); k < min(len(all), i+shownAround+1); k++ {
			near[k] = true
		}
	}
	for i := 0; i < len(all); i++ {
		if len(kept) == shownLines {
			return append(kept, line{"cut", fmt.Sprintf("%s more; -o json has all", output.Many(len(all)-i, "line"))})
		}
		if near[i] {
			kept = append(kept, all[i])
			continue
		}
		left := 0
		for ; i < len(all) && !near[i]; i++ {
			left++
		}
		i--
		kept = append(kept, line{"cut", output.Many(left, "equal line")})
	}
	return kept
}

// laidOut returns a value in several lines, indented, with what is short on one.
func laidOut(text string) (all []string) {
	if text == "" {
		return nil
	}
	closes := brackets(text)
	var b strings.Builder
	depth := 0
	next := func() {
		all = append(all, b.String())
		b.Reset()
		b.WriteString(strings.Repeat("  ", depth))
	}
	for i := 0; i < len(text); i++ {
		end, opens := closes[i]
		switch {
		case text[i] == '"':
			stop := closing(text, i)
			b.WriteString(text[i:stop])
			i = stop - 1
		case opens && end-i <= shownInWidth:
			b.WriteString(text[i : end+1])
			i = end
		case opens:
			b.WriteByte(text[i])
			depth++
			next()
		case depth > 0 && (text[i] == '}' || text[i] == ']'):
			depth--
			next()
			b.WriteByte(text[i])
		case depth > 0 && text[i] == ',':
			b.WriteByte(',')
			next()
			if i+1 < len(text) && text[i+1] == ' ' {
				i++
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return append(all, b.String())
}

// brackets returns the brackets that open outside of quotes, by their indices, with those that close them.
func brackets(text string) map[int]int {
	all := map[int]int{}
	var open []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = closing(text, i) - 1
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			if len(open) > 0 {
				all[open[len(open)-1]] = i
				open = open[:len(open)-1]
			}
		}
	}
	return all
}

// closing returns the index after the quotation that begins at another.
func closing(text string, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
