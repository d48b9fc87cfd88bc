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

	"scaler.mesh/scaler/docs"
)

// Prefixes of the names of headings in a page, of the two documents that are in it.
const (
	definitionPrefix = "def-"
	figurePrefix     = "fig-"
)

// documentPrefixes are the prefixes by the name of the document.
var documentPrefixes = map[string]string{"definitions.md": definitionPrefix, "figures.md": figurePrefix}

// definitionsHTML renders the documents that define the figures as parts of a page.
func definitionsHTML() (template.HTML, error) {
	var all template.HTML
	for _, document := range []struct{ text, prefix string }{{docs.Definitions, definitionPrefix}, {docs.Figures, figurePrefix}} {
		html, err := documentHTML(document.text, document.prefix)
		if err != nil {
			return "", err
		}
		all += html
	}
	return all, nil
}

// documentHTML renders a document as part of a page: its headings a level lower, as it is a chapter there, their names with
// the prefix. Links to documents that are not in the page lead to the definitions' beginning.
func documentHTML(markdown, prefix string) (template.HTML, error) {
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
				n.SetAttributeString("id", prefix+string(id.([]byte)))
			}
		case *ast.Link:
			document, heading, _ := strings.Cut(string(n.Destination), "#")
			to := documentPrefixes[document]
			switch {
			case document == "":
				n.Destination = []byte("#" + prefix + heading)
			case to != "" && heading != "":
				n.Destination = []byte("#" + to + heading)
			case to == figurePrefix:
				n.Destination = []byte("#" + figurePrefix + "figures")
			default:
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
