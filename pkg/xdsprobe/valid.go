package xdsprobe

import (
	"sync"
	"unicode/utf8"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// shape is what has to be known of a message type to tell whether bytes are a
// valid message of it, in all its depth, without making one.
type shape struct {
	fields map[protowire.Number]*field
}

type field struct {
	wire   protowire.Type
	packed protowire.Type // element type of a packable repeated field, else BytesType
	text   bool           // must be UTF-8
	nested *shape         // of a message field
}

// shapes are the message types that are checked.
type shapes struct {
	cluster, assignment, listener, route, extension, manager *shape
	httpRBAC, networkRBAC, tls                               *shape
	sotw, delta, resource                                    *shape
}

// known builds the shapes on first use.
var known = sync.OnceValue(func() *shapes {
	built := make(map[protoreflect.FullName]*shape)
	of := func(m proto.Message) *shape { return shapeOf(m.ProtoReflect().Descriptor(), built) }
	return &shapes{
		cluster:    of(&clusterv3.Cluster{}),
		assignment: of(&endpointv3.ClusterLoadAssignment{}),
		listener:   of(&listenerv3.Listener{}),
		route:      of(&routev3.RouteConfiguration{}),
		extension:  of(&corev3.TypedExtensionConfig{}),
		manager:    of(&hcmv3.HttpConnectionManager{}),

		httpRBAC:    of(&httprbacv3.RBAC{}),
		networkRBAC: of(&networkrbacv3.RBAC{}),
		tls:         of(&tlsv3.DownstreamTlsContext{}),

		sotw:     of(&discoveryv3.DiscoveryResponse{}),
		delta:    of(&discoveryv3.DeltaDiscoveryResponse{}),
		resource: of(&discoveryv3.Resource{}),
	}
})

// shapeOf returns the shape of a message type. Types may contain themselves, so
// it is entered into built before its fields are looked at.
func shapeOf(d protoreflect.MessageDescriptor, built map[protoreflect.FullName]*shape) *shape {
	if s := built[d.FullName()]; s != nil {
		return s
	}
	s := &shape{fields: make(map[protowire.Number]*field, d.Fields().Len())}
	built[d.FullName()] = s
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		f := &field{wire: wireType(fd.Kind()), packed: protowire.BytesType}
		switch {
		case fd.Message() != nil:
			f.nested = shapeOf(fd.Message(), built)
		case fd.Kind() == protoreflect.StringKind:
			f.text = fd.Syntax() == protoreflect.Proto3
		case fd.IsList():
			f.packed = f.wire
		}
		s.fields[fd.Number()] = f
	}
	return s
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	default:
		return protowire.VarintType
	}
}

// valid reports whether proto.Unmarshal would accept b.
func (s *shape) valid(b []byte) bool {
	return s.validAt(b, protowire.DefaultRecursionLimit)
}

func (s *shape) validAt(b []byte, depth int) bool {
	if depth--; depth < 0 {
		return false
	}
	m := read(b)
	for m.next() {
		if !s.validField(&m, depth) {
			return false
		}
	}
	return m.err == nil
}

// validField checks the field that m stands at.
func (s *shape) validField(m *message, depth int) bool {
	if m.wire != protowire.BytesType {
		return true // next has checked it
	}
	f := s.fields[m.number]
	if f == nil {
		return true
	}
	switch {
	case f.packed != protowire.BytesType:
		return validPacked(m.bytes, f.packed)
	case f.nested != nil && f.wire == protowire.BytesType:
		return f.nested.validAt(m.bytes, depth)
	case f.text:
		return utf8.Valid(m.bytes)
	}
	return true
}

func validPacked(b []byte, element protowire.Type) bool {
	for len(b) > 0 {
		n := protowire.ConsumeFieldValue(1, element, b)
		if n < 0 {
			return false
		}
		b = b[n:]
	}
	return true
}
