package workload

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"scaler.mesh/scaler/kwok"
)

// objects creates Objects, labelled with the run.
func (a *Applier) objects(ctx context.Context) error {
	// Which resource a kind is, the API server is asked once for all of a group.
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.Client.Discovery()))
	return a.each(ctx, len(a.Objects), func(ctx context.Context, i int) error {
		object := a.Objects[i].DeepCopy()
		kwok.SetRun(object, a.Run)
		kind := object.GroupVersionKind()
		return create(ctx, kind.Kind, object.GetNamespace()+"/"+object.GetName(), func(ctx context.Context) error {
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				return err
			}
			_, err = a.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	})
}
