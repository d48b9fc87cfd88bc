// Package informer makes informers for single kinds of objects. client-go's own factory of informers imports those of all
// kinds of Kubernetes: compiling them took a tenth of the processor time of scaler's first build.
package informer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// objects is a client of one kind of object, as in client.CoreV1().Services(namespace).
type objects[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// New gives an informer of the objects of one kind that a label selector selects; "" = all of them. It does not run yet.
// of is the client of that kind, which belongs to client. example is any object of the kind.
func New[L runtime.Object](client kubernetes.Interface, of objects[L], example runtime.Object, selector string) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(
		// A fake client cannot send a list as a watch: client says whether it can.
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = selector
				return of.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = selector
				return of.Watch(ctx, o)
			},
		}, client),
		example, 0, cache.Indexers{},
	)
}
