package istio

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"scaler.mesh/scaler/internal/capture"
)

// durationField is the way to a field that is a duration.
type durationField []protoreflect.FieldDescriptor

func (f durationField) String() string {
	var names []string
	for _, part := range f {
		names = append(names, part.JSONName())
	}
	return strings.Join(names, ".")
}

// object returns an object whose only field is this one, with a value.
func (f durationField) object(value string) map[string]any {
	var of any = value
	for i := len(f) - 1; i >= 0; i-- {
		switch {
		case f[i].IsMap():
			of = map[string]any{f[i].JSONName(): map[string]any{"key": of}}
		case f[i].IsList():
			of = map[string]any{f[i].JSONName(): []any{of}}
		default:
			of = map[string]any{f[i].JSONName(): of}
		}
	}
	return of.(map[string]any)
}

// in returns the value of the field in a message.
func (f durationField) in(m protoreflect.Message) time.Duration {
	for _, part := range f {
		switch of := m.Get(part); {
		case part.IsMap():
			m = of.Map().Get(protoreflect.ValueOfString("key").MapKey()).Message()
		case part.IsList():
			m = of.List().Get(0).Message()
		default:
			m = of.Message()
		}
	}
	return m.Interface().(*durationpb.Duration).AsDuration()
}

// durations returns the fields below a message that are durations.
func durations(of protoreflect.MessageDescriptor, way durationField, above map[protoreflect.FullName]bool) (all []durationField) {
	if above[of.FullName()] {
		return nil
	}
	above[of.FullName()] = true
	defer delete(above, of.FullName())
	for i := range of.Fields().Len() {
		field := of.Fields().Get(i)
		message := field.Message()
		if field.IsMap() {
			message = field.MapValue().Message()
		}
		further := append(slices.Clip(way), field)
		switch {
		case message == nil:
		case message.FullName() == "google.protobuf.Duration":
			all = append(all, further)
		case !strings.HasPrefix(string(message.FullName()), "google.protobuf."):
			all = append(all, durations(message, further, above)...)
		}
	}
	return all
}

// Every duration of every kind is read as istiod's client reads it.
func TestDurations(t *testing.T) {
	found := 0
	for kind, message := range specs {
		for _, field := range durations(message().(proto.Message).ProtoReflect().Descriptor(), nil, map[protoreflect.FullName]bool{}) {
			found++
			for _, value := range []string{"60m", "30ms", "1h2m3.5s", "0.25s", "15m0s", "86400s"} {
				want, err := time.ParseDuration(value)
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(field.object(value))
				if err != nil {
					t.Fatal(err)
				}
				read := message()
				if err := read.UnmarshalJSON(text); err != nil {
					t.Errorf("%s: %s %s: %v", kind, field, value, err)
				} else if got := field.in(read.(proto.Message).ProtoReflect()); got != want {
					t.Errorf("%s: %s %s: got %v", kind, field, value, got)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d fields with durations, want more", found)
	}
}

func TestCheckMesh(t *testing.T) {
	object := func(apiVersion, kind, more string) string {
		return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: web, namespace: b}\n%s\n", apiVersion, kind, more)
	}
	for _, c := range []struct{ name, object, want string }{
		{"durations", object("networking.istio.io/v1", "DestinationRule", "spec: {host: web, trafficPolicy: {outlierDetection: {interval: 60m, baseEjectionTime: 3m30s}}}"), ""},
		{"no duration", object("networking.istio.io/v1", "DestinationRule", "spec: {host: web, trafficPolicy: {outlierDetection: {interval: soon}}}"),
			`mesh.yaml: document 9: DestinationRule b/web: spec: `},
		{"no specification", object("security.istio.io/v1", "AuthorizationPolicy", ""), ""},
		{"an empty one", object("security.istio.io/v1", "AuthorizationPolicy", "spec: {}"), ""},
		{"a field of another version", object("networking.istio.io/v1", "Sidecar", "spec: {laterField: {a: 1}}"), ""},
		{"a text for a number", object("networking.istio.io/v1", "ServiceEntry", "spec: {hosts: [a.example.com], ports: [{number: https, name: tls}]}"),
			"mesh.yaml: document 9: ServiceEntry b/web: spec: "},
		{"an enumeration", object("networking.istio.io/v1", "ServiceEntry", "spec: {hosts: [a.example.com], resolution: GUESS}"), "ServiceEntry b/web: spec: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			mesh, err := capture.Read("mesh.yaml", strings.NewReader(meshHead+c.object))
			if err != nil {
				t.Fatal(err)
			}
			if err := checkMesh(&mesh); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
