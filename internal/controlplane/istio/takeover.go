package istio

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
)

// takeOver gives a ConfigMap of the installation what was captured: the configuration of the mesh or of injection.
func (c *ControlPlane) takeOver(obj *unstructured.Unstructured) error {
	switch as := c.opts.As; {
	case as == nil:
		return nil
	case obj.GetName() == c.named("istio"):
		return c.takeMeshConfig(obj, as)
	case obj.GetName() == c.named("istio-sidecar-injector") && as.Injection != nil:
		return c.takeInjection(obj, as)
	}
	return nil
}

// takeMeshConfig replaces the configuration of the mesh.
func (c *ControlPlane) takeMeshConfig(obj *unstructured.Unstructured, as *capture.Revision) error {
	config, _ := as.Configuration(c.serverName() + ":15012")
	if config == nil {
		return nil
	}
	stock, err := yamlOf(obj, "mesh")
	if err != nil {
		return err
	}
	c.note("meshConfig", stock, config)
	return setYAML(obj, "mesh", config)
}

// note keeps the settings in which a configuration differs from that of a stock installation, leaf by leaf.
func (c *ControlPlane) note(path string, stock, config map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		at := path + "." + name
		of, isMap := config[name].(map[string]any)
		if was, _ := stock[name].(map[string]any); isMap {
			c.note(at, was, of)
			continue
		}
		if text := leaf(config[name]); text != leaf(stock[name]) {
			c.configure(at, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stock)) {
		if _, there := config[name]; !there {
			c.configure(path+"."+name, "none")
		}
	}
}

// configure keeps a setting in which the configuration differs from that of a stock installation.
func (c *ControlPlane) configure(path, value string) {
	if c.configured == nil {
		c.configured = map[string]string{}
	}
	c.configured[path] = value
}

// leaf returns a value of a configuration as text.
func leaf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// takeInjection replaces the configuration of injection. An istiod of the captured minor version takes over all of it:
// templates need the functions and values of their version. Another one gets the templates that no installation has
// by itself. The labels of namespaces and pods alone decide which pods are injected.
func (c *ControlPlane) takeInjection(obj *unstructured.Unstructured, as *capture.Revision) error {
	config, err := yamlOf(obj, "config")
	if err != nil {
		return err
	}
	templates, _ := config["templates"].(map[string]any)
	var own []string
	for name := range as.Injection.Templates {
		if _, stock := templates[name]; !stock {
			own = append(own, name)
		}
	}
	slices.Sort(own)
	if c.sameLine(as) {
		taken := map[string]any{"templates": templates}
		for name, value := range as.Injection.Config {
			taken[name] = value
		}
		config, own = taken, slices.Sorted(maps.Keys(as.Injection.Templates))
		if err := c.takeValues(obj, as); err != nil {
			return err
		}
	}
	changed := []string{}
	for _, name := range own {
		if text := as.Injection.Templates[name]; templates[name] == nil || strings.TrimSpace(text) != strings.TrimSpace(fmt.Sprint(templates[name])) {
			changed = append(changed, name)
		}
		templates[name] = as.Injection.Templates[name]
	}
	if len(changed) > 0 {
		c.configure("injection.templates", strings.Join(changed, ","))
	}
	config["templates"], config["policy"] = templates, "enabled"
	config["alwaysInjectSelector"], config["neverInjectSelector"] = []any{}, []any{}
	return setYAML(obj, "config", config)
}

// sameLine reports whether the captured control plane is of the line of versions that runs.
func (c *ControlPlane) sameLine(as *capture.Revision) bool {
	line := component.IstioLine(as.Release())
	return line != "" && line == component.IstioLine(c.report.Version)
}

// takeValues replaces the values that templates are executed with, but for what the installation is called and where it is.
func (c *ControlPlane) takeValues(obj *unstructured.Unstructured, as *capture.Revision) error {
	if as.Injection.Values == nil {
		return nil
	}
	stock, err := yamlOf(obj, "values")
	if err != nil {
		return err
	}
	values := (&unstructured.Unstructured{Object: as.Injection.Values}).DeepCopy().Object
	for _, path := range ownValues {
		fields := strings.Split(path, ".")
		value, there, err := unstructured.NestedFieldCopy(stock, fields...)
		if err == nil && there {
			err = unstructured.SetNestedField(values, value, fields...)
		} else {
			unstructured.RemoveNestedField(values, fields...)
		}
		if err != nil {
			return fmt.Errorf("taking over the values of injection: %s: %w", path, err)
		}
	}
	c.note("values", stock, values)
	return setYAML(obj, "values", values)
}

// ownValues are the values that say what the replay's own installation is called, where it is, and which parts it has.
var ownValues = []string{
	"revision", "global.istioNamespace", "global.multiCluster", "global.network", "global.remotePilotAddress", "global.externalIstiod", "global.caAddress", "global.caName",
	"global.pilotCertProvider", "global.proxy.clusterDomain", "global.trustBundleName", "global.hub", "global.tag", "global.variant", "pilot.env",
}

// yamlOf reads a field of a ConfigMap.
func yamlOf(obj *unstructured.Unstructured, key string) (map[string]any, error) {
	text, _, _ := unstructured.NestedString(obj.Object, "data", key)
	value := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s, data.%s: %w", obj.GetName(), key, err)
	}
	return value, nil
}

// setYAML writes a field of a ConfigMap.
func setYAML(obj *unstructured.Unstructured, key string, value map[string]any) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s, data.%s: %w", obj.GetName(), key, err)
	}
	return unstructured.SetNestedField(obj.Object, string(text), "data", key)
}
