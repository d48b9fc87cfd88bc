package istio

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
)

const (
	revisionLabel = "istio.io/rev" // of a pod: the revision that injects it; of an object: the one that it belongs to
	tagLabel      = "istio.io/tag" // of the webhooks and the Service of a tag
)

// named returns a name of the chart, which ends in the revision where there is one.
func (c *ControlPlane) named(name string) string {
	if c.opts.Revision == "" {
		return name
	}
	return name + "-" + c.opts.Revision
}

// mutatingWebhook is named as the chart names it, which does not put istio-system into it.
func (c *ControlPlane) mutatingWebhook() string {
	name := c.named("istio-sidecar-injector")
	if c.systemNamespace() != namespace {
		name += "-" + c.systemNamespace()
	}
	return name
}

// systemNamespace returns the namespace of istiod, which is also the root namespace of its mesh.
func (c *ControlPlane) systemNamespace() string { return cmp.Or(c.home, namespace) }

func (c *ControlPlane) validatingWebhook() string {
	return c.named("istio-validator") + "-" + namespace
}

// serverName returns the name of the Service that the revision's proxies connect to, which
// istiod's serving certificate has.
func (c *ControlPlane) serverName() string {
	return c.named("istiod") + "." + c.systemNamespace() + ".svc"
}

// tagged reports whether the tag "default" means this revision.
func (c *ControlPlane) tagged() bool { return !c.opts.Next || c.promoted.Load() }

// aRevision is an istiod that is one of several revisions.
type aRevision struct{ *ControlPlane }

// revisions is this istiod as one of several revisions; nil where there are none.
func (c *ControlPlane) revisions() controlplane.Revision {
	if c.opts.Revision == "" {
		return nil
	}
	return aRevision{c}
}

// Serves is part of controlplane.Revision. ztunnels and waypoints state their revision by an annotation, as Istio's chart and
// istiod make them.
func (c aRevision) Serves(pod *corev1.Pod) bool {
	return cmp.Or(pod.Labels[revisionLabel], pod.Annotations[revisionLabel]) == c.opts.Revision
}

// Promote moves the tag "default" to this revision, as `istioctl tag set default --overwrite`
// does: namespaces that name no revision are its own then, and it takes over the leases.
func (c aRevision) Promote(ctx context.Context) error {
	c.promoted.Store(true)
	objects, err := c.objects()
	if err != nil {
		return err
	}
	mapper := c.mapper()
	for _, obj := range objects {
		if obj.GetLabels()[tagLabel] == "" {
			continue
		}
		var moved error
		if obj.GetKind() == "Service" { // has an address, which cannot be replaced
			moved = c.moveService(ctx, obj.GetName(), obj.GetLabels())
		} else {
			client, err := c.resource(mapper, obj)
			if err != nil {
				return err
			}
			moved = replace(ctx, client, obj)
		}
		if moved != nil {
			return fmt.Errorf("moving the tag's %s %s: %w", obj.GetKind(), obj.GetName(), moved)
		}
	}
	return nil
}

// moveService labels the Service of a tag as this revision's.
func (c aRevision) moveService(ctx context.Context, name string, labels map[string]string) error {
	services := c.client.CoreV1().Services(namespace)
	service, err := services.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	service.Labels = labels
	_, err = services.Update(ctx, service, metav1.UpdateOptions{})
	return err
}

// Remove deletes the objects of this revision, as `istioctl uninstall --revision` does. What
// revisions share stays, and so does a tag that means another revision.
func (c aRevision) Remove(ctx context.Context) error {
	objects, err := c.objects()
	if err != nil {
		return err
	}
	mapper := c.mapper()
	for _, obj := range objects {
		own := obj.GetLabels()[revisionLabel] == c.opts.Revision || strings.Contains(obj.GetName(), "-"+c.opts.Revision)
		if !own || obj.GetLabels()[tagLabel] != "" || obj.GetKind() == "CustomResourceDefinition" {
			continue
		}
		client, err := c.resource(mapper, obj)
		if err != nil {
			return err
		}
		err = client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}
