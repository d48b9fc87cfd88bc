package output

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text, indent string
		width        int
		want         []string
	}{
		{"", "", 10, nil},
		{"one two three", "", 7, []string{"one two", "three"}},
		{"one two three", "  ", 7, []string{"one two", "  three"}},
		{"µµµ µµµ", "", 7, []string{"µµµ µµµ"}}, // characters, not bytes
		{"a verylongword b", "  ", 6, []string{"a", "  verylongword", "  b"}},
		{"a\x1b[31m\nb", "", 80, []string{"a [31m b"}},
	} {
		if got := Wrap(tt.text, tt.width, tt.indent); !slices.Equal(got, tt.want) {
			t.Errorf("Wrap(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestPrintAnswer(t *testing.T) {
	for format, want := range map[string]string{"table": "the answer\n", "wide": "all\n", "markdown": "### all\n"} {
		var b strings.Builder
		err := PrintAnswer(&b, format, "a thing", nil, func(width int) string {
			if width != widest {
				t.Errorf("width %d where there is no terminal, want %d", width, widest)
			}
			return "the answer\n"
		}, func(d *Document) { d.Title("all") })
		if err != nil || b.String() != want {
			t.Errorf("%s: %q, %v", format, b.String(), err)
		}
	}
}
