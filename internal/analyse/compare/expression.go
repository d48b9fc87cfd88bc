package compare

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// expression is a parsed bound or objective: a figure's name, < or >, and an amount.
type expression struct {
	figure string
	below  bool   // <; else >
	amount string // as it was given, without spaces about it
	sign   string // "+", "-" or ""
	value  float64
	unit   string // as it was given
}

func (c expression) operator() string { return map[bool]string{true: "<", false: ">"}[c.below] }

// figurePattern matches names of figures, including those of faults.
var figurePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[.@:%-]+[A-Za-z0-9]+)*$`)

// scales are the units that a bound may be given in.
var scales = map[string]struct {
	unit Unit
	in   float64
}{
	"s": {Seconds, 1}, "ms": {Seconds, 1e-3}, "us": {Seconds, 1e-6}, "µs": {Seconds, 1e-6},
	"B": {Bytes, 1}, "kB": {Bytes, 1e3}, "MB": {Bytes, 1e6}, "GB": {Bytes, 1e9},
	"KiB": {Bytes, 1 << 10}, "MiB": {Bytes, 1 << 20}, "GiB": {Bytes, 1 << 30},
}

// amountPattern is a number with a unit, or a percentage; a change has a sign.
var amountPattern = regexp.MustCompile(`^([+-]?)([0-9]+(?:\.[0-9]+)?)(%|[A-Za-zµ]*)$`)

// parseExpression parses FIGURE<AMOUNT or FIGURE>AMOUNT. Spaces around FIGURE and AMOUNT
// are ignored. problem states what is wrong, with the caller's noun for an amount; "" if
// nothing is.
func parseExpression(text, noun string) (c expression, problem string) {
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return c, "no > or <"
	}
	c = expression{figure: strings.TrimSpace(text[:at]), below: text[at] == '<', amount: strings.TrimSpace(text[at+1:])}
	if !figurePattern.MatchString(c.figure) {
		return c, fmt.Sprintf("%q is no figure", c.figure)
	}
	parts := amountPattern.FindStringSubmatch(c.amount)
	if parts == nil {
		return c, fmt.Sprintf("%q is no %s", c.amount, noun)
	}
	value, err := strconv.ParseFloat(parts[2], 64)
	if err != nil || value > 1e18 {
		return c, parts[2] + " is too much"
	}
	c.sign, c.value, c.unit = parts[1], value, parts[3]
	return c, ""
}
