package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// textSchema is the form of a type that reads itself from text.
type textSchema struct {
	pattern string
	number  bool // a number is taken, too
	example string
}

const (
	numberPattern   = `[0-9]+(\.[0-9]*)?`
	durationPattern = `(0|(` + numberPattern + `(ns|us|µs|ms|s|m|h))+)`
)

// schemas are the forms of all types that read themselves from text. Their bounds are checked by
// UnmarshalText alone.
var schemas = map[reflect.Type]textSchema{
	reflect.TypeFor[Duration](): {pattern: durationPattern, example: "90s"},
	reflect.TypeFor[Bytes]():    {pattern: numberPattern + `(Ei|Pi|Ti|Gi|Mi|Ki|E|P|T|G|M|k)?`, number: true, example: "512Mi"},
	reflect.TypeFor[Rate]():     {pattern: numberPattern + `/s`, example: "5/s"},
	reflect.TypeFor[Share]():    {pattern: numberPattern + `%`, example: "50%"},
	reflect.TypeFor[Shares]():   {pattern: numberPattern + `%( *, *` + numberPattern + `%)*`, example: "10%,50%,100%"},
	reflect.TypeFor[Arrival]():  {pattern: `all|stock|` + numberPattern + `/s|[0-9]+/` + durationPattern, example: "100/10s"},
	reflect.TypeFor[Delay]():    {pattern: `((exponential|constant):)?` + durationPattern + `|uniform:` + durationPattern + `-` + durationPattern, example: "uniform:1s-5s"},
	reflect.TypeFor[Dilation](): {pattern: `auto|` + numberPattern, number: true, example: "auto"},
	reflect.TypeFor[Changes]():  {pattern: numberPattern + `/s(:(` + strings.Join(textsOf(ChangeKinds), "|") + `))?`, example: "5/s:route"},
	reflect.TypeFor[Fault]():    {pattern: faultPattern(), example: "kill-control-plane@steady"},
}

func faultPattern() string {
	var all []string
	for _, k := range FaultKinds {
		argument := map[Argument]string{
			ShareArgument: `:` + numberPattern + `%`, TimeArgument: `:` + durationPattern, ProgramArgument: `(:[^@]+)?`,
		}[k.Argument]
		phases := PhaseRollout + "|" + PhaseSteady
		if k.Probe {
			phases += "|" + PhaseProbe
		}
		all = append(all, string(k.Name)+argument+"@("+phases+")")
	}
	return strings.Join(all, "|")
}

// Schema returns the JSON Schema (draft 2020-12) of a scenario document, indented.
func Schema() ([]byte, error) {
	root := object(reflect.TypeFor[Scenario](), "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Scenario"
	root["required"] = []string{"apiVersion", "kind"}
	properties := root["properties"].(map[string]any)
	properties["apiVersion"], properties["kind"] = map[string]any{"const": APIVersion}, map[string]any{"const": Kind}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the schema: %w", err)
	}
	return append(text, '\n'), nil
}

// object returns the schema of a section.
func object(t reflect.Type, path string) map[string]any {
	properties := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		at := join(path, key(f))
		if section(f.Type) {
			properties[key(f)] = object(f.Type, at)
			continue
		}
		p, _ := Of(at)
		properties[key(f)] = leaf(f.Type, p)
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

// leaf returns the schema of a parameter.
func leaf(t reflect.Type, p Parameter) map[string]any {
	of := leafOf(t)
	one := map[string]any{}
	text, isText := schemas[of]
	switch {
	case isText && text.number:
		one["type"], one["pattern"] = []string{"string", "number"}, "^("+text.pattern+")$"
	case isText:
		one["type"], one["pattern"] = "string", "^("+text.pattern+")$"
	case of.Kind() == reflect.Bool:
		one["type"] = "boolean"
	case of.Kind() == reflect.Float64:
		one["type"] = "number"
	case of.Kind() == reflect.String:
		one["type"] = "string"
	default:
		one["type"] = "integer"
	}
	if len(p.Choices) > 0 {
		one["enum"] = choices(of, p.Choices)
	}
	if p.Max > 0 && !isText {
		one["minimum"], one["maximum"] = p.Min, p.Max
	}
	schema := one
	if listed(t) {
		schema = map[string]any{"anyOf": []any{one, map[string]any{"type": "array", "items": one}}}
	}
	schema["description"] = p.Usage("")
	if p.Default != "" {
		schema["description"] = p.Usage("") + " (default " + p.Default + ")"
	}
	return schema
}

// choices parses texts as values of a type.
func choices(t reflect.Type, texts []string) []any {
	var all []any
	for _, text := range texts {
		v := reflect.New(t).Elem()
		if t.Kind() == reflect.String || setLeaf(v, []string{text}) != nil {
			all = append(all, text)
			continue
		}
		all = append(all, v.Interface())
	}
	return all
}
