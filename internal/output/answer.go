package output

import (
	"slices"
	"strings"
)

// AnswerLines is the number of lines of an answer, unless sentences, or rows that must not be
// left out, need more.
const AnswerLines = 20

// Answer is the short form of a result, for a person: a title, and blocks of lines with an empty line
// before each. What is added first is printed in full; what is added with Rows or Fit is cut to
// the room that is left.
type Answer struct {
	width int
	lines []string
}

// NewAnswer returns an answer that has only its title, in lines of at most this width.
func NewAnswer(title string, width int) *Answer {
	return &Answer{width: width, lines: Wrap(title, width, "  ")}
}

// Room returns how many lines the answer may still have.
func (a *Answer) Room() int { return AnswerLines - len(a.lines) }

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
	for n := len(texts); n >= 0; n-- {
		lines := append(slices.Concat(wrapped[:n]...), Wrap(others(len(texts)-n), a.width, "")...)
		if n == 0 || len(lines) < a.Room() {
			a.Block(lines...)
			return
		}
	}
}

// String returns the answer.
func (a *Answer) String() string { return strings.Join(a.lines, "\n") + "\n" }
