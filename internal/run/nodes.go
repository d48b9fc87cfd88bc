package run

import (
	"context"
	"fmt"
	"maps"
	"math"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
)

// makeNodes creates the fake nodes, which exist before the baseline.
func (r *run) makeNodes(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i, zone := range r.spec.nodeLabels() {
		group.Go(func() error {
			node := r.pool().Node(i, r.runLabel())
			maps.Copy(node.Labels, zone)
			if _, err := r.api.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// pool returns the nodes of a run's pods.
func (r *run) pool() kwok.Pool { return r.spec.place().pool(r.runLabel()) }

// nodes returns the number of fake nodes of a run.
func (s Spec) nodes(profile scenario.Parts) int {
	if s.Captured != nil && !s.WithSidecars() {
		return len(s.nodeLabels())
	}
	if s.WithSidecars() {
		return max(topology.Value(profile.Zones), kwok.Nodes(s.Pods()+topology.Value(profile.OutsidePods)))
	}
	return max(1, (s.Pods()+s.Mesh.PodsPerNode-1)/s.Mesh.PodsPerNode)
}

// nodeLabels returns the labels of the fake nodes of a run, in turns of the zones of its mesh; each zone of a captured
// mesh has its own.
func (s Spec) nodeLabels() []map[string]string {
	if s.Captured == nil {
		profile := s.mesh().Profile
		all := make([]map[string]string, s.nodes(profile))
		for i := range all {
			if profile.Zones != nil {
				of := corev1.Node{}
				of.Labels = map[string]string{}
				kwok.SetZone(&of, i%*profile.Zones)
				all[i] = of.Labels
			}
		}
		return all
	}
	var labels []map[string]string
	rest := 0 // pods whose zones are not known
	for _, w := range s.Captured.Mesh.Workloads {
		if len(w.Spec.Zones) == 0 {
			rest += w.Spec.Replicas
		}
	}
	all := rest
	for _, z := range s.Captured.Mesh.Zones() {
		all += z.Pods
	}
	nodes := kwok.Nodes
	if !s.WithSidecars() {
		known := s.Captured.nodes()
		if known == 0 {
			known = (all + s.Mesh.PodsPerNode - 1) / s.Mesh.PodsPerNode
		}
		had := 0 // pods of the zones before
		nodes = func(pods int) int {
			share := func(n int) int { return int(math.Round(float64(n) * float64(known) / float64(all))) }
			before := share(had)
			had += pods
			return max(1, (pods+kwok.Room-1)/kwok.Room, share(had)-before)
		}
	}
	for _, z := range s.Captured.Mesh.Zones() {
		zone := map[string]string{corev1.LabelTopologyZone: z.Zone}
		if z.Region != "" {
			zone[corev1.LabelTopologyRegion] = z.Region
		}
		for range nodes(z.Pods) {
			labels = append(labels, zone)
		}
	}
	if rest > 0 || labels == nil {
		labels = append(labels, make([]map[string]string, nodes(rest))...)
	}
	return labels
}
