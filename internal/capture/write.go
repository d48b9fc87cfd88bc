package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// workloadDocument is a workload in its file format.
type workloadDocument struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   objectName   `json:"metadata"`
	Spec       WorkloadSpec `json:"spec"`
}

type objectName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// namespaceDocument is a namespace in its file format.
type namespaceDocument struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   Namespace `json:"metadata"`
}

// Write writes the file of a mesh: its header, then one document for each namespace, service,
// EndpointSlice, workload and object of its configuration, in their order. Equal meshes give equal files.
func (m *Mesh) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	m.APIVersion, m.Kind = APIVersion, Kind
	documents := []any{m.Header}
	for _, n := range m.Namespaces {
		documents = append(documents, namespaceDocument{"v1", "Namespace", n})
	}
	for i := range m.Services {
		object, err := serviceFields(&m.Services[i])
		if err != nil {
			return err
		}
		unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
		documents = append(documents, object)
	}
	for i := range m.Slices {
		object, err := sliceFields(&m.Slices[i])
		if err != nil {
			return err
		}
		documents = append(documents, object)
	}
	for _, w := range m.Workloads {
		documents = append(documents, workloadDocument{APIVersion, WorkloadKind, objectName{w.Namespace, w.Name}, w.Spec})
	}
	for _, o := range m.Objects {
		documents = append(documents, o.Object)
	}
	for i, d := range documents {
		text, err := document(d)
		if err != nil {
			return err
		}
		if i > 0 {
			_, _ = out.WriteString("---\n") // Flush reports what goes wrong
		}
		_, _ = out.Write(text)
	}
	return out.Flush()
}

// document returns a value as YAML. It escapes characters that YAML does not accept, or treats as the end of a line. A value that YAML cannot
// express, such as an object with a key of more than 1024 characters, or with the key << for a merge, is written as JSON, which YAML includes.
func document(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var escaped bytes.Buffer
	for _, r := range string(text) {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteRune(r)
		}
	}
	made, err := yaml.JSONToYAML(escaped.Bytes())
	if err != nil || bytes.Contains(made, []byte("<<:")) { // a merge
		return append(text, '\n'), nil
	}
	return made, nil
}

// serviceFields returns a Service as an object, without its status and target ports of 0, which mean the port itself.
func serviceFields(s *corev1.Service) (map[string]any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return nil, err
	}
	object["apiVersion"], object["kind"] = "v1", "Service"
	delete(object, "status")
	if ports, ok, _ := unstructured.NestedSlice(object, "spec", "ports"); ok {
		for _, p := range ports {
			if port, ok := p.(map[string]any); ok && port["targetPort"] == int64(0) {
				delete(port, "targetPort")
			}
		}
		_ = unstructured.SetNestedSlice(object, ports, "spec", "ports")
	}
	return object, nil
}
