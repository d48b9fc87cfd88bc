package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"scaler.mesh/scaler/internal/output"
)

// FromFiles captures the mesh of objects in files, as `kubectl get -A -o yaml` or -o json prints
// them, jq divides them and editors write them: single objects, lists and lists of lists, in any order, as
// documents in YAML or as a stream of JSON. Errors name the file and the place. A pipe is read until ctx is
// done.
func FromFiles(ctx context.Context, paths ...string) (Mesh, error) {
	g := NewGatherer()
	for _, path := range paths {
		if err := g.addFile(ctx, path); err != nil {
			return Mesh{}, err
		}
	}
	mesh := g.Mesh()
	if len(mesh.Services)+len(mesh.Workloads)+len(mesh.Objects) == 0 {
		var left []string
		for _, l := range mesh.LeftOut {
			left = append(left, l.Kind+": "+l.Reason)
		}
		why := ""
		if left != nil {
			why = "; left out: " + output.FirstOf(left, 3)
		}
		return mesh, fmt.Errorf("nothing of the files can be captured: want services, workloads, pods or configuration of a mesh, as 'kubectl get -A -o yaml' prints them%s", why)
	}
	return mesh, nil
}

func (g *Gatherer) addFile(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // of a FIFO, too, opening ends
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0:
		return fmt.Errorf("%s: want a file or a pipe", path)
	}
	stop := context.AfterFunc(ctx, func() { f.Close() }) // a read of a pipe ends
	defer stop()
	values := 0
	err = eachValue(f, func(_ string, value []byte) error {
		values++
		return g.addValue(value)
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case values == 0:
		return fmt.Errorf("%s: it is empty: want objects, as 'kubectl get -A -o yaml' prints them", path)
	}
	return nil
}

// addValue adds the objects of a value in JSON.
func (g *Gatherer) addValue(text []byte) error {
	if bytes.Equal(text, []byte("null")) {
		return nil // a document without content
	}
	var value any
	if err := kubejson.Unmarshal(text, &value); err != nil {
		return err
	}
	return g.addObjects(value, "", "")
}

// addObjects adds an object, those of a list, or of a list of lists. apiVersion and kind are those of items
// that a typed list leaves out.
func (g *Gatherer) addObjects(value any, apiVersion, kind string) error {
	const want = "as 'kubectl get -A -o yaml' prints them"
	list := func(items []any, apiVersion, kind string) error {
		for i, item := range items {
			if err := g.addObjects(item, apiVersion, kind); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	}
	switch v := value.(type) {
	case []any:
		return list(v, "", "")
	case map[string]any:
		object := whole(&unstructured.Unstructured{Object: v})
		if object.GetKind() == "" && object.GetAPIVersion() == "" && kind != "" {
			object.SetAPIVersion(apiVersion)
			object.SetKind(kind)
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			return errors.New("want apiVersion and kind, " + want)
		}
		items, isList := v["items"].([]any)
		of, named := strings.CutSuffix(object.GetKind(), "List")
		if !named || !isList && v["items"] != nil {
			return g.add(object)
		}
		if object.GetContinue() != "" {
			count := 0
			if rest := object.GetRemainingItemCount(); rest != nil {
				count = int(*rest)
			}
			g.LeaveOut(object.GetKind(), "the list is incomplete: the rest is not in the file", count)
		}
		if of == "" {
			return list(items, "", "")
		}
		return list(items, object.GetAPIVersion(), of)
	}
	return errors.New("want objects, " + want)
}

// whole converts numbers of an object to those that clients of Kubernetes use: whole ones
// are int64, also those that were written with a point.
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
