package istio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
)

const (
	rootConfigMap = "istio-ca-root-cert"
	rootKey       = "root-cert.pem"
)

// leftOut are the kinds of the manifests that are not installed: istiod is a
// host process here, and a fake one behind its Service would be counted as an
// endpoint of the mesh.
var leftOut = map[string]bool{"Deployment": true, "HorizontalPodAutoscaler": true}

// objects returns the manifests' objects that are installed, in their order, with
// the webhooks pointed at the host's istiod.
func (c *ControlPlane) objects() ([]*unstructured.Unstructured, error) {
	manifests, err := c.read(component.IstioManifestsFile)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, obj := range manifests {
		if leftOut[obj.GetKind()] {
			continue
		}
		if obj.GetLabels()[tagLabel] != "" && !c.tagged() {
			continue
		}
		switch obj.GetKind() {
		case "MutatingWebhookConfiguration":
			c.pointWebhooks(obj, "/inject")
		case "ValidatingWebhookConfiguration":
			c.pointWebhooks(obj, "/validate")
		case "ConfigMap":
			if err := errors.Join(c.takeOver(obj), c.adaptMeshConfig(obj), c.applySettings(obj)); err != nil {
				return nil, err
			}
		}
		all = append(all, obj)
	}
	return all, nil
}

// read gives the objects of a file of the manifests, in their order.
func (c *ControlPlane) read(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(filepath.Join(c.opts.Programs[component.IstioManifests], file))
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 1<<16)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the manifests, %s: %w", file, err)
		}
		if len(obj.Object) > 0 {
			all = append(all, obj)
		}
	}
}

// pointWebhooks makes the API server call the host's istiod. istiod's serving
// certificate has names only, so localhost and not its address.
func (c *ControlPlane) pointWebhooks(obj *unstructured.Unstructured, path string) {
	webhooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for _, w := range webhooks {
		w.(map[string]any)["clientConfig"] = map[string]any{"url": "https://" + customHost + ":" + strconv.Itoa(c.reached.webhook) + path}
	}
	_ = unstructured.SetNestedSlice(obj.Object, webhooks, "webhooks")
}

func (c *ControlPlane) install(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); controlplane.Created(err) != nil {
		return fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	objects, err := c.objects()
	if err != nil {
		return err
	}
	if c.withWaypoints() {
		kinds, err := c.read(component.GatewayAPIFile)
		if err != nil {
			return err
		}
		objects = append(objects, kinds...)
	}
	mapper := c.mapper()
	for _, obj := range objects {
		if err := c.create(ctx, mapper, obj); err != nil {
			return fmt.Errorf("creating %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return controlplane.AwaitDefinitions(ctx, c.client.Discovery(), objects)
}

func (c *ControlPlane) mapper() meta.RESTMapper {
	return restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
}

// resource returns the client of an object's kind and namespace.
func (c *ControlPlane) resource(mapper meta.RESTMapper, obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(obj.GetNamespace()), nil
}

func (c *ControlPlane) create(ctx context.Context, mapper meta.RESTMapper, obj *unstructured.Unstructured) error {
	client, err := c.resource(mapper, obj)
	if err != nil {
		return err
	}
	if _, err = client.Create(ctx, obj, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return err
	}
	if !c.replaces(obj.GetKind()) {
		return nil
	}
	return replace(ctx, client, obj)
}

// replaces reports whether an object of a kind takes the place of one that is there: what
// revisions share and, where there are none, everything but a Service, which has its address.
func (c *ControlPlane) replaces(kind string) bool {
	return c.opts.Next && (kind == "CustomResourceDefinition" || c.opts.Revision == "" && kind != "Service")
}

// replace puts an object in the place of one that is there.
func replace(ctx context.Context, client dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		there, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		obj.SetResourceVersion(there.GetResourceVersion())
		_, err = client.Update(ctx, obj, metav1.UpdateOptions{})
		return err
	})
}

// awaitInstalled returns once istiod has put its certificate authority into
// the webhooks and its root certificate into the default namespace.
func (c *ControlPlane) awaitInstalled(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		mutating, err := c.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, c.mutatingWebhook(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, w := range mutating.Webhooks {
			if len(w.ClientConfig.CABundle) == 0 {
				return false, nil
			}
		}
		validating, err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, c.validatingWebhook(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, w := range validating.Webhooks {
			if len(w.ClientConfig.CABundle) == 0 {
				return false, nil
			}
		}
		root, err := c.client.CoreV1().ConfigMaps(namespace).Get(ctx, rootConfigMap, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		c.root = []byte(root.Data[rootKey])
		return len(c.root) > 0, nil
	})
}

// poll asks until done, an error, or a minute is over.
func poll(ctx context.Context, done func(context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, done)
}
