package output

import (
	"slices"
	"strings"
)

// AnswerLines is the number of lines of an answer, unless sentences, or rows that must not be
// left out, need more.
const AnswerLines = 20

// PageLines is the number of lines of a page, which a terminal shows at once.
const PageLines = 40

// Answer is the short form of a result, for a person: a title, and blocks of lines with an empty line
// before each. What is added first is printed in full; what is added with Rows or Fit is cut to
// the room that is left.
type Answer struct {
	width, most int
	bounded     bool // to most lines, by cutting
	lines       []string
}

// NewAnswer returns an answer that has only its title, in lines of at most this width.
func NewAnswer(title string, width int) *Answer {
	return &Answer{width: width, most: AnswerLines, lines: Wrap(title, width, "  ")}
}

// NewPage returns an answer as NewAnswer does, with PageLines at most, whatever is added: its last line states that there is
// more.
func NewPage(title string, width int) *Answer {
	a := NewAnswer(title, width)
	a.most, a.bounded = PageLines, true
	return a
}

// Room returns how many lines the answer may still have.
func (a *Answer) Room() int { return a.most - len(a.lines) }

// Block adds lines as they are; none without any.
func (a *Answer) Block(lines ...string) {
	if len(lines) > 0 {
		a.lines = append(append(a.lines, ""), lines...)
	}
}

// Paragraphs adds a block of texts, each wrapped; empty ones are left out.
func (a *Answer) Paragraphs(texts ...string) {
	var lines []string
	for _, text := range texts {
		lines = append(lines, Wrap(text, a.width, "")...)
	}
	a.Block(lines...)
}

// Rows adds a table with as many rows as there is room for if this number of lines is kept free,
// but at least with these first rows.
func (a *Answer) Rows(t Table, least, free int) {
	most := max(least, a.Room()-free-2) // an empty line and the head
	if t.Rows = t.Rows[:min(max(0, most), len(t.Rows))]; len(t.Rows) > 0 {
		a.Block(t.Lines()...)
	}
}

// Fit adds a block of texts, each wrapped: the first ones that there is room for together with
// what others states about the number of those that are left out.
func (a *Answer) Fit(texts []string, others func(n int) string) {
	var wrapped [][]string
	for _, text := range texts {
		wrapped = append(wrapped, Wrap(text, a.width, "    "))
	}
	a.FitLines(wrapped, 0, func(n int) []string { return Wrap(others(n), a.width, "") })
}

// FitLines adds a block as Fit does, of parts that are lines, but at least these first ones.
func (a *Answer) FitLines(parts [][]string, least int, others func(n int) []string) {
	for n := len(parts); n >= 0; n-- {
		lines := append(slices.Concat(parts[:n]...), others(len(parts)-n)...)
		if n <= least || len(lines) < a.Room() {
			a.Block(lines...)
			return
		}
	}
}

// String returns the answer.
func (a *Answer) String() string {
	lines := a.lines
	if a.bounded && len(lines) > a.most {
		lines = append(slices.Clone(lines[:a.most-1]), "... (-o wide has the rest)")
	}
	return strings.Join(lines, "\n") + "\n"
}
