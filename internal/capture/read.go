package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubejson "k8s.io/apimachinery/pkg/util/json"
)

// Read reads the file of a mesh, to its end, in any form that eachValue takes. Its error names the file,
// the document, the object, the field and what is wanted.
func Read(name string, from io.Reader) (Mesh, error) {
	r := reader{file: name, mesh: Mesh{places: map[string]string{}}}
	err := eachValue(from, func(place string, value []byte) error {
		r.documents++
		r.place = name + ": " + place
		return r.take(value)
	})
	if err != nil {
		return Mesh{}, fmt.Errorf("%s: %w", name, err)
	}
	if r.documents == 0 {
		return Mesh{}, fmt.Errorf("%s: it is empty: want a mesh, as 'scaler capture' writes it", name)
	}
	if err := r.mesh.check(); err != nil {
		return Mesh{}, err
	}
	r.mesh.sort()
	return r.mesh, nil
}

// reader reads a file, document by document.
type reader struct {
	file      string
	documents int    // that were read
	place     string // of the last one
	mesh      Mesh
}

// fieldError returns the error for a field with an invalid value.
func fieldError(identity, field string, value any, want string) error {
	if text, ok := value.(string); ok {
		value = fmt.Sprintf("%q", text)
	}
	return fmt.Errorf("%s: %s %v: want %s", identity, field, value, want)
}

func (r *reader) take(document []byte) error {
	object := &unstructured.Unstructured{}
	if err := kubejson.Unmarshal(document, &object.Object); err != nil || object.Object == nil {
		return errors.New("want an object with apiVersion and kind")
	}
	kind := object.GroupVersionKind()
	if r.documents == 1 {
		if kind.Kind == Kind && kind.Group == apiGroup && object.GetAPIVersion() != APIVersion {
			return fmt.Errorf("it is of format %s: want %s; capture the mesh again", object.GetAPIVersion(), APIVersion)
		}
		if object.GetAPIVersion() != APIVersion || kind.Kind != Kind {
			return fmt.Errorf("apiVersion %q, kind %q: want %s and %s first, as 'scaler capture' writes it", object.GetAPIVersion(), kind.Kind, APIVersion, Kind)
		}
		if err := strict(document, &r.mesh.Header, Kind); err != nil {
			return err
		}
		return r.mesh.ControlPlane.check()
	}
	identity := Identity(kind.Kind, object.GetNamespace(), object.GetName())
	unique := kind.Group + " " + identity
	if first := r.mesh.places[unique]; first != "" {
		return fmt.Errorf("%s: it is in %s already: want each object once", identity, strings.TrimPrefix(first, r.file+": "))
	}
	r.mesh.places[unique] = r.place
	r.mesh.places[identity] = r.place
	switch object.GetAPIVersion() + " " + kind.Kind {
	case "v1 Namespace":
		var n namespaceDocument
		if err := strict(document, &n, identity); err != nil {
			return err
		}
		r.mesh.Namespaces = append(r.mesh.Namespaces, n.Metadata)
		return nil
	case "v1 Service":
		var s corev1.Service
		if err := strict(document, &s, identity); err != nil {
			return err
		}
		r.mesh.Services = append(r.mesh.Services, s)
		return nil
	case discoveryv1.SchemeGroupVersion.String() + " " + endpointSlices.Kind:
		var s discoveryv1.EndpointSlice
		if err := strict(document, &s, identity); err != nil {
			return err
		}
		r.mesh.Slices = append(r.mesh.Slices, s)
		return nil
	case APIVersion + " " + WorkloadKind:
		var w workloadDocument
		if err := strict(document, &w, identity); err != nil {
			return err
		}
		if w.Spec.Proxy == OtherRevision {
			return fieldError(identity, "spec.proxy", string(w.Spec.Proxy), ofAFile)
		}
		r.mesh.Workloads = append(r.mesh.Workloads, Workload{Namespace: w.Metadata.Namespace, Name: w.Metadata.Name, Spec: w.Spec})
		return nil
	}
	if _, known := Configuration(kind); !known {
		return fmt.Errorf("%s of %q: want a kind that is captured: %s", kind.Kind, object.GetAPIVersion(), strings.Join(fileKinds(), ", "))
	}
	for field := range object.Object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec"}, field) {
			return fmt.Errorf("%s: field %s: want apiVersion, kind, metadata and spec alone", identity, field)
		}
	}
	r.mesh.Objects = append(r.mesh.Objects, whole(object))
	return nil
}

// fileKinds returns the kinds of a file's documents after the first.
func fileKinds() []string {
	kinds := []string{"Namespace", "Service", WorkloadKind}
	for _, r := range configuration {
		if !slices.Contains(kinds, r.Kind) {
			kinds = append(kinds, r.Kind)
		}
	}
	return append(kinds, endpointSlices.Kind)
}

// strict decodes a document and refuses unknown fields.
func strict(document []byte, into any, identity string) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: %s %s: want %s", identity, wrong.Field, wrong.Value, wanted(wrong.Type.Kind().String()))
	}
	if err != nil {
		return fmt.Errorf("%s: %s", identity, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// wanted names a kind of Go value in plain words.
func wanted(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case kind == "string":
		return "a text"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "a list"
	default:
		return "an object"
	}
}
