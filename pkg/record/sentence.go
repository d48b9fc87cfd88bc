package record

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A template is a sentence with placeholders. {component}, {detail} and {phase} are a
// warning's fields. {NAME} is one of its values as a whole number, {NAME:FORMAT} in
// one of the formats. Text in brackets is left out where a field in it is empty.
var placeholder = regexp.MustCompile(`\{([a-zA-Z0-9]+)(?::([^}]+))?\}`)

var optional = regexp.MustCompile(`\[[^\]]*\]`)

// fill makes a sentence of a template; ok reports that the warning has all it needs.
func fill(template string, w Warning) (text string, ok bool) {
	template = optional.ReplaceAllStringFunc(template, func(part string) string {
		part = part[1 : len(part)-1]
		if _, ok := fill(part, w); !ok {
			return ""
		}
		return part
	})
	ok = true
	text = placeholder.ReplaceAllStringFunc(template, func(found string) string {
		match := placeholder.FindStringSubmatch(found)
		name, format := match[1], match[2]
		var field string
		switch name {
		case "component":
			field = w.Component
		case "phase":
			field = string(w.Phase)
		case "detail":
			field = w.Detail
		default:
			value, there := w.Values[name]
			ok = ok && there
			return formatted(value, format)
		}
		ok = ok && field != ""
		return field
	})
	return text, ok
}

// formatted returns a value in a format: a verb of fmt, or one of those here.
func formatted(value float64, format string) string {
	unit, isMany := strings.CutPrefix(format, "many ")
	switch {
	case format == "":
		return strconv.FormatFloat(value, 'f', 0, 64)
	case format == "percent": // of a share
		return fmt.Sprintf("%.0f%%", value*100)
	case format == "ms": // of seconds
		return fmt.Sprintf("%.1f ms", value*1e3)
	case format == "duration": // of seconds
		return time.Duration(math.Round(value * float64(time.Second))).String()
	case format == "times":
		if value == 1 {
			return "once"
		}
		return fmt.Sprintf("%.0f times", value)
	case isMany:
		if value != 1 {
			unit += "s"
		}
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%"+format, value)
}
