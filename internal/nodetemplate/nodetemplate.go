// Package nodetemplate parses and executes the templates with which a user describes a
// sidecar's node. They may come from elsewhere, so the cost of executing them is limited.
// Callers define what they can refer to.
package nodetemplate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"
)

// The limits of a template and of its output.
const (
	MaxText   = 64 << 10 // bytes of a template
	MaxOutput = 1 << 20  // bytes of output
	maxFormat = 1000     // bytes of a format of printf
)

// wide matches a width or a precision of printf that makes a long text out of a short
// one.
var wide = regexp.MustCompile(`[0-9*]{4,}|\*`)

// Parse parses a template. Loops and nested templates, which need not end, are refused.
func Parse(name, text string) (*template.Template, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("it has %d bytes: want %d at most", len(text), MaxText)
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"printf": printf}).Parse(text)
	if err != nil {
		return nil, err
	}
	for _, part := range t.Templates() {
		if err := check(part.Root); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Execute fills in a template.
func Execute(t *template.Template, data any) (string, error) {
	var b limited
	if err := t.Execute(&b, data); err != nil {
		return "", err
	}
	return b.String(), nil
}

// check refuses what may run for long.
func check(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		var err error
		switch node := node.(type) {
		case *parse.RangeNode:
			err = errors.New("range: want no loops")
		case *parse.TemplateNode:
			err = errors.New("template: want no templates in it")
		case *parse.IfNode:
			err = errors.Join(check(node.List), check(node.ElseList))
		case *parse.WithNode:
			err = errors.Join(check(node.List), check(node.ElseList))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func printf(format string, args ...any) (string, error) {
	if len(format) > maxFormat || wide.MatchString(format) {
		return "", fmt.Errorf("printf %.20q: want a format of %d bytes at most, with widths below 1000", format, maxFormat)
	}
	return fmt.Sprintf(format, args...), nil
}

// limited takes MaxOutput bytes.
type limited struct{ strings.Builder }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > MaxOutput {
		return 0, fmt.Errorf("it makes more than %d bytes", MaxOutput)
	}
	return l.Builder.Write(p)
}

// WriteString implements io.StringWriter.
func (l *limited) WriteString(s string) (int, error) { return l.Write([]byte(s)) }
