package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"scaler.mesh/scaler/internal/task"
)

// retry is the backoff before a lost watch is resumed. It is shorter than that of other
// clients of an API server, because every moment without a watch is a gap in the
// measurement.
var retry = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5, Cap: 2 * time.Second}

// grace is the time before its deadline in which a watch may end without counting as lost.
const grace = time.Second

// errEndedEarly is the reason why a watch is reopened before its deadline. client-go does
// not pass on why a connection broke.
var errEndedEarly = errors.New("the watch ended before its time")

// source lists and watches the objects of one kind.
type source struct {
	what     string // plural, for errors
	kind     runtime.Object
	selector string
	list     cache.ListWithContextFunc
	watch    cache.WatchFuncWithContext
}

// follow feeds store with a source's objects until ctx ends, or until a retry cannot
// succeed.
func follow(ctx context.Context, s source, store cache.ReflectorStore, o Options, events *queue) error {
	// A reflector's own messages name its internals; ours go to OnLost.
	ctx = klog.NewContext(ctx, klog.Logger{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	refused := make(chan error, 1)
	lost := func(verb string, err error) {
		if ctx.Err() != nil {
			return
		}
		err = fmt.Errorf("%s %s labelled %s: %w", verb, s.what, s.selector, err)
		if isRefusal(err) {
			select {
			case refused <- err:
			default: // one is enough
			}
			cancel()
		} else if o.OnLost != nil {
			events.push(func() { o.OnLost(err) })
		}
	}
	var due time.Time // when the API server is to end the present watch
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, lo metav1.ListOptions) (runtime.Object, error) {
			lo.LabelSelector = s.selector
			list, err := s.list(ctx, lo)
			if err != nil {
				lost("listing", err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, lo metav1.ListOptions) (watch.Interface, error) {
			lo.LabelSelector = s.selector
			if time.Now().Before(due) {
				lost("watching", errEndedEarly)
			}
			due = time.Time{}
			opened := time.Now()
			w, err := s.watch(ctx, lo)
			if err != nil {
				lost("watching", err)
			} else if lo.TimeoutSeconds != nil {
				due = opened.Add(time.Duration(*lo.TimeoutSeconds)*time.Second - grace)
			}
			return w, err
		},
	}, o.Client)
	backoff := retry
	reflector := cache.NewReflectorWithOptions(lw, s.kind, store, cache.ReflectorOptions{Name: s.what, Backoff: &backoff})

	delay := retry
	for ctx.Err() == nil {
		started := time.Now()
		// The error, if any, is one that lost was called with.
		_ = reflector.ListAndWatchWithContext(ctx)
		if time.Since(started) > retry.Cap {
			delay = retry
		}
		task.Sleep(ctx, delay.Step())
	}
	select {
	case err := <-refused:
		return err
	default:
		return nil
	}
}

// isRefusal reports whether the API server understood a request and will never fulfil it.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// object is the interface that changes needs of the objects it follows.
type object interface {
	runtime.Object
	metav1.Object
}

// changes is a store that a reflector fills. It keeps only a part of the objects and
// reports their changes at once, in the reflector's own goroutine: a time taken here is
// the time at which the event was decoded.
type changes[T object] struct {
	reduce   func(T) T                // reduces an object to what is kept
	report   func(time.Time, Kind, T) // is called for each change
	reported func(time.Time)          // if not nil, is called after all changes of one event, or of one list
	kept     map[cache.ObjectName]T
}

// Add takes an object that the watch reports as added.
func (c *changes[T]) Add(obj any) error { return c.take(time.Now(), obj) }

// Update takes an object that the watch reports as modified.
func (c *changes[T]) Update(obj any) error { return c.take(time.Now(), obj) }

// Delete takes the last state of an object that the watch reports as deleted.
func (c *changes[T]) Delete(obj any) error {
	seen := time.Now()
	o, err := c.object(obj)
	if err != nil {
		return err
	}
	if _, known := c.kept[name(o)]; known {
		delete(c.kept, name(o))
		c.report(seen, Deleted, o)
		c.end(seen)
	}
	return nil
}

// Replace takes a list of all objects: the first list, or one after a lost watch, in
// which case objects that are not in it were deleted meanwhile.
func (c *changes[T]) Replace(list []any, _ string) error {
	seen := time.Now()
	objects, listed := make([]T, len(list)), make(map[cache.ObjectName]bool, len(list))
	for i, obj := range list {
		o, err := c.object(obj)
		if err != nil {
			return err
		}
		objects[i], listed[name(o)] = o, true
	}
	for n, o := range c.kept {
		if !listed[n] {
			delete(c.kept, n)
			c.report(seen, Deleted, o)
		}
	}
	for _, o := range objects {
		c.set(seen, o)
	}
	c.end(seen)
	return nil
}

// Resync does nothing: nothing changed.
func (c *changes[T]) Resync() error { return nil }

func (c *changes[T]) take(seen time.Time, obj any) error {
	o, err := c.object(obj)
	if err != nil {
		return err
	}
	c.set(seen, o)
	c.end(seen)
	return nil
}

// set reports how o differs from the object kept under its name, and keeps o.
func (c *changes[T]) set(seen time.Time, o T) {
	kind := Added
	if old, known := c.kept[name(o)]; known {
		switch {
		case old.GetUID() != o.GetUID():
			c.report(seen, Deleted, old)
		case old.GetResourceVersion() == o.GetResourceVersion():
			return
		default:
			kind = Modified
		}
	}
	if c.kept == nil {
		c.kept = make(map[cache.ObjectName]T)
	}
	c.kept[name(o)] = c.reduce(o)
	c.report(seen, kind, o)
}

func (c *changes[T]) end(seen time.Time) {
	if c.reported != nil {
		c.reported(seen)
	}
}

// object returns an object from a reflector without managed fields: they are half of many
// objects, and nothing here reads them.
func (c *changes[T]) object(obj any) (T, error) {
	o, ok := obj.(T)
	if !ok {
		return o, fmt.Errorf("observing objects: got a %T, want a %T", obj, o)
	}
	o.SetManagedFields(nil)
	return o, nil
}

func name(o metav1.Object) cache.ObjectName {
	return cache.ObjectName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
