package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// FromFiles captures the mesh of objects in files, as `kubectl get -A -o yaml` or -o json prints
// them: lists and single objects, in any order. Errors name the file and the document.
func FromFiles(paths ...string) (Mesh, error) {
	g := NewGatherer()
	for _, path := range paths {
		if err := g.addFile(path); err != nil {
			return Mesh{}, err
		}
	}
	mesh := g.Mesh()
	if len(mesh.Services)+len(mesh.Workloads)+len(mesh.Objects) == 0 {
		return mesh, errors.New("nothing of the files can be captured: want services, workloads, pods or configuration of a mesh, as 'kubectl get -A -o yaml' prints them")
	}
	return mesh, nil
}

func (g *Gatherer) addFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(io.LimitReader(f, maxFile)))
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = g.addDocument(text)
		}
		if err != nil {
			return fmt.Errorf("%s: document %d: %w", path, n, err)
		}
	}
}

// addDocument adds the objects of a document.
func (g *Gatherer) addDocument(text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	document := text
	if !json.Valid(text) { // which JSON need not pass through, and takes ten times as long
		var err error
		if document, err = yaml.YAMLToJSON(text); err != nil {
			return err
		}
	}
	if bytes.Equal(document, []byte("null")) { // nothing but comments
		return nil
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(document, &object.Object); err != nil {
		return errors.New("want objects, as 'kubectl get -A -o yaml' prints them")
	}
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return errors.New("want apiVersion and kind, as 'kubectl get -A -o yaml' prints them")
	}
	if !object.IsList() {
		return g.add(whole(object))
	}
	return object.EachListItem(func(item runtime.Object) error {
		one, ok := item.(*unstructured.Unstructured)
		if !ok || one.GetKind() == "" {
			return errors.New("an item of the list has no kind")
		}
		return g.add(whole(one))
	})
}

// whole converts numbers of an object to those that clients of Kubernetes use: whole ones
// are int64.
func whole(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.Object, _ = wholeNumbers(object.Object).(map[string]any)
	return object
}

func wholeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, of := range v {
			v[key] = wholeNumbers(of)
		}
	case []any:
		for i, of := range v {
			v[i] = wholeNumbers(of)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}
