package diff

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// node is a value of a message in the form in which two sides are compared: an Any is what is in it,
// a well-known type is its text, and what the rules remove is gone.
type node struct {
	kind   nodeKind
	typ    protoreflect.FullName // of a message
	fields []field               // of a message by number, of a map by key
	items  []*node               // of a list; sorted by sum if it is a set
	set    bool                  // a list whose order has no meaning
	text   string                // of a scalar
	sum    uint64                // of all that is in it
	size   int                   // encoded, without tag and length
}

type nodeKind byte

const (
	message nodeKind = iota
	mapping
	list
	word   // a scalar that is text
	number // any other scalar
)

type field struct {
	name  string
	value *node
}

// get returns the value of a field; nil if it is not set.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// maxDepth bounds messages inside each other: no configuration of Envoy has as many.
const maxDepth = 100

// reader makes nodes of messages of one side.
type reader struct {
	Options
	names  names
	opaque map[string]bool // types that are not known, by type URL
}

// resource reads an encoded resource of a type URL's message.
func (r *reader) resource(name protoreflect.FullName, encoded []byte) (*node, error) {
	m, err := decode(name, encoded)
	if err != nil {
		return nil, err
	}
	return r.message(m, 0)
}

func decode(name protoreflect.FullName, encoded []byte) (protoreflect.Message, error) {
	types, err := workloadTypes()
	if err != nil {
		return nil, err
	}
	t, own := types[name]
	if !own {
		if t, err = protoregistry.GlobalTypes.FindMessageByName(name); err != nil {
			return nil, err
		}
	}
	m := t.New()
	return m, proto.UnmarshalOptions{RecursionLimit: 2 * maxDepth}.Unmarshal(encoded, m.Interface())
}

// message reads a message. Fields that are not known stay, as bytes: a newer control plane may send
// them.
func (r *reader) message(m protoreflect.Message, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("reading a %s: want at most %d messages inside each other", m.Descriptor().FullName(), maxDepth)
	}
	if n, err := r.wellKnown(m, depth); n != nil || err != nil {
		return n, err
	}
	n := &node{kind: message, typ: m.Descriptor().FullName(), size: proto.Size(m.Interface())}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !m.Has(fd) || fd.FullName() == chosenAnew && !r.off(nodes) {
			continue
		}
		v, err := r.field(n.typ, fd, m.Get(fd), depth)
		if err != nil {
			return nil, err
		}
		n.fields = append(n.fields, field{string(fd.Name()), v})
	}
	if raw := m.GetUnknown(); len(raw) > 0 {
		r.opaque[string(n.typ)+" (fields that are not known)"] = true
		n.fields = append(n.fields, field{"unknown_fields", leaf(number, bytesText(raw), len(raw))})
	}
	return n.hashed(), nil
}

func (r *reader) field(of protoreflect.FullName, fd protoreflect.FieldDescriptor, v protoreflect.Value, depth int) (*node, error) {
	tag := protowire.SizeTag(fd.Number())
	switch {
	case fd.IsMap():
		n := &node{kind: mapping}
		var err error
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			var entry *node
			if entry, err = r.single(fd.MapValue(), v, depth); err == nil {
				if k.String() == versionKey && !r.off(versions) {
					entry = leaf(word, "(version)", entry.size)
				}
				n.fields = append(n.fields, field{r.names.in(k.String()), entry})
				n.size += tag + protowire.SizeBytes(len(k.String())+entry.size+4)
			}
			return err == nil
		})
		slices.SortFunc(n.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
		return n.hashed(), err
	case fd.IsList():
		n := &node{kind: list}
		for i := range v.List().Len() {
			item, err := r.single(fd, v.List().Get(i), depth)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
			n.size += tag + protowire.SizeBytes(item.size)
		}
		if !r.off(order) && unordered[string(of)+"."+string(fd.Name())] {
			n.set = true
			slices.SortStableFunc(n.items, func(a, b *node) int { return cmp.Compare(a.sum, b.sum) })
		}
		return n.hashed(), nil
	default:
		return r.single(fd, v, depth)
	}
}

// single reads a value that is no list and no map.
func (r *reader) single(fd protoreflect.FieldDescriptor, v protoreflect.Value, depth int) (*node, error) {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return r.message(v.Message(), depth+1)
	case protoreflect.StringKind:
		return leaf(word, r.names.in(v.String()), len(v.String())), nil
	case protoreflect.BytesKind:
		if text, ok := addressText(fd, v.Bytes()); ok {
			return leaf(word, r.names.in(text), len(v.Bytes())), nil
		}
		return leaf(number, bytesText(v.Bytes()), len(v.Bytes())), nil
	case protoreflect.EnumKind:
		if value := fd.Enum().Values().ByNumber(v.Enum()); value != nil {
			return leaf(number, string(value.Name()), 1), nil
		}
		return leaf(number, strconv.Itoa(int(v.Enum())), 2), nil
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return leaf(number, v.String(), 8), nil
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return leaf(number, v.String(), 4), nil
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind:
		return leaf(number, v.String(), protowire.SizeVarint(v.Uint())), nil
	case protoreflect.BoolKind:
		return leaf(number, v.String(), 1), nil
	default:
		return leaf(number, v.String(), protowire.SizeVarint(uint64(v.Int()))), nil
	}
}

// bytesText returns short bytes as base64, and the digest of longer ones.
func bytesText(b []byte) string {
	if len(b) <= 24 {
		return "base64 " + base64.StdEncoding.EncodeToString(b)
	}
	return fmt.Sprintf("%d bytes with digest %016x", len(b), xxhash.Sum64(b))
}

func leaf(kind nodeKind, text string, size int) *node {
	return (&node{kind: kind, text: text, size: size}).hashed()
}

// hashed fills in the sum.
func (n *node) hashed() *node {
	h := xxhash.New()
	put := func(text string) {
		_, _ = h.Write(protowire.AppendVarint(nil, uint64(len(text))))
		_, _ = h.WriteString(text)
	}
	putSum := func(sum uint64) { _, _ = h.Write(protowire.AppendFixed64(nil, sum)) }
	_, _ = h.Write([]byte{byte(n.kind)})
	put(string(n.typ))
	put(n.text)
	for _, f := range n.fields {
		put(f.name)
		putSum(f.value.sum)
	}
	for _, item := range n.items {
		putSum(item.sum)
	}
	n.sum = h.Sum64()
	return n
}

// wellKnown reads messages that are no more than a value; nil for any other.
func (r *reader) wellKnown(m protoreflect.Message, depth int) (*node, error) {
	name := m.Descriptor().FullName()
	get := func(number protoreflect.FieldNumber) protoreflect.Value {
		return m.Get(m.Descriptor().Fields().ByNumber(number))
	}
	size := proto.Size(m.Interface())
	switch name {
	case "google.protobuf.Any":
		return r.any(get(1).String(), get(2).Bytes(), depth)
	case "google.protobuf.Duration", "google.protobuf.Timestamp":
		seconds, nanos := get(1).Int(), get(2).Int()
		text := strconv.FormatInt(seconds, 10)
		if nanos != 0 {
			text = strings.TrimRight(fmt.Sprintf("%d.%09d", seconds, nanos), "0")
		}
		return leaf(number, text+"s", size), nil
	case "google.protobuf.BoolValue", "google.protobuf.UInt32Value", "google.protobuf.UInt64Value", "google.protobuf.Int32Value",
		"google.protobuf.Int64Value", "google.protobuf.DoubleValue", "google.protobuf.FloatValue":
		return leaf(number, get(1).String(), size), nil
	case "google.protobuf.StringValue":
		return leaf(word, r.names.in(get(1).String()), size), nil
	case "envoy.type.v3.Percent":
		return leaf(number, get(1).String()+"%", size), nil
	case "google.protobuf.Value":
		which := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
		if which == nil {
			return leaf(number, "null", size), nil
		}
		return r.single(which, m.Get(which), depth)
	case "google.protobuf.Struct", "google.protobuf.ListValue":
		fd := m.Descriptor().Fields().Get(0)
		n, err := r.field(name, fd, m.Get(fd), depth)
		if n != nil {
			n.size = size
		}
		return n, err
	}
	return nil, nil
}

// any reads what is in an Any.
func (r *reader) any(url string, encoded []byte, depth int) (*node, error) {
	name := protoreflect.FullName(url[strings.LastIndex(url, "/")+1:])
	if m, err := decode(name, encoded); err == nil {
		n, err := r.message(m, depth+1)
		if err != nil {
			return nil, err
		}
		if n.typ == "" { // a well-known type: what it is of remains to be seen
			n = (&node{kind: message, typ: name, fields: []field{{"value", n}}}).hashed()
		}
		n.size = len(url) + len(encoded) + 6
		return n, nil
	}
	if len(encoded) > 0 || name != "" { // else it is empty
		r.opaque[string(name)] = true
	}
	return (&node{
		kind: message, typ: name, size: len(url) + len(encoded) + 6,
		fields: []field{{"value", leaf(number, bytesText(encoded), len(encoded))}},
	}).hashed(), nil
}

// String returns the node as one line, in the style of protobuf's text format.
func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	switch n.kind {
	case message, mapping:
		b.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(f.name)
			b.WriteString(": ")
			f.value.write(b)
		}
		b.WriteByte('}')
	case list:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(", ")
			}
			item.write(b)
		}
		b.WriteByte(']')
	case word:
		b.WriteString(strconv.Quote(n.text))
	default:
		b.WriteString(n.text)
	}
}
