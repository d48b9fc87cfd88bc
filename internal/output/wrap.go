package output

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	widest    = 100 // longer lines are hard to read; also the width without a terminal
	narrowest = 40  // narrower terminals break words
)

// Width is the width of text that is written to w: that of the terminal within bounds, or that of
// a page.
func Width(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return max(narrowest, min(width, widest))
		}
	}
	return widest
}

// Wrap breaks a text between words into lines of at most this width, made Plain; all but the first
// begin with the indent. A longer word has a line of its own.
func Wrap(text string, width int, indent string) []string {
	var lines []string
	line, length := "", 0
	for word := range strings.FieldsSeq(Plain(text)) {
		n := utf8.RuneCountInString(word)
		switch {
		case length == 0 && line == "":
			line, length = word, n
		case length+1+n > width:
			lines = append(lines, line)
			line, length = indent+word, utf8.RuneCountInString(indent)+n
		default:
			line, length = line+" "+word, length+1+n
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
