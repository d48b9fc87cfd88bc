package xdsprobe

import (
	"sync"
	"unicode/utf8"

	udpav1 "github.com/cncf/xds/go/udpa/type/v1"
	xdsv3 "github.com/cncf/xds/go/xds/type/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	wasmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"scaler.mesh/scaler/pkg/convergence"
)

// shape describes a message type: enough to decide whether bytes are a valid message of
// it, at every depth, without decoding them into one, and to compute the digest of their
// content.
type shape struct {
	fields map[protowire.Number]*field
	any    bool // it is google.protobuf.Any
	mapped bool // a map may be in it, in some depth, or something in an Any
}

type field struct {
	wire   protowire.Type
	packed protowire.Type // element type of a packable repeated field, else BytesType
	text   bool           // must be UTF-8
	nested *shape         // of a message field
	isMap  bool           // it is an entry of a map
}

// shapes holds the shapes of the message types that are checked.
type shapes struct {
	envoy                 map[convergence.Type]*shape
	resources             map[string]*shape // by type URL: those, and secrets
	sotw, delta, resource *shape

	// packed maps type URLs to the messages that an Any may contain and that are read, or
	// hold maps: those of Envoy that istiod and the reference control plane send. Istio's
	// own (stats.PluginConfig) are not included.
	packed map[string]*shape
}

// known builds the shapes on first use.
var known = sync.OnceValue(func() *shapes {
	built := make(map[protoreflect.FullName]*shape)
	of := func(m proto.Message) *shape { return shapeOf(m.ProtoReflect().Descriptor(), built) }
	all := &shapes{
		envoy: map[convergence.Type]*shape{
			convergence.CDS:  of(&clusterv3.Cluster{}),
			convergence.EDS:  of(&endpointv3.ClusterLoadAssignment{}),
			convergence.LDS:  of(&listenerv3.Listener{}),
			convergence.RDS:  of(&routev3.RouteConfiguration{}),
			convergence.ECDS: of(&corev3.TypedExtensionConfig{}),
		},

		sotw:     of(&discoveryv3.DiscoveryResponse{}),
		delta:    of(&discoveryv3.DeltaDiscoveryResponse{}),
		resource: of(&discoveryv3.Resource{}),

		packed: make(map[string]*shape),
	}
	all.resources = map[string]*shape{
		clusterURL: all.envoy[convergence.CDS], assignmentURL: all.envoy[convergence.EDS], listenerURL: all.envoy[convergence.LDS],
		routeURL: all.envoy[convergence.RDS], extensionURL: all.envoy[convergence.ECDS], secretURL: of(&tlsv3.Secret{}),
	}
	for _, m := range []proto.Message{
		&hcmv3.HttpConnectionManager{}, &tcpproxyv3.TcpProxy{}, &networkrbacv3.RBAC{},
		&httprbacv3.RBAC{}, &faultv3.HTTPFault{}, &routerv3.Router{}, &jwtv3.JwtAuthentication{}, &wasmv3.Wasm{}, &corev3.TypedExtensionConfig{},
		&httpv3.HttpProtocolOptions{}, &tlsv3.DownstreamTlsContext{}, &tlsv3.UpstreamTlsContext{},
		&filev3.FileAccessLog{}, &udpav1.TypedStruct{}, &xdsv3.TypedStruct{},
	} {
		all.packed[typePrefix+string(m.ProtoReflect().Descriptor().FullName())] = of(m)
	}
	for grown := true; grown; {
		grown = false
		for _, s := range built {
			if !s.mapped && s.mayHoldMaps() {
				s.mapped, grown = true, true
			}
		}
	}
	return all
})

const typePrefix = "type.googleapis.com/"

// mayHoldMaps reports whether any nested shape may hold maps, as far as they are known
// already.
func (s *shape) mayHoldMaps() bool {
	if s.any {
		return true
	}
	for _, f := range s.fields {
		if f.isMap || f.nested != nil && f.nested.mapped {
			return true
		}
	}
	return false
}

// shapeOf returns the shape of a message type. Types may contain themselves, so the shape
// is added to built before its fields are examined.
func shapeOf(d protoreflect.MessageDescriptor, built map[protoreflect.FullName]*shape) *shape {
	if s := built[d.FullName()]; s != nil {
		return s
	}
	s := &shape{fields: make(map[protowire.Number]*field, d.Fields().Len()), any: d.FullName() == "google.protobuf.Any"}
	built[d.FullName()] = s
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		f := &field{wire: wireType(fd.Kind()), packed: protowire.BytesType, isMap: fd.IsMap()}
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
