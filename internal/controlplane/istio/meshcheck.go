package istio

import (
	"encoding/json"
	"fmt"
	"strings"

	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	beta "istio.io/api/networking/v1beta1"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"

	"scaler.mesh/scaler/internal/capture"
)

// specs makes the messages of the specifications of Istio's kinds; those that are missing are not
// checked before istiod does.
var specs = map[string]func() json.Unmarshaler{
	"AuthorizationPolicy":   func() json.Unmarshaler { return &security.AuthorizationPolicy{} },
	"DestinationRule":       func() json.Unmarshaler { return &networking.DestinationRule{} },
	"EnvoyFilter":           func() json.Unmarshaler { return &networking.EnvoyFilter{} },
	"Gateway":               func() json.Unmarshaler { return &networking.Gateway{} },
	"PeerAuthentication":    func() json.Unmarshaler { return &security.PeerAuthentication{} },
	"ProxyConfig":           func() json.Unmarshaler { return &beta.ProxyConfig{} },
	"RequestAuthentication": func() json.Unmarshaler { return &security.RequestAuthentication{} },
	"ServiceEntry":          func() json.Unmarshaler { return &networking.ServiceEntry{} },
	"Sidecar":               func() json.Unmarshaler { return &networking.Sidecar{} },
	"Telemetry":             func() json.Unmarshaler { return &telemetry.Telemetry{} },
	"TrafficExtension":      func() json.Unmarshaler { return &extensions.TrafficExtension{} },
	"VirtualService":        func() json.Unmarshaler { return &networking.VirtualService{} },
	"WasmPlugin":            func() json.Unmarshaler { return &extensions.WasmPlugin{} },
	"WorkloadEntry":         func() json.Unmarshaler { return &networking.WorkloadEntry{} },
	"WorkloadGroup":         func() json.Unmarshaler { return &networking.WorkloadGroup{} },
}

// checkMesh checks that istiod can read the specification of each object of Istio's own kinds. It reads
// them as istiod's client does, by the methods that istio.io/api generates: durations are those of Go,
// as in 60m, and fields that this version does not know are ignored, as the API server drops them. What
// the values may be together, istiod's webhook checks when the objects are made.
func checkMesh(mesh *capture.Mesh) error {
	for _, o := range mesh.Objects {
		kind := o.GroupVersionKind()
		message, known := specs[kind.Kind]
		spec, written := o.Object["spec"]
		if capture.IsGatewayAPI(kind) || !known || !written {
			continue
		}
		text, err := json.Marshal(spec)
		if err == nil {
			err = message().UnmarshalJSON(text)
		}
		if err != nil {
			identity := capture.Identity(kind.Kind, o.GetNamespace(), o.GetName())
			place := mesh.Place(identity)
			if place != "" {
				place += ": "
			}
			return fmt.Errorf("%s%s: spec: %w: want a value of %s", place, identity, err, strings.TrimSuffix(kind.GroupVersion().String(), "/"))
		}
	}
	return nil
}

// meshEnv keeps istiod from making Deployments for the Gateways of a captured mesh: the mesh has
// them. With waypoints it makes these, and leaves other Gateways alone by their annotation.
func meshEnv(mesh *capture.Mesh) []string {
	if len(mesh.Waypoints) > 0 {
		return nil
	}
	for _, o := range mesh.Objects {
		if capture.IsGatewayAPI(o.GroupVersionKind()) {
			return []string{"PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER=false"}
		}
	}
	return nil
}
