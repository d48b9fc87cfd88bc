package output

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Plain returns s on one line, with unprintable characters, such as terminal escapes,
// replaced by spaces.
func Plain(s string) string { return printable(s, "") }

// Text returns s with unprintable characters, such as terminal escapes, replaced by
// spaces. Unlike Plain it keeps line ends and tabs.
func Text(s string) string { return printable(s, "\n\t") }

// printable returns s with each unprintable character replaced by a space. Those in kept stay.
func printable(s, kept string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || strings.ContainsRune(kept, r) {
			return r
		}
		return ' '
	}, s)
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "&", "&amp;", "[", `\[`, "]", `\]`, "~", `\~`)

// Argument returns s, made Plain, as an argument of a command in a shell: quoted where it must be.
func Argument(s string) string {
	s = Plain(s)
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%,=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Command returns a command with its arguments as a shell reads it.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Argument(word)
	}
	return strings.Join(quoted, " ")
}

// Escaped returns s, made Plain, with Markdown's special characters escaped.
func Escaped(s string) string { return markdownEscapes.Replace(Plain(s)) }

// Counts formats counts by name, sorted, as in "3 pods, 1 namespaces".
func Counts(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// Pairs formats values by name, sorted, as in "app=a,version=v1" with the separator ",".
func Pairs(values map[string]string, separator string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name+"="+values[name])
	}
	return strings.Join(parts, separator)
}

// Digits formats v with three significant digits and no exponent, but with at most this
// number of decimals. Of 1000 and more it prints all digits before the point.
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

// Seconds converts a time to the unit, s, ms or µs, in which Digits prints it with one to
// three digits before the point, and returns that unit.
func Seconds(v float64) (float64, string) {
	unit := "s"
	for _, smaller := range []string{"ms", "µs"} {
		if v == 0 || math.Abs(v) >= 0.9995 { // which prints as 1.00
			break
		}
		v, unit = v*1e3, smaller
	}
	return v, unit
}

// Bytes prints a size in B, KiB, MiB, GiB or TiB, as Kubernetes and Grafana do, with three significant
// digits; a whole number has no decimals.
func Bytes(v float64) string {
	unit := "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if math.Abs(v) < 1023.5 { // which prints as 1024
			break
		}
		v, unit = v/1024, larger
	}
	decimals := 2
	if unit == "B" || v == math.Trunc(v) {
		decimals = 0
	}
	return Digits(v, decimals) + unit
}

// Percent prints a share, as in "10 %" for 0.1, with three digits at most.
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + " %" }

// FirstOf lists the first n texts, and states how many more there are: "a, b and 2 more". A single one more is listed.
func FirstOf(all []string, n int) string {
	if len(all) <= n+1 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:n], ", "), len(all)-n)
}

// Many formats a count with its noun, as in "1 service", "20 services".
func Many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FirstLine returns the first line of an error's message, for where one line is shown.
func FirstLine(err error) string {
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return line
}
