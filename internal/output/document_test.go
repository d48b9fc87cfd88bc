package output

import "testing"

func TestDocument(t *testing.T) {
	write := func(d *Document) {
		d.Title("a|b\x1b[31m")
		d.Facts([][2]string{{"machine", "2 processors"}, {"of", "a_b"}})
		d.Section("Part")
		d.Paragraph("one", "", "two")
		d.Paragraph("")
		d.List("x", "see https://a.example/b_c#d, y_z")
		d.Items(Item{Text: "listener " + Quote("a`b_c"), Lines: []string{"l_1", "l2"}})
		d.Numbered(Item{Text: "first", Lines: []string{"why"}}, Item{Text: "second"})
		d.Table(Table{Head: []string{"pods", "cores"}, Rows: [][]string{{"200", "0.5"}}})
		d.Code("yaml", "a: b\n")
	}
	const text = `a|b [31m

machine   2 processors
of        a_b

Part

one
two

x
see https://a.example/b_c#d, y_z

listener a` + "`" + `b_c
    l_1
    l2

1. first
   why

2. second

PODS   CORES
200      0.5

a: b
`
	const markdown = `# a\|b \[31m

- machine: 2 processors
- of: a\_b

## Part

one

two

- x
- see https://a.example/b_c#d, y\_z

- listener ` + "`a'b_c`" + `
  - l\_1
  - l2

1. first
   - why

2. second

| pods | cores |
| --- | ---: |
| 200 | 0.5 |

` + "```yaml\na: b\n```\n"
	if got := Wide(write); got != text {
		t.Errorf("for a terminal:\n%s\nwant:\n%s", got, text)
	}
	if got := Markdown(write); got != markdown {
		t.Errorf("as Markdown:\n%s\nwant:\n%s", got, markdown)
	}
}

// What is written after Comment is never left out of Markdown.
func TestDocumentAsComment(t *testing.T) {
	got := Markdown(func(d *Document) {
		for range 3000 {
			d.Paragraph("a difference with 40 characters, and so on")
		}
		d.Comment()
		d.Paragraph("the end")
	})
	const end = "\nThe rest is left out; -o wide has it.\n\nthe end\n"
	if len(got) >= CommentBytes || len(got) < CommentBytes-100 || got[len(got)-len(end):] != end {
		t.Errorf("%d bytes that end with %q", len(got), got[len(got)-100:])
	}
}
