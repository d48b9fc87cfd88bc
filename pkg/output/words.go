package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Plain is s on one line, with nothing in it that a terminal would obey.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`, "]", `\]`)

// Escaped is s, made Plain, as Markdown shows it unchanged; but not a tilde, two of
// which GitHub takes for a line through what they enclose. See EscapedTildes.
func Escaped(s string) string { return markdownEscapes.Replace(Plain(s)) }

// EscapedTildes is Markdown of which no tilde is markup, as it is shown unchanged.
func EscapedTildes(markdown string) string { return strings.ReplaceAll(markdown, "~", `\~`) }

// Digits prints v with three digits that say something and no exponent, but with no
// more than so many decimals. Of 1000 and more it prints all that is before the point.
func Digits(v float64, decimals int) string {
	needed := 4
	switch a := math.Abs(v); {
	case a >= 99.95: // else it would round to 100.0
		needed = 0
	case a >= 9.995:
		needed = 1
	case a >= 0.9995:
		needed = 2
	case a >= 0.09995:
		needed = 3
	}
	return strconv.FormatFloat(v, 'f', min(needed, decimals), 64)
}

// Many prints a count with its noun, as in "1 service", "20 services".
func Many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
