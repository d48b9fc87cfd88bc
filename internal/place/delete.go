package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/kwok"
)

const (
	// atOnce bounds the requests that are under way at the same time.
	atOnce = 16
	// lookAgain is the time between two looks at what is still there.
	lookAgain = 100 * time.Millisecond
)

// Deleted counts deleted objects by resource, as in "deployments.apps".
type Deleted map[string]int

// Total returns the number of all objects.
func (d Deleted) Total() (n int) {
	for _, count := range d {
		n += count
	}
	return n
}

// DeleteRun deletes all objects of a cluster that carry the run's label, and the pods outside its mesh, and
// returns when they are gone, or ctx is done. Every resource that discovery
// offers and that can be listed and deleted is looked at. Owners go before what
// they own, pods before the nodes that run them, and all before namespaces. Pods are
// deleted without their grace period, as is right for fake nodes: on a real one,
// containers could outlive their pod. An API of another server
// that does not answer is passed over; any other that discovery fails for is an error.
//
// In a cluster that goes with the run, it does not wait for namespaces, which are empty then: the
// namespace controller removes them 5 s after their deletion, at the earliest. In one that
// stays, it does, and passes over resources that may not be listed, and waits for those to go
// that may not be deleted: its caller may list and delete what a run makes, and what
// controllers make of it goes with its owner, or its namespace.
func DeleteRun(ctx context.Context, config *rest.Config, run string, stays bool) (Deleted, error) {
	d, err := newDeletion(config, run, stays)
	if err != nil {
		return nil, fmt.Errorf("deleting the objects of run %s: %w", run, err)
	}
	if err := d.all(ctx); err != nil {
		return d.deleted(), fmt.Errorf("deleting the objects of run %s: %w", run, err)
	}
	return d.deleted(), nil
}

// deletion is one call of DeleteRun.
type deletion struct {
	// fixed after newDeletion
	discovery discovery.DiscoveryInterface
	objects   metadata.Interface
	selector  metav1.ListOptions
	outside   metav1.ListOptions // selects further pods, in deletion alone; zero = none
	stays     bool               // the cluster does

	mu   sync.Mutex
	seen map[string]map[string]bool // by resource, the UIDs that were found
}

// FindRuns counts the objects of a cluster that carry the label of any run, by run.
// Resources that may not be listed are passed over.
func FindRuns(ctx context.Context, config *rest.Config) (map[string]Deleted, error) {
	d, err := newFinder(config, kwok.RunLabel, true)
	if err != nil {
		return nil, fmt.Errorf("looking for objects of runs: %w", err)
	}
	resources, err := d.resources(ctx)
	if len(resources) == 0 && err != nil {
		return nil, fmt.Errorf("looking for objects of runs: %w", err)
	}
	there, err := d.find(ctx, resources)
	if err != nil {
		return nil, fmt.Errorf("looking for objects of runs: %w", err)
	}
	runs := map[string]Deleted{}
	for _, f := range there {
		for run, count := range f.runs {
			if runs[run] == nil {
				runs[run] = Deleted{}
			}
			runs[run][f.resource.String()] += count
		}
	}
	return runs, nil
}

func newDeletion(config *rest.Config, run string, stays bool) (*deletion, error) {
	if run == "" {
		return nil, errors.New("no run named") // its selector would select what has an empty label
	}
	of := func(label string) string {
		return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: map[string]string{label: run}})
	}
	d, err := newFinder(config, of(kwok.RunLabel), stays)
	if err == nil {
		d.outside.LabelSelector = of(kwok.OutsideLabel)
	}
	return d, err
}

// newFinder finds what a selector selects.
func newFinder(config *rest.Config, selector string, stays bool) (*deletion, error) {
	d := &deletion{stays: stays, seen: map[string]map[string]bool{}, selector: metav1.ListOptions{LabelSelector: selector}}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // every resource is looked at, deprecated ones too
	var err error
	if d.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return nil, err
	}
	d.objects, err = metadata.NewForConfig(config)
	return d, err
}

// found has the objects of one resource that were found in one namespace; "" = of the
// cluster.
type found struct {
	resource  resource
	namespace string
	names     []string
	selector  metav1.ListOptions // by which it was found
	runs      map[string]int     // how many are of each run
	owned     bool               // each has a controller, which would make it again
}

// all deletes rank after rank, until a look at everything finds nothing.
func (d *deletion) all(ctx context.Context) error {
	resources, partial := d.resources(ctx)
	if len(resources) == 0 {
		return partial
	}
	for {
		there, err := d.find(ctx, resources)
		if err != nil {
			return err
		}
		if len(there) == 0 {
			return unknown(partial)
		}
		for rank := range ranks {
			if err := d.deleteRank(ctx, there, rank); err != nil {
				return err
			}
		}
	}
}

// unknown returns the part of a failed discovery because of which objects may have been overlooked; nil = none. An
// API that another server serves which does not answer, as metrics.k8s.io often, has no objects of a run.
func unknown(partial error) error {
	groups, ok := discovery.GroupDiscoveryFailedErrorGroups(partial)
	if !ok {
		return partial
	}
	failed := map[schema.GroupVersion]error{}
	for group, err := range groups {
		_, stale := errors.AsType[discovery.StaleGroupVersionError](err)
		if !stale && !apierrors.IsServiceUnavailable(err) {
			failed[group] = err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &discovery.ErrGroupDiscoveryFailed{Groups: failed}
}

// deleteRank deletes the objects that were found of one rank and returns when they are gone.
// Objects of a lower rank were deleted before, so that no controller makes these again.
func (d *deletion) deleteRank(ctx context.Context, there []found, rank int) error {
	there = slices.DeleteFunc(slices.Clone(there), func(f found) bool { return f.rank() != rank })
	var resources []resource
	for _, f := range there {
		if !slices.Contains(resources, f.resource) {
			resources = append(resources, f.resource)
		}
	}
	for len(there) > 0 {
		if err := d.delete(ctx, there); err != nil {
			return err
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return fmt.Errorf("%w; left: %s", context.Cause(ctx), describe(there))
		}
		now, err := d.find(ctx, resources)
		if err != nil {
			return err
		}
		there = slices.DeleteFunc(now, func(f found) bool { return f.rank() != rank })
	}
	return nil
}

// ranks is the number of steps of deletion; see rank.
const ranks = 4

// rank returns the step in which something is deleted: what nothing owns, what is
// owned, nodes, namespaces.
func (f found) rank() int {
	switch {
	case f.resource.isCore("namespaces"):
		return 3
	case f.resource.isCore("nodes"):
		return 2
	case f.owned:
		return 1
	default:
		return 0
	}
}

// describe names what is left, as in "3 pods, 1 namespaces".
func describe(there []found) string {
	counts := map[string]int{}
	for _, f := range there {
		counts[f.resource.String()] += len(f.names)
	}
	return output.Counts(counts)
}

// find lists what carries the label, of these resources.
func (d *deletion) find(ctx context.Context, resources []resource) ([]found, error) {
	var mu sync.Mutex
	var all []found
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	look := func(r resource, selector metav1.ListOptions) {
		group.Go(func() error {
			list, err := d.objects.Resource(r.GroupVersionResource).List(ctx, selector)
			switch {
			case d.stays && apierrors.IsForbidden(err):
				return nil
			case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
				return nil // a resource that was removed meanwhile has no objects
			case err != nil:
				return fmt.Errorf("listing %s: %w", r, err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, d.sort(r, selector, list.Items)...)
			return nil
		})
	}
	for _, r := range resources {
		look(r, d.selector)
		if r.isCore("pods") && d.outside.LabelSelector != "" {
			look(r, d.outside)
		}
	}
	return all, group.Wait()
}

// sort groups objects of a resource by namespace, and notes each.
func (d *deletion) sort(r resource, selector metav1.ListOptions, objects []metav1.PartialObjectMetadata) []found {
	d.mu.Lock()
	defer d.mu.Unlock()
	by := map[string]*found{}
	for _, o := range objects {
		if o.DeletionTimestamp != nil && r.isCore("namespaces") && !d.stays {
			continue // the namespace controller does the rest
		}
		if d.seen[r.String()] == nil {
			d.seen[r.String()] = map[string]bool{}
		}
		d.seen[r.String()][string(o.UID)] = true
		f := by[o.Namespace]
		if f == nil {
			f = &found{resource: r, namespace: o.Namespace, selector: selector, owned: true, runs: map[string]int{}}
			by[o.Namespace] = f
		}
		f.names = append(f.names, o.Name)
		f.runs[o.Labels[kwok.RunLabel]]++
		f.owned = f.owned && metav1.GetControllerOf(&o) != nil
	}
	var all []found
	for _, f := range by {
		all = append(all, *f)
	}
	return all
}

// delete asks for the deletion of what was found; what owns others leaves them to
// the garbage collector, which works in the background.
func (d *deletion) delete(ctx context.Context, there []found) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	ignore := func(err error) error {
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or being deleted
			return nil
		}
		if d.stays && apierrors.IsForbidden(err) { // it goes with its owner, or its namespace
			return nil
		}
		return err
	}
	for _, f := range there {
		opts := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
		if f.resource.isCore("pods") {
			opts.GracePeriodSeconds = new(int64(0))
		}
		objects := d.objects.Resource(f.resource.GroupVersionResource).Namespace(f.namespace)
		if f.resource.collection {
			group.Go(func() error {
				if err := ignore(objects.DeleteCollection(ctx, opts, f.selector)); err != nil {
					return fmt.Errorf("deleting %s: %w", f.resource, err)
				}
				return nil
			})
			continue
		}
		for _, name := range f.names {
			group.Go(func() error {
				if err := ignore(objects.Delete(ctx, name, opts)); err != nil {
					return fmt.Errorf("deleting %s %s: %w", f.resource, name, err)
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// deleted counts what was found; all of it is gone unless an error says otherwise.
func (d *deletion) deleted() Deleted {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := Deleted{}
	for name, uids := range d.seen {
		counts[name] = len(uids)
	}
	return counts
}

// resource is one that can be listed and deleted.
type resource struct {
	schema.GroupVersionResource
	collection bool // all objects of a namespace can be deleted with one request
}

// String names the resource without its version, as in "deployments.apps".
func (r resource) String() string { return r.GroupResource().String() }

// isCore reports whether it is the resource of this name of Kubernetes' core.
func (r resource) isCore(name string) bool { return r.Group == "" && r.Resource == name }

// resources asks the API server for all resources, each in the version that it
// prefers. The error names the groups that could not be asked, and comes with the
// resources of all others.
func (d *deletion) resources(ctx context.Context) ([]resource, error) {
	type answer struct {
		lists []*metav1.APIResourceList
		err   error
	}
	// The client takes no context: it is left to its own time limit, which the end
	// of the API server cuts short.
	asked := make(chan answer, 1)
	go func() {
		lists, err := d.discovery.ServerPreferredResources()
		asked <- answer{lists, err}
	}()
	var lists []*metav1.APIResourceList
	var partial error
	select {
	case a := <-asked:
		lists, partial = a.lists, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var all []resource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading discovery: %w", err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || strings.Contains(r.Name, "/") {
				continue
			}
			all = append(all, resource{version.WithResource(r.Name), slices.Contains(r.Verbs, "deletecollection")})
		}
	}
	return all, partial
}
