package report

import (
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	source "github.com/yuin/goldmark/text"

	"scaler.mesh/scaler/docs"
)

// Prefixes of the names of headings in a page, of the definitions and of the figures that are in it.
const (
	definitionPrefix = "def-"
	figurePrefix     = "fig-"
)

// figuresDocument is the path of the figures below docs.
const figuresDocument = "reference/figures.md"

// headingPrefix returns the prefix of the headings of a document, by its path below docs; "" if it is not in the page.
func headingPrefix(document string) string {
	switch {
	case document == figuresDocument:
		return figurePrefix
	case path.Dir(document) == "reference/definitions":
		return definitionPrefix
	default:
		return ""
	}
}

// definitionsHTML renders the documents that define the figures as parts of a page.
func definitionsHTML() (template.HTML, error) {
	documents, err := fs.Glob(docs.Reference, "reference/definitions/*.md") // README.md is the first in their order
	if err != nil {
		return "", fmt.Errorf("reading the definitions: %w", err)
	}
	var all template.HTML
	for _, document := range append(documents, figuresDocument) {
		text, err := docs.Reference.ReadFile(document)
		if err != nil {
			return "", fmt.Errorf("reading the definitions: %w", err)
		}
		html, err := documentHTML(text, document)
		if err != nil {
			return "", err
		}
		all += html
	}
	return all, nil
}

// documentHTML renders a document, by its path below docs, as part of a page: its headings a level lower, as it is
// a chapter there, their names with the prefix. Links to documents that are not in the page lead to the definitions' beginning.
func documentHTML(written []byte, document string) (template.HTML, error) {
	prefix := headingPrefix(document)
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
			other, heading, _ := strings.Cut(string(n.Destination), "#")
			to := prefix
			if other != "" {
				to = headingPrefix(path.Join(path.Dir(document), other))
			}
			switch {
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
