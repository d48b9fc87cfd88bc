//go:build e2e

package e2e

import (
	"cmp"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// manifests returns the objects of a stream of YAML documents, which has a name.
func manifests(name string, r io.Reader) (all []*unstructured.Unstructured) {
	GinkgoHelper()
	for decoder := yaml.NewYAMLOrJSONDecoder(r, 4096); ; {
		var o unstructured.Unstructured
		err := decoder.Decode(&o.Object)
		if err == io.EOF {
			return all
		}
		Expect(err).NotTo(HaveOccurred(), name)
		if o.Object != nil {
			all = append(all, &o)
		}
	}
}

// resources are the kinds that an API server serves.
type resources struct {
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	objects dynamic.Interface
}

func newResources(kubeconfig string) resources {
	GinkgoHelper()
	config, client := connection(kubeconfig)
	config.QPS = -1 // a cluster of the spec's own
	objects, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return resources{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())), objects}
}

// of returns the objects of an object's kind, in its namespace or default where it names none. A kind that is not served is looked for
// again by the next call.
func (r resources) of(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		r.mapper.Reset()
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return r.objects.Resource(mapping.Resource).Namespace(cmp.Or(o.GetNamespace(), metav1.NamespaceDefault)), nil
	}
	return r.objects.Resource(mapping.Resource), nil
}
