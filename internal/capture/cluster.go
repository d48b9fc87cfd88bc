package capture

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// pageSize is the number of objects requested at once.
const pageSize = 500

// maxRestarts limits how often a list is restarted because one of its pages has expired.
const maxRestarts = 3

// Cluster reads objects from a cluster.
type Cluster struct {
	Discovery discovery.DiscoveryInterface
	Dynamic   dynamic.Interface
	Progress  func(string) // nil = silent
	// Ask gets a path of a port of a pod, which takes the right to forward ports; nil = nothing is asked.
	Ask func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error)
}

// MonitoringPort is the port of the control plane at which it states its version and metrics.
const MonitoringPort = 15014

// FromCluster captures the mesh of a cluster. Kinds that the cluster does not have are
// not part of it; kinds that may not be read are left out and listed as such, and the
// mesh is usable without them.
func FromCluster(ctx context.Context, c Cluster) (Mesh, error) {
	served, err := c.served()
	if err != nil {
		return Mesh{}, err
	}
	g := NewGatherer()
	read := 0
	for _, r := range Resources() {
		gvr, ok := served[r.GroupResource()]
		if !ok {
			continue
		}
		n, err := c.list(ctx, r, gvr, g)
		read += n
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			g.LeaveOut(r.name(), "no right to list them", 0)
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err): // it was deleted meanwhile
		case err != nil:
			return Mesh{}, fmt.Errorf("listing %s: %w", r.name(), err)
		}
	}
	if read == 0 {
		return Mesh{}, errors.New("nothing could be read: want the right to list services and workloads of all namespaces")
	}
	if err := c.controlPlane(ctx, served, g); err != nil {
		return Mesh{}, err
	}
	return g.Mesh(), nil
}

// controlPlane reads the configuration of the control plane whose objects were read, in its namespaces.
// What may not be read is left out.
func (c Cluster) controlPlane(ctx context.Context, served map[schema.GroupResource]schema.GroupVersionResource, g *Gatherer) error {
	revisions := g.control.revisions()
	for _, namespace := range slices.Sorted(maps.Keys(revisions)) {
		for _, name := range configNames(revisions[namespace]) {
			object, err := c.Dynamic.Resource(configMaps.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
				g.LeaveOut(configMaps.name(), "no right to get "+meshConfigMap+" and "+injectorConfigMap+" of the control plane", 0)
			case apierrors.IsNotFound(err):
			case err != nil:
				return fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
			default:
				if err := g.add(object); err != nil {
					return err
				}
			}
		}
		if gvr, ok := served[autoscalers.GroupResource()]; ok {
			of := autoscalers
			of.namespace = namespace
			_, err := c.list(ctx, of, gvr, g)
			switch {
			case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
				g.LeaveOut(autoscalers.name(), "no right to list those of the control plane", 0)
			case err != nil && !apierrors.IsNotFound(err):
				return fmt.Errorf("listing %s: %w", autoscalers.name(), err)
			}
		}
	}
	return c.versions(ctx, g)
}

// versions asks one pod of each revision for its version.
func (c Cluster) versions(ctx context.Context, g *Gatherer) error {
	if c.Ask == nil {
		return nil
	}
	for _, p := range g.control.pods {
		revision := p.namespace + "/" + p.revision
		if !p.ready || g.control.reported[revision] != "" {
			continue
		}
		text, err := c.Ask(ctx, p.namespace, p.name, MonitoringPort, "/version")
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			g.LeaveOut("version of the control plane", "not reported by its pods, which are asked with the right to forward ports: that of the image counts", 0)
		default:
			g.control.reported[revision] = Released(string(text))
		}
	}
	return nil
}

// served returns the resources that the cluster has, in the versions that it prefers.
func (c Cluster) served() (map[schema.GroupResource]schema.GroupVersionResource, error) {
	lists, err := c.Discovery.ServerPreferredResources()
	if len(lists) == 0 && err != nil {
		return nil, fmt.Errorf("asking the cluster for its kinds: %w", err)
	}
	served := map[schema.GroupResource]schema.GroupVersionResource{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			gvr := version.WithResource(r.Name)
			served[gvr.GroupResource()] = gvr
		}
	}
	return served, nil
}

// list reads all objects of a resource, page by page. If the list takes so long that its
// next page has expired, it continues with what the server offers instead, which may miss
// changes made meanwhile, or restarts.
func (c Cluster) list(ctx context.Context, r Resource, gvr schema.GroupVersionResource, g *Gatherer) (n int, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	var taken []*unstructured.Unstructured
	for again := 0; ; {
		page, err := c.Dynamic.Resource(gvr).Namespace(r.namespace).List(ctx, options)
		if status, ok := err.(apierrors.APIStatus); ok && apierrors.IsResourceExpired(err) && again < maxRestarts {
			if options.Continue = status.Status().Continue; options.Continue == "" {
				taken, again = nil, again+1
			}
			continue
		}
		if err != nil {
			return 0, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			if item.GetKind() == "" { // lists of some servers leave it out
				item.SetGroupVersionKind(gvr.GroupVersion().WithKind(r.Kind))
			}
			taken = append(taken, item)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
		if c.Progress != nil {
			c.Progress(fmt.Sprintf("%d %s read", len(taken), r.name()))
		}
	}
	for _, item := range taken {
		if err := g.add(item); err != nil {
			return 0, err
		}
	}
	return len(taken), nil
}

func (g *Gatherer) add(object *unstructured.Unstructured) error {
	if err := g.Add(object); err != nil {
		return fmt.Errorf("%s: %w", Identity(object.GetKind(), object.GetNamespace(), object.GetName()), err)
	}
	return nil
}
