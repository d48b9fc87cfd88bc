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

// Print writes an object in one of Formats. text renders it as Markdown or for a
// terminal; it is called only for these formats. Errors call the object what, as in "a
// plan".
func Print(w io.Writer, format, what string, object any, text func(markdown bool) string) error {
	return PrintAnswer(w, format, what, object, func(int) string { return text(false) }, text)
}

// PrintAnswer writes an object as Print does, but as a table only its answer, whose lines have
// at most this width.
func PrintAnswer(w io.Writer, format, what string, object any, answer func(width int) string, text func(markdown bool) string) error {
	var written string
	var err error
	switch format {
	case "table":
		written = answer(Width(w))
	case "wide", "markdown":
		written = text(format == "markdown")
	case "json":
		written, err = asJSON(object)
	case "yaml":
		written, err = asYAML(object)
	default:
		return fmt.Errorf("printing %s as %q: want one of %s", what, format, strings.Join(Formats, ", "))
	}
	if err == nil {
		_, err = io.WriteString(w, written)
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
