package scenario

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is a scenario as it is stated, in layers over defaults: files, and single values by
// path. A later layer replaces the values of an earlier one.
type Document struct {
	// Scenario is the outcome: the defaults, and over them all that was given.
	Scenario Scenario
	given    map[string]Source
	defaults Scenario
}

// Source is the place where the value of a field was given.
type Source struct {
	File string // name of the document; "" = it was set by its path
	Line int    // in File, from 1
	Flag string // that set it, as in --pods; "" = none
	// Preset reports that File is a preset, whose values give way to what the user states.
	Preset bool
}

// MaxDocument is the greatest size of a document, in bytes.
const MaxDocument = 1 << 20

// New returns a document that consists of defaults.
func New(defaults Scenario) *Document {
	return &Document{Scenario: defaults, given: map[string]Source{}, defaults: defaults}
}

// Given reports whether a layer states the field at a path, or a field below it.
func (d *Document) Given(path string) bool {
	for given := range d.given {
		if given == path || strings.HasPrefix(given, path+".") {
			return true
		}
	}
	return false
}

// Stated reports whether the user stated the field at a path; a preset's value is none of theirs.
func (d *Document) Stated(path string) bool {
	source, given := d.given[path]
	return given && !source.Preset
}

// Source states where the field at a path was given last; the zero value if it was not.
func (d *Document) Source(path string) Source { return d.given[path] }

// Read adds a layer: a document in YAML or JSON. name is that of its file, for errors.
// Unknown and repeated keys, values of another type, anchors and further documents are
// errors that state line and path.
func (d *Document) Read(name string, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return fmt.Errorf("reading scenario %s: %w", name, err)
	}
	if len(data) > MaxDocument {
		return fmt.Errorf("reading scenario %s: want %d bytes at most", name, MaxDocument)
	}
	if err := d.read(name, data); err != nil {
		return fmt.Errorf("reading scenario %s: %w", name, err)
	}
	return nil
}

func (d *Document) read(name string, data []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, next yaml.Node
	if err := decoder.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return &Error{Path: "apiVersion", Want: APIVersion + "; the document is empty"}
		}
		return fmt.Errorf("want YAML or JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return errors.New("want one document, not several")
	}
	layer := Document{Scenario: d.Scenario, given: map[string]Source{}}
	content := root.Content[0]
	if err := layer.take(name, content, reflect.ValueOf(&layer.Scenario).Elem(), ""); err != nil {
		return err
	}
	for _, id := range []struct{ path, is, want string }{
		{"apiVersion", layer.Scenario.APIVersion, APIVersion}, {"kind", layer.Scenario.Kind, Kind},
	} {
		if source, ok := layer.given[id.path]; !ok {
			return &Error{Path: id.path, Line: content.Line, Want: id.want}
		} else if id.is != id.want {
			return &Error{Path: id.path, Line: source.Line, Value: strconv.Quote(id.is), Want: id.want}
		}
	}
	d.Scenario = layer.Scenario
	for path, source := range layer.given {
		d.given[path] = source
	}
	return nil
}

// take decodes a node into a value, and remembers which leaves were given.
func (d *Document) take(name string, n *yaml.Node, v reflect.Value, path string) error {
	fail := func(value, want string) error { return &Error{Path: path, Line: n.Line, Value: value, Want: want} }
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fail("", "no anchors")
	case !section(v.Type()):
		return d.takeLeaf(name, n, v, path)
	case n.Kind != yaml.MappingNode:
		return fail(nodeText(n), "a mapping of "+strings.Join(keys(v.Type()), ", "))
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		child, _, ok := child(v, key.Value)
		switch line, again := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode || !ok:
			return &Error{Path: path, Line: key.Line, Value: nodeText(key), Want: "a key of " + strings.Join(keys(v.Type()), ", ")}
		case again:
			return &Error{Path: at, Line: key.Line, Want: fmt.Sprintf("each key once; it is in line %d, too", line)}
		}
		seen[key.Value] = key.Line
		if err := d.take(name, value, child, at); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) takeLeaf(name string, n *yaml.Node, v reflect.Value, path string) error {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && listed(v.Type()) {
		nodes = n.Content
	}
	var texts []string
	for _, one := range nodes {
		switch {
		case one.Kind == yaml.AliasNode || one.Anchor != "":
			return &Error{Path: path, Line: one.Line, Want: "no anchors"}
		case one.Kind != yaml.ScalarNode || one.Tag == "!!null":
			return &Error{Path: path, Line: one.Line, Value: nodeText(one), Want: wanted(v.Type())}
		}
		if leaf := leafOf(v.Type()); !slices.Contains(tags(leaf), one.Tag) {
			return &Error{Path: path, Line: one.Line, Value: nodeText(one), Want: wanted(leaf) + notes[one.Tag]}
		}
		texts = append(texts, one.Value)
	}
	d.given[path] = Source{File: name, Line: n.Line}
	return placed(setLeaf(v, texts), path, n.Line)
}

// notes complete an error about a value of another type, by its tag.
var notes = map[string]string{"!!int": "; a text that looks like a number has quotes", "!!float": "; a text that looks like a number has quotes", "!!bool": "; a text that looks like true or false has quotes"}

// leafOf returns the type of the values of a leaf, without pointers and lists.
func leafOf(t reflect.Type) reflect.Type {
	for !isText(t) && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	return t
}

// tags returns the types of YAML scalars that a leaf takes.
func tags(leaf reflect.Type) []string {
	switch {
	case leaf == reflect.TypeFor[Bytes](), leaf == reflect.TypeFor[Dilation]():
		return []string{"!!str", "!!int", "!!float"}
	case isText(leaf), leaf.Kind() == reflect.String:
		return []string{"!!str"}
	case leaf.Kind() == reflect.Bool:
		return []string{"!!bool"}
	case leaf.Kind() == reflect.Float64:
		return []string{"!!int", "!!float"}
	}
	return []string{"!!int"}
}

// nodeText returns a node as an error shows it.
func nodeText(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "no value"
	case n.Tag != "!!str":
		return n.Value
	}
	return strconv.Quote(n.Value)
}

// Set states the value of the field at a path, as text. flag is the one that set it, as in
// --pods, or "". A list takes its values with commas between them; a list of free texts takes
// each value from a call of its own, and further calls of the same flag add to it. A flag replaces what
// was set without one; two flags of one field are an error.
func (d *Document) Set(path, text, flag string) error {
	v, _, ok := d.Scenario.leaf(path)
	if !ok {
		return &Error{Path: path, Want: "a field of a scenario, as in mesh.pods; 'scaler schema' has all"}
	}
	texts := []string{text}
	if listed(v.Type()) && v.Type() != reflect.TypeFor[[]string]() {
		texts = strings.Split(text, ",")
	}
	before, given := d.given[path]
	if given && before.Flag != "" && flag != "" && before.Flag != flag {
		return &Error{Path: path, Want: "it given once, not as " + before.Flag + " and " + flag}
	}
	if given && before == (Source{Flag: flag}) && adds(v.Type()) {
		more := reflect.New(v.Type()).Elem()
		if err := placed(setLeaf(more, texts), path, 0); err != nil {
			return err
		}
		v.Set(reflect.AppendSlice(v, more))
		return nil
	}
	d.given[path] = Source{Flag: flag}
	return placed(setLeaf(v, texts), path, 0)
}

// Fill states the value of a field by its texts, of which one that is no list has one, as what follows from a file that the
// document names. Where the field was stated, that stays its source.
func (d *Document) Fill(path, file string, texts ...string) error {
	v, _, ok := d.Scenario.leaf(path)
	if !ok {
		return &Error{Path: path, Want: "a field of a scenario"}
	}
	if !d.Stated(path) {
		d.given[path] = Source{File: file}
	}
	return placed(setLeaf(v, texts), path, 0)
}

// adds reports whether a further value of the type is added to those before it, as flags are that
// may be repeated.
func adds(t reflect.Type) bool {
	return t == reflect.TypeFor[[]string]() || t == reflect.TypeFor[[]Fault]()
}

// placed adds path and line to the error of a leaf.
func placed(err error, path string, line int) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Path, e.Line = path, line
	}
	return err
}

// Text returns the value of the field at a path as Set reads it, "" where it is not stated. ok is
// false for a path that does not exist.
func (s *Scenario) Text(path string) (text string, ok bool) {
	v, f, ok := s.leaf(path)
	switch {
	case !ok:
		return "", false
	case empty(v, f):
		return "", true
	}
	return strings.Join(leafTexts(v), ","), true
}

// YAML returns the document. Without all it has only what was given; with all it has also the defaults
// of fields that the command has.
func (d *Document) YAML(command string, all bool) ([]byte, error) {
	s := d.Scenario
	s.APIVersion, s.Kind = APIVersion, Kind
	root := d.encode(reflect.ValueOf(&s).Elem(), "", func(path string, v reflect.Value, f reflect.StructField) bool {
		_, given := d.given[path]
		p, _ := Of(path)
		return given || path == "apiVersion" || path == "kind" || all && !empty(v, f) && s.has(p, command)
	})
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("encoding the scenario: %w", err)
	}
	return b.Bytes(), encoder.Close()
}

// encode makes a mapping of the leaves that include selects.
func (d *Document) encode(v reflect.Value, path string, include func(string, reflect.Value, reflect.StructField) bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		name := key(v.Type().Field(i))
		f, below := v.Field(i), join(path, name)
		var value *yaml.Node
		switch {
		case section(f.Type()):
			if value = d.encode(f, below, include); len(value.Content) == 0 {
				continue
			}
		case !include(below, f, v.Type().Field(i)):
			continue
		default:
			value = leafNode(f)
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	}
	return n
}

// leafNode returns a leaf in YAML: a scalar, or a list where there are several values.
func leafNode(v reflect.Value) *yaml.Node {
	scalar := func(text string, isString bool) *yaml.Node {
		n := new(yaml.Node)
		if isString {
			n.SetString(text)
		} else {
			*n = yaml.Node{Kind: yaml.ScalarNode, Value: text}
		}
		return n
	}
	texts := leafTexts(v)
	isString := stringly(v.Type())
	if schemas[v.Type()].number && len(texts) == 1 {
		_, err := strconv.ParseFloat(texts[0], 64)
		isString = err != nil
	}
	if len(texts) == 1 && v.Type() != reflect.TypeFor[[]string]() {
		return scalar(texts[0], isString)
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, text := range texts {
		n.Content = append(n.Content, scalar(text, isString))
	}
	if !isString {
		n.Style = yaml.FlowStyle
	}
	return n
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// isText reports whether a type reads itself from text.
func isText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textUnmarshaler) }

// section reports whether a type has fields of its own in a document.
func section(t reflect.Type) bool { return t.Kind() == reflect.Struct && !isText(t) }

// listed reports whether a document may have several values for the type.
func listed(t reflect.Type) bool { return t.Kind() == reflect.Slice && !isText(t) }

// stringly reports whether a leaf of the type is a string in YAML.
func stringly(t reflect.Type) bool {
	t = leafOf(t)
	return isText(t) || t.Kind() == reflect.String
}

// key returns the name of a field in a document.
func key(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func keys(t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		all = append(all, key(t.Field(i)))
	}
	return all
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// child returns the field of a section with a key.
func child(v reflect.Value, name string) (value reflect.Value, field reflect.StructField, ok bool) {
	for i := range v.NumField() {
		if f := v.Type().Field(i); key(f) == name {
			return v.Field(i), f, true
		}
	}
	return value, field, false
}

// leaf returns the value at a path, and its field; ok is false of a path that does not exist, or has fields below it.
func (s *Scenario) leaf(path string) (v reflect.Value, field reflect.StructField, ok bool) {
	v = reflect.ValueOf(s).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if !section(v.Type()) {
			return v, field, false
		}
		if v, field, ok = child(v, name); !ok {
			return v, field, false
		}
	}
	return v, field, !section(v.Type())
}

// wanted states what a leaf of the type takes.
func wanted(t reflect.Type) string {
	switch {
	case schemas[t].example != "":
		return "a text as in " + schemas[t].example
	case t.Kind() == reflect.Pointer:
		return wanted(t.Elem())
	case t.Kind() == reflect.Slice:
		switch {
		case t.Elem() == reflect.TypeFor[Duration]():
			return "a duration, or several as in 100ms,100ms"
		case t.Elem().Kind() == reflect.Int:
			return "a whole number, or several as in 200,400,800"
		case t.Elem().Kind() == reflect.Float64:
			return "a number, or several as in 100,500,1000"
		}
		return "a text, or a list of texts"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "a whole number"
	case t.Kind() == reflect.Uint64:
		return "a whole number, 0 or more"
	case t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a text"
}

// manyDigits is the text of errors about whole numbers that are too large.
const manyDigits = "a number of 64 bits at most"

// plain are the types of a list's values whose errors state what the list takes.
var plain = []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[float64](), reflect.TypeFor[Duration]()}

// setLeaf reads a leaf from its texts, of which one that is no list has one.
func setLeaf(v reflect.Value, texts []string) error {
	if listed(v.Type()) {
		list := reflect.MakeSlice(v.Type(), len(texts), len(texts))
		for i, text := range texts {
			if err := setLeaf(list.Index(i), []string{strings.TrimSpace(text)}); err != nil {
				if e, ok := errors.AsType[*Error](err); ok && slices.Contains(plain, v.Type().Elem()) && e.Want != manyDigits {
					e.Want = wanted(v.Type())
				}
				return err
			}
		}
		v.Set(list)
		return nil
	}
	text := texts[0]
	if isText(v.Type()) {
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		if err := setLeaf(to.Elem(), texts); err != nil {
			return err
		}
		v.Set(to)
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return wrong(text, wanted(v.Type()))
		}
		v.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.Atoi(text)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return wrong(text, manyDigits)
		case err != nil:
			return wrong(text, wanted(v.Type()))
		}
		v.SetInt(int64(n))
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return wrong(text, manyDigits)
		case err != nil:
			return wrong(text, wanted(v.Type()))
		}
		v.SetUint(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != n {
			return wrong(text, wanted(v.Type()))
		}
		v.SetFloat(n)
	default:
		return fmt.Errorf("a field of type %s cannot be set", v.Type())
	}
	return nil
}

// empty reports whether a leaf is not stated: it has the zero value, which its JSON omits.
func empty(v reflect.Value, f reflect.StructField) bool {
	return v.IsZero() && strings.Contains(f.Tag.Get("json"), ",omit")
}

// leafTexts returns the values of a leaf as setLeaf reads them; nil of a pointer that is nil.
func leafTexts(v reflect.Value) []string {
	switch {
	case listed(v.Type()):
		var all []string
		for i := range v.Len() {
			all = append(all, leafText(v.Index(i)))
		}
		return all
	case v.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case v.Kind() == reflect.Pointer:
		return []string{leafText(v.Elem())}
	}
	return []string{leafText(v)}
}

func leafText(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case fmt.Stringer:
		return value.String()
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	default:
		return fmt.Sprint(value)
	}
}
