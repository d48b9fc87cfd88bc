// Package output writes what commands print with -o: objects as JSON and YAML for
// programs, and for people text, that is tables aligned for a terminal or as Markdown,
// numbers with three digits, and words that are escaped wherever they came from. Callers
// decide the content of a document, its order and its units.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// Formats are the formats that everything can be printed in, the default first. A table is the
// answer where there is one, and wide all of it.
var Formats = []string{"table", "wide", "json", "yaml", "markdown"}

// Print writes an object in one of Formats. write writes it as a document; it is called only for a terminal and for Markdown. Errors
// call the object what, as in "a plan".
func Print(w io.Writer, format, what string, object any, write func(*Document)) error {
	return PrintAnswer(w, format, what, object, func(int) string { return Wide(write) }, write)
}

// PrintAnswer writes an object as Print does, but as a table only its answer, whose lines have
// at most this width.
func PrintAnswer(w io.Writer, format, what string, object any, answer func(width int) string, write func(*Document)) error {
	var text string
	var err error
	switch format {
	case "table":
		text = answer(Width(w))
	case "wide", "markdown":
		text = written(Document{markdown: format == "markdown", level: 3}, write)
	case "json":
		text, err = asJSON(object)
	case "yaml":
		text, err = asYAML(object)
	default:
		return fmt.Errorf("printing %s as %q: want one of %s", what, format, strings.Join(Formats, ", "))
	}
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	if err != nil {
		return fmt.Errorf("writing %s as %s: %w", what, format, err)
	}
	return nil
}

func asJSON(object any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(object)
	return b.String(), err
}

func asYAML(object any) (string, error) {
	text, err := yaml.Marshal(object)
	return string(text), err
}
