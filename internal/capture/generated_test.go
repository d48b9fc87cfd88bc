package capture

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	beta "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// messages are the specifications of Istio's kinds.
var messages = map[string]proto.Message{
	"networking.istio.io/v1 DestinationRule":        &networking.DestinationRule{},
	"networking.istio.io/v1alpha3 EnvoyFilter":      &networking.EnvoyFilter{},
	"networking.istio.io/v1 Gateway":                &networking.Gateway{},
	"networking.istio.io/v1beta1 ProxyConfig":       &beta.ProxyConfig{},
	"networking.istio.io/v1 ServiceEntry":           &networking.ServiceEntry{},
	"networking.istio.io/v1 Sidecar":                &networking.Sidecar{},
	"networking.istio.io/v1 VirtualService":         &networking.VirtualService{},
	"networking.istio.io/v1 WorkloadEntry":          &networking.WorkloadEntry{},
	"networking.istio.io/v1 WorkloadGroup":          &networking.WorkloadGroup{},
	"security.istio.io/v1 AuthorizationPolicy":      &security.AuthorizationPolicy{},
	"security.istio.io/v1 PeerAuthentication":       &security.PeerAuthentication{},
	"security.istio.io/v1 RequestAuthentication":    &security.RequestAuthentication{},
	"telemetry.istio.io/v1 Telemetry":               &telemetry.Telemetry{},
	"extensions.istio.io/v1alpha1 WasmPlugin":       &extensions.WasmPlugin{},
	"extensions.istio.io/v1alpha1 TrafficExtension": &extensions.TrafficExtension{},
}

// FuzzGenerated checks of a mesh with an object of each of Istio's kinds, whose fields are filled from a seed, what TestCorpus checks of files,
// and that istio.io/api reads from it what it wrote.
func FuzzGenerated(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		fill := generator{rand.New(rand.NewPCG(seed, 0))}
		g, all, made := NewGatherer(), []*unstructured.Unstructured{}, map[string]proto.Message{}
		for _, r := range configuration {
			kind := r.GroupVersion().String() + " " + r.Kind
			if messages[kind] == nil {
				continue
			}
			message := messages[kind].ProtoReflect().New()
			fill.message(message, 0)
			text, err := protojson.Marshal(message.Interface())
			if err != nil {
				t.Fatal(err)
			}
			value := fmt.Appendf(nil, `{"apiVersion": %q, "kind": %q, "metadata": {"name": %q, "namespace": "shop"}, "spec": %s}`, r.GroupVersion(), r.Kind, strings.ToLower(r.Kind), text)
			if err := g.addValue(value); err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{}
			if err := json.Unmarshal(value, &o.Object); err != nil {
				t.Fatal(err)
			}
			all, made[kind] = append(all, whole(o)), message.Interface()
		}
		if len(made) != len(messages) {
			t.Fatalf("%d kinds, want %d", len(made), len(messages))
		}
		m := g.Mesh()
		checkWhole(t, all, m)
		again := readAgain(t, m)
		if len(again.Objects) != len(made) {
			t.Errorf("%d objects, want %d: %v", len(again.Objects), len(made), m.LeftOut)
		}
		for _, o := range again.Objects {
			want := made[o.GetAPIVersion()+" "+o.GetKind()]
			text, err := json.Marshal(o.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			got := want.ProtoReflect().New().Interface()
			if err := protojson.Unmarshal(text, got); err != nil {
				t.Errorf("%s: %v", o.GetKind(), err)
			} else if !proto.Equal(got, want) {
				t.Errorf("%s is read as\n%v\nand was\n%v", o.GetKind(), got, want)
			}
		}
		checkProperty(t, m)
	})
}

// texts has texts that YAML could take for something else, and some with a meaning in a mesh.
var texts = []string{
	"cart", "cart.shop.svc.cluster.local", "*.example.com", "*", "shop/*", "./cart", "mesh", "10.0.0.0/8", "fd00::1", "cluster.local/ns/shop/sa/cart", "%START_TIME%", "x-tenant", ":authority",
	"", "true", "no", "null", "~", "0123", "1e3", "0x1F", "0o17", "1_000", "12:30:45", "2001-01-01", ".inf", ".5", "-", "--- a", "...", "- a", "a: b", "# a", "a #b", "!a", "&a", "*a", "<<", "%", "@a", "`", "{}", "[a]",
	"\"", "'", " a", "a ", "a\nb", "a\n", "\n", "\ta", "a\r\nb", "\u0085", "\u2028", "\ufeff", "\uffff", "\u009f", "ü", "😀", "\x00", "\x7f", "5s", "istio.io/rev", strings.Repeat("long ", 300),
}

// generator fills messages with what chance says.
type generator struct{ *rand.Rand }

// deepest is the depth to which messages are nested.
const deepest = 5

func (g generator) message(m protoreflect.Message, depth int) {
	switch m.Descriptor().FullName() {
	case "google.protobuf.Duration":
		seconds := []int64{0, 1, 59, 3600, 315_576_000_000}[g.IntN(5)]
		nanos := []int32{0, 1, 500_000_000, 999_999_999}[g.IntN(4)]
		if seconds == 315_576_000_000 {
			nanos = 0 // the longest
		}
		m.Set(m.Descriptor().Fields().ByName("seconds"), protoreflect.ValueOfInt64(seconds))
		m.Set(m.Descriptor().Fields().ByName("nanos"), protoreflect.ValueOfInt32(nanos))
		return
	case "google.protobuf.Timestamp":
		m.Set(m.Descriptor().Fields().ByName("seconds"), protoreflect.ValueOfInt64(g.Int64N(1<<32)))
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if one := f.ContainingOneof(); one != nil && !one.IsSynthetic() && f != one.Fields().Get(0) {
			continue
		} else if one != nil && !one.IsSynthetic() {
			f = one.Fields().Get(g.IntN(one.Fields().Len()))
		}
		isValue := m.Descriptor().FullName() == "google.protobuf.Value" // which has to be one
		if !isValue && (g.IntN(3) == 0 || f.Message() != nil && !f.IsMap() && depth >= deepest) {
			continue
		}
		if isValue && depth >= deepest {
			f = fields.ByName("string_value")
		}
		switch {
		case f.IsMap():
			for range g.IntN(3) {
				m.Mutable(f).Map().Set(g.scalar(f.MapKey()).MapKey(), g.value(f.MapValue(), depth, m.Mutable(f).Map().NewValue))
			}
		case f.IsList():
			for range g.IntN(3) {
				m.Mutable(f).List().Append(g.value(f, depth, m.Mutable(f).List().NewElement))
			}
		default:
			m.Set(f, g.value(f, depth, func() protoreflect.Value { return m.NewField(f) }))
		}
	}
}

func (g generator) value(f protoreflect.FieldDescriptor, depth int, empty func() protoreflect.Value) protoreflect.Value {
	if f.Message() == nil {
		return g.scalar(f)
	}
	value := empty()
	g.message(value.Message(), depth+1)
	return value
}

func (g generator) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(g.IntN(2) == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(g.IntN(f.Enum().Values().Len())).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind:
		return protoreflect.ValueOfInt32([]int32{0, 1, -1, 8080, math.MaxInt32, math.MinInt32}[g.IntN(6)])
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32([]uint32{0, 1, 8080, math.MaxUint32}[g.IntN(4)])
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64([]int64{0, -1, 8080, math.MaxInt64, math.MinInt64}[g.IntN(5)])
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64([]uint64{0, 1, 8080, math.MaxUint64}[g.IntN(4)])
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32([]float32{0, 0.1, -2.5, 1e30}[g.IntN(4)])
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0, 0.1, -2.5, 1e6, 1e21, 1 << 53, math.MaxFloat64, 5e-324}[g.IntN(8)])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(texts[g.IntN(len(texts))]))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(texts[g.IntN(len(texts))])
	}
	panic(fmt.Sprintf("%s is of kind %v", f.FullName(), f.Kind()))
}
