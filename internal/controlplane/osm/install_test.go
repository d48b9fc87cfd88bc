package osm

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
)

// osm-bootstrap does not report that it could not create the MeshConfig: it is run once more, and if
// that does not help, there is no mesh.
func TestMeshConfigThatWasNotCreated(t *testing.T) {
	for created, want := range map[int]struct {
		runs int
		err  string
	}{
		1: {1, ""},
		2: {2, ""},
		3: {2, "osm-bootstrap did not create MeshConfig osm-mesh-config"},
	} {
		client := fake.NewClientset()
		served := map[string]*metav1.APIResourceList{}
		for _, kind := range kinds {
			version := kind.Group + "/" + kind.Versions[0]
			if served[version] == nil {
				served[version] = &metav1.APIResourceList{GroupVersion: version}
			}
			served[version].APIResources = append(served[version].APIResources, metav1.APIResource{Name: kind.Plural})
		}
		client.Discovery().(*fakediscovery.FakeDiscovery).Resources = slices.Collect(maps.Values(served))
		objects := fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{meshConfigs: "MeshConfigList"})
		c := &controlPlane{client: client, dynamic: objects}
		runs := 0
		err := c.installDefinitions(t.Context(), func(ctx context.Context) error {
			if runs++; runs < created {
				return nil
			}
			config := object("config.openservicemesh.io/v1alpha2", "MeshConfig", namespace, meshConfig, map[string]any{})
			_, err := objects.Resource(meshConfigs).Namespace(namespace).Create(ctx, config, metav1.CreateOptions{})
			return err
		})
		switch {
		case runs != want.runs:
			t.Errorf("created by run %d: %d runs, want %d", created, runs, want.runs)
		case want.err == "" && err != nil, want.err != "" && (err == nil || !strings.Contains(err.Error(), want.err)):
			t.Errorf("created by run %d: %v, want %q", created, err, want.err)
		}
	}
}
