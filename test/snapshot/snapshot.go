// Package snapshot lists what a cluster and a machine have, for tests that compare it before and
// after.
package snapshot

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Objects returns all objects of a cluster, of every resource that discovery lists, as
// "resource namespace/name UID generation". Events are left out: controllers write them about
// nodes that are gone, and the API server deletes them by itself.
func Objects(ctx context.Context, config *rest.Config) ([]string, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := kinds.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("asking for all resources: %w", err)
	}
	var all []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "events" {
				continue
			}
			items, err := client.Resource(version.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", r.Name, err)
			}
			for _, o := range items.Items {
				all = append(all, fmt.Sprintf("%s %s/%s %s %d", r.Name, o.Namespace, o.Name, o.UID, o.Generation))
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
