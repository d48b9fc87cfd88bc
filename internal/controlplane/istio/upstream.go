package istio

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// upstreamEnvironment turns off the filters that are in Istio's Envoy alone.
var upstreamEnvironment = []string{"PILOT_ENABLE_METADATA_EXCHANGE=false", "PILOT_ENABLE_ALPN_FILTER=false"}

// adaptMeshConfig takes out of the mesh configuration, with real sidecars, what
// needs Istio's own statistics filter, and the agent's merging of an
// application's metrics with it. In a mixed mesh it adds what the ambient profile has for sidecars.
func (c *ControlPlane) adaptMeshConfig(obj *unstructured.Unstructured) error {
	text, found, _ := unstructured.NestedString(obj.Object, "data", "mesh")
	if !c.opts.RealSidecars && !c.mixed() || !found {
		return nil
	}
	mesh := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &mesh); err != nil {
		return fmt.Errorf("reading the mesh configuration: %w", err)
	}
	if c.opts.RealSidecars {
		delete(mesh, "defaultProviders")
		mesh["enablePrometheusMerge"] = false
	}
	if c.mixed() {
		if err := unstructured.SetNestedField(mesh, "true", "defaultConfig", "proxyMetadata", hboneSetting); err != nil {
			return fmt.Errorf("changing the mesh configuration: %w", err)
		}
	}
	adapted, err := yaml.Marshal(mesh)
	if err != nil {
		return fmt.Errorf("writing the mesh configuration: %w", err)
	}
	return unstructured.SetNestedField(obj.Object, string(adapted), "data", "mesh")
}
