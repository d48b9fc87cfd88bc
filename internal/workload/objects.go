package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"scaler.mesh/scaler/kwok"
)

// order lists kinds whose objects others need, in the order in which they are made:
// namespaces, and what is in them. All other kinds come last. A Role precedes its
// bindings because a user without the right to bind any role can bind only an existing
// one.
var order = [][]string{{"Namespace"}, {"ServiceAccount", "Service", "Role"}}

// objects creates objects, labelled with the run.
func (a *Applier) objects(ctx context.Context, objects []*unstructured.Unstructured) error {
	if len(objects) == 0 {
		return nil
	}
	// The API server is asked once for all kinds of a group which resources they are.
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.Client.Discovery()))
	for _, wave := range waves(objects) {
		err := a.each(ctx, len(wave), func(ctx context.Context, i int) error { return a.object(ctx, mapper, wave[i]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// waves groups the objects by the order of their kinds.
func waves(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	all := make([][]*unstructured.Unstructured, len(order)+1)
	for _, o := range objects {
		wave := slices.IndexFunc(order, func(kinds []string) bool { return slices.Contains(kinds, o.GetKind()) })
		if wave < 0 {
			wave = len(order)
		}
		all[wave] = append(all[wave], o)
	}
	return all
}

// object creates one.
func (a *Applier) object(ctx context.Context, mapper meta.RESTMapper, of *unstructured.Unstructured) error {
	object := of.DeepCopy()
	kwok.SetRun(object, a.Run)
	kind := object.GroupVersionKind()
	return create(ctx, kind.Kind, object.GetNamespace()+"/"+object.GetName(), func(ctx context.Context) error {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		client := a.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
		_, err = client.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			switch {
			case kind.Kind == "Namespace" && a.nodes() == kwok.Shared: // in a cluster of the run's own
				return relabel(ctx, client, of) // without the run's label: it is the cluster's
			case kind.Kind == "ServiceAccount":
				return nil // a controller has made it
			}
		}
		return err
	})
}

// Try returns what the API server and webhooks say of the creation of each of these objects, which has no effect; nil = they take it. Objects
// of namespaces are tried in the namespace default, as theirs may not be there yet.
func (a *Applier) Try(ctx context.Context, objects []*unstructured.Unstructured) ([]error, error) {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.Client.Discovery()))
	answers := make([]error, len(objects))
	err := a.each(ctx, len(objects), func(ctx context.Context, i int) error {
		object := objects[i].DeepCopy()
		if object.GetNamespace() != "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		kind := object.GroupVersionKind()
		answers[i] = Persist(ctx, func(ctx context.Context, _ int) error {
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				return err
			}
			_, err = a.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
		return ctx.Err()
	})
	return answers, err
}

// Relabel gives existing objects the labels and annotations of these.
func (a *Applier) Relabel(ctx context.Context, objects []*unstructured.Unstructured) error {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.Client.Discovery()))
	return a.each(ctx, len(objects), func(ctx context.Context, i int) error {
		of := objects[i]
		kind := of.GroupVersionKind()
		return Persist(ctx, func(ctx context.Context, _ int) error {
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err == nil {
				err = relabel(ctx, a.Dynamic.Resource(mapping.Resource).Namespace(of.GetNamespace()), of)
			}
			if err != nil {
				return fmt.Errorf("labelling %s %s/%s: %w", kind.Kind, of.GetNamespace(), of.GetName(), err)
			}
			return nil
		})
	})
}

// relabel gives an existing object the labels and annotations of another.
func relabel(ctx context.Context, client dynamic.ResourceInterface, as *unstructured.Unstructured) error {
	metadata := map[string]any{} // null would delete all
	if labels := as.GetLabels(); labels != nil {
		metadata["labels"] = labels
	}
	if annotations := as.GetAnnotations(); annotations != nil {
		metadata["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, as.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
