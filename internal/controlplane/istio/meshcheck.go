package istio

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	beta "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"

	"scaler.mesh/scaler/internal/capture"
)

// specs are the messages of the specifications of Istio's kinds; those that are missing are not
// checked before istiod does.
var specs = map[string]func() proto.Message{
	"AuthorizationPolicy":   func() proto.Message { return &security.AuthorizationPolicy{} },
	"DestinationRule":       func() proto.Message { return &networking.DestinationRule{} },
	"EnvoyFilter":           func() proto.Message { return &networking.EnvoyFilter{} },
	"Gateway":               func() proto.Message { return &networking.Gateway{} },
	"PeerAuthentication":    func() proto.Message { return &security.PeerAuthentication{} },
	"ProxyConfig":           func() proto.Message { return &beta.ProxyConfig{} },
	"RequestAuthentication": func() proto.Message { return &security.RequestAuthentication{} },
	"ServiceEntry":          func() proto.Message { return &networking.ServiceEntry{} },
	"Sidecar":               func() proto.Message { return &networking.Sidecar{} },
	"Telemetry":             func() proto.Message { return &telemetry.Telemetry{} },
	"VirtualService":        func() proto.Message { return &networking.VirtualService{} },
	"WasmPlugin":            func() proto.Message { return &extensions.WasmPlugin{} },
	"WorkloadEntry":         func() proto.Message { return &networking.WorkloadEntry{} },
	"WorkloadGroup":         func() proto.Message { return &networking.WorkloadGroup{} },
}

// position is what protojson puts before an error: a place in the JSON that it was given, which no
// file has.
var position = regexp.MustCompile(`^proto:.?\(line \d+:\d+\): `)

// checkMesh checks that the specification of each object of Istio's own kinds has fields and values
// that its message has. What they may be together, istiod's webhook checks when they are made.
func checkMesh(mesh *capture.Mesh) error {
	for _, o := range mesh.Objects {
		kind := o.GroupVersionKind()
		message, known := specs[kind.Kind]
		if capture.IsGatewayAPI(kind) || !known {
			continue
		}
		text, err := json.Marshal(o.Object["spec"])
		if err == nil {
			err = protojson.Unmarshal(text, message())
		}
		if err != nil {
			identity := capture.Identity(kind.Kind, o.GetNamespace(), o.GetName())
			place := mesh.Place(identity)
			if place != "" {
				place += ": "
			}
			return fmt.Errorf("%s%s: spec: %s: want a field and a value of %s", place, identity, position.ReplaceAllString(err.Error(), ""), strings.TrimSuffix(kind.GroupVersion().String(), "/"))
		}
	}
	return nil
}

// meshEnv keeps istiod from making Deployments for the Gateways of a captured mesh: the mesh has
// them.
func meshEnv(mesh *capture.Mesh) []string {
	for _, o := range mesh.Objects {
		if capture.IsGatewayAPI(o.GroupVersionKind()) {
			return []string{"PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER=false"}
		}
	}
	return nil
}
