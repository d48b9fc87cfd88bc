package istio

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	mesh "istio.io/api/mesh/v1alpha1"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/mask"
	"scaler.mesh/scaler/pkg/record"
)

// Beginnings of the paths of settings, as an IstioOperator has them: the configuration of the mesh, and the values that
// templates of injection are executed with.
const (
	meshRoot   = "meshConfig."
	valuesRoot = "values."
)

// pathSetting is one of controlPlane.set.
type pathSetting struct {
	root, path string // the path is below the root
	value      any    // as JSON has it
}

func (s pathSetting) fields() []string { return strings.Split(s.path, ".") }

// readSetting reads PATH=VALUE, whose value is YAML.
func readSetting(text string) (s pathSetting, err error) {
	path, value, ok := strings.Cut(text, "=")
	for _, root := range []string{meshRoot, valuesRoot} {
		if below, is := strings.CutPrefix(path, root); is && !slices.Contains(strings.Split(below, "."), "") {
			s.root, s.path = root, below
		}
	}
	if !ok || s.root == "" {
		return s, fmt.Errorf("%sPATH=VALUE or %sPATH=VALUE", meshRoot, valuesRoot)
	}
	if err := yaml.Unmarshal([]byte(value), &s.value); err != nil {
		return s, errors.New("a value in YAML")
	}
	return s, nil
}

// errValue does not have the value, which may be a secret.
var errValue = errors.New("a value that this field of MeshConfig takes")

// checkSetting states what is wanted in place of a setting that istiod cannot have, or that a run decides itself.
func checkSetting(text string) error {
	s, err := readSetting(text)
	if err != nil {
		return err
	}
	own := fmt.Errorf("another one than %s, which the run decides, or of which it decides a part", s.root+s.path)
	if s.root == valuesRoot {
		if slices.ContainsFunc(ownValues, func(path string) bool { return record.Within(s.path, path) || record.Within(path, s.path) }) {
			return own
		}
		return nil
	}
	if unknown := unknownField((&mesh.MeshConfig{}).ProtoReflect().Descriptor(), s.fields()); unknown != "" {
		return fmt.Errorf("a field of MeshConfig: it has no %s", unknown)
	}
	object := map[string]any{}
	if err := unstructured.SetNestedField(object, s.value, s.fields()...); err != nil {
		return errValue
	}
	config, err := json.Marshal(object)
	if err == nil {
		err = (&mesh.MeshConfig{}).UnmarshalJSON(config)
	}
	if err != nil {
		return errValue
	}
	held, _ := (&capture.Revision{MeshConfig: object}).Configuration("")
	if kept, there, err := unstructured.NestedFieldNoCopy(held, s.fields()...); err != nil || !there || leaf(kept) != leaf(s.value) {
		return own
	}
	return nil
}

// unknownField returns the beginning of a path that a message does not have; "" if it has all of it. What is below a map or a value
// is not looked at.
func unknownField(of protoreflect.MessageDescriptor, fields []string) string {
	for i, name := range fields {
		f := of.Fields().ByJSONName(name)
		switch {
		case f == nil:
			return strings.Join(fields[:i+1], ".")
		case f.IsMap() || f.Message() == nil || f.Message().ParentFile().Package() == "google.protobuf":
			return ""
		}
		of = f.Message()
	}
	return ""
}

// applySettings gives a ConfigMap of the installation the settings that it has.
func (c *ControlPlane) applySettings(obj *unstructured.Unstructured) error {
	key, root := "", ""
	switch obj.GetName() {
	case c.named("istio"):
		key, root = "mesh", meshRoot
	case c.named("istio-sidecar-injector"):
		key, root = "values", valuesRoot
	}
	var own []pathSetting
	var texts []string
	for _, text := range c.opts.Set {
		s, err := readSetting(text)
		if err != nil {
			return fmt.Errorf("setting %s: want %w", mask.Setting(text), err)
		}
		if s.root == root {
			own, texts = append(own, s), append(texts, mask.Setting(text))
		}
	}
	if own == nil {
		return nil
	}
	values, err := yamlOf(obj, key)
	if err != nil {
		return err
	}
	for i, s := range own {
		if err := unstructured.SetNestedField(values, s.value, s.fields()...); err != nil {
			return fmt.Errorf("setting %s%s: %w", s.root, s.path, err)
		}
		_, shown, _ := strings.Cut(texts[i], "=")
		c.configure(s.root+s.path, shown)
	}
	return setYAML(obj, key, values)
}
