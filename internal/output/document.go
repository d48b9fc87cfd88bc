package output

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// documentWidth is the width to which a Document breaks lists for a terminal; tables and paragraphs are not broken.
const documentWidth = 120

// Document is a text in parts, each after an empty line, that is printed for a terminal or as Markdown. Its texts may contain
// anything: they are escaped.
type Document struct {
	markdown bool
	level    int // of the title, as Markdown
	b        strings.Builder
	end      int // where the part begins that a comment never loses; 0 = there is no limit
}

// Item is a line of a list, with the lines that belong to it.
type Item struct {
	Text  string
	Lines []string
}

// quote encloses what Markdown shows as code. Texts do not contain it, because Plain replaces it.
const quote = "\x00"

// Quote marks a name or a value in a text of a Document: Markdown shows it as code.
func Quote(s string) string { return quote + Plain(s) + quote }

// text returns s as it is written: escaped, and with what Quote marks as code.
func (d *Document) text(s string) string {
	parts := strings.Split(s, quote)
	for i, part := range parts {
		switch {
		case !d.markdown:
			parts[i] = Plain(part)
		case i%2 == 0:
			parts[i] = escapedAround(part)
		default:
			parts[i] = "`" + strings.ReplaceAll(part, "`", "'") + "`"
		}
	}
	return strings.Join(parts, "")
}

// address matches a URL, which GitHub shows as a link if it is not escaped.
var address = regexp.MustCompile(`https://[A-Za-z0-9._~:/?#@%&=+-]+`)

// escapedAround returns s with all but addresses escaped.
func escapedAround(s string) string {
	var b strings.Builder
	end := 0
	for _, at := range address.FindAllStringIndex(s, -1) {
		b.WriteString(Escaped(s[end:at[0]]) + s[at[0]:at[1]])
		end = at[1]
	}
	b.WriteString(Escaped(s[end:]))
	return b.String()
}

// part begins a part.
func (d *Document) part() {
	if d.b.Len() > 0 {
		d.b.WriteString("\n")
	}
}

// heading begins a part with a heading, this many levels below the title.
func (d *Document) heading(below int, text string) {
	d.part()
	if d.markdown {
		d.b.WriteString(strings.Repeat("#", d.level+below) + " ")
	}
	d.b.WriteString(d.text(text) + "\n")
}

// Title adds the heading of all that follows it.
func (d *Document) Title(text string) { d.heading(0, text) }

// Section adds the heading of a section.
func (d *Document) Section(text string) { d.heading(1, text) }

// Paragraph adds texts, each on a line of its own, or in a paragraph of its own in Markdown. Empty ones are left out.
func (d *Document) Paragraph(texts ...string) {
	texts = slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
	for i, text := range texts {
		if i == 0 || d.markdown {
			d.part()
		}
		d.b.WriteString(d.text(text) + "\n")
	}
}

// List adds a list of texts.
func (d *Document) List(texts ...string) {
	items := make([]Item, len(texts))
	for i, text := range texts {
		items[i].Text = text
	}
	d.Items(items...)
}

// Items adds a list of items. On a terminal those with lines have empty lines between them.
func (d *Document) Items(items ...Item) {
	for i, item := range items {
		if i == 0 || !d.markdown && (len(item.Lines) > 0 || len(items[i-1].Lines) > 0) {
			d.part()
		}
		d.item("- ", "", "    ", item)
	}
}

// Numbered adds a list whose items have numbers, from 1 on, and an empty line between them.
func (d *Document) Numbered(items ...Item) {
	for i, item := range items {
		d.part()
		number := fmt.Sprintf("%d. ", i+1)
		d.item(number, number, strings.Repeat(" ", len(number)), item)
	}
}

// item adds an item: after a bullet as Markdown, otherwise after a number and with its lines indented.
func (d *Document) item(bullet, number, indent string, item Item) {
	if d.markdown {
		d.b.WriteString(bullet + d.text(item.Text) + "\n")
		for _, line := range item.Lines {
			d.b.WriteString(strings.Repeat(" ", len(bullet)) + "- " + d.text(line) + "\n")
		}
		return
	}
	write := func(text, first, others string) {
		for i, line := range Wrap(d.text(text), documentWidth-len(others), "") {
			if i > 0 {
				first = others
			}
			d.b.WriteString(first + line + "\n")
		}
	}
	write(item.Text, number, indent)
	for _, line := range item.Lines {
		write(line, indent, indent+"  ")
	}
}

// Facts adds names with their values.
func (d *Document) Facts(facts [][2]string) {
	t := Table{Left: 1}
	var lines []string
	for _, f := range facts {
		t.Add(f[0], f[1])
		lines = append(lines, f[0]+": "+f[1])
	}
	switch {
	case len(facts) == 0:
	case d.markdown:
		d.List(lines...)
	default:
		d.Table(t)
	}
}

// Table adds a table, which Markdown prints only if its columns have names.
func (d *Document) Table(t Table) {
	d.part()
	if d.markdown {
		d.b.WriteString(t.Markdown())
	} else {
		d.b.WriteString(t.Text())
	}
}

// Code adds lines of a language as they are; they must be the program's own.
func (d *Document) Code(language, lines string) {
	d.part()
	if d.markdown {
		lines = "```" + language + "\n" + lines + "```\n"
	}
	d.b.WriteString(lines)
}

// Comment has Markdown end with what is added from here on, and with less than CommentBytes in all: as many of the lines before are
// left out as needed.
func (d *Document) Comment() { d.end = d.b.Len() }

// String returns the document.
func (d *Document) String() string {
	text := d.b.String()
	if d.markdown && d.end > 0 {
		return comment(text[:d.end], text[d.end:])
	}
	return text
}

// IsMarkdown reports whether the document is written as Markdown.
func (d *Document) IsMarkdown() bool { return d.markdown }

// Wide returns what a function writes, for a terminal.
func Wide(write func(*Document)) string { return written(Document{}, write) }

// Markdown returns what a function writes, as Markdown whose title is that of a page.
func Markdown(write func(*Document)) string {
	return written(Document{markdown: true, level: 1}, write)
}

func written(d Document, write func(*Document)) string {
	write(&d)
	return d.String()
}
