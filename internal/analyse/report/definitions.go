package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	source "github.com/yuin/goldmark/text"
)

// definitionPrefix begins the names of the definitions' headings in a page.
const definitionPrefix = "def-"

// definitionsHTML renders docs/reference/definitions.md as part of a page: its headings a
// level lower, as it is a chapter there. Links that lead out of it become text.
func definitionsHTML(markdown string) (template.HTML, error) {
	written := []byte(markdown)
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	tree := md.Parser().Parse(source.NewReader(written))
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			n.Level++
			if id, ok := n.AttributeString("id"); ok {
				n.SetAttributeString("id", definitionPrefix+string(id.([]byte)))
			}
		case *ast.Link:
			if inside, ok := strings.CutPrefix(string(n.Destination), "#"); ok {
				n.Destination = []byte("#" + definitionPrefix + inside)
			} else {
				n.Destination = []byte("#" + definitionPrefix + "definitions")
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the definitions: %w", err)
	}
	var b strings.Builder
	if err := md.Renderer().Render(&b, written, tree); err != nil {
		return "", fmt.Errorf("showing the definitions: %w", err)
	}
	return template.HTML(b.String()), nil
}
