package containers

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure/kubelet"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// Watch adds the sidecar of a pod that is on a node. c may be nil: nothing is read then.
func (c *Containers) Watch(pod *corev1.Pod) {
	if c != nil {
		c.watcher.Watch(kubelet.Container{Node: pod.Spec.NodeName, Namespace: pod.Namespace, Pod: pod.Name, Name: c.sidecar})
	}
}

// RealPods are a run's pods on real nodes of a cluster, with the sidecars that it injects. What their containers use is
// read into c, which may be nil.
func RealPods(cluster *existing.Cluster, s controlplane.InjectedSidecar, c *Containers) *fleet.RealPods {
	return &fleet.RealPods{
		Container: s.Container, Cluster: s.Cluster, Certificate: s.Certificate, Seen: c.Watch,
		Admin: func(ctx context.Context, namespace, pod string) (fleet.Admin, error) {
			one, err := cluster.Forward(ctx, namespace, pod, s.AdminPort)
			if err != nil {
				return fleet.Admin{}, err
			}
			return fleet.Admin{Port: one.Port(s.AdminPort), Done: one.Done(), Close: one.Close}, nil
		},
	}
}

// MeasureSidecars adds the real sidecars that there were, and what their containers used, each and all together, where
// that is known. c may be nil.
func (c *Containers) MeasureSidecars(sidecars []fleet.RealSidecar, windows []phases.Window, all *record.RealSidecars, warn func(record.Warning)) {
	sums, unknown := map[record.PhaseName]*kubelet.Usage{}, map[record.PhaseName]bool{}
	for _, s := range sidecars {
		each := record.RealSidecar{Pod: s.Pod, Service: s.Service, Node: s.Node, Crashes: s.Crashes}
		all.Source = s.Image
		namespace, name, _ := strings.Cut(s.Pod, "/")
		for _, w := range windows {
			if c == nil || all.At(w.Name) == nil {
				continue
			}
			of := kubelet.Container{Node: s.Node, Namespace: namespace, Pod: name, Name: c.sidecar}
			usage, err := c.watcher.Figures(of, w.Begin, w.End)
			if err != nil {
				unknown[w.Name] = true
				warn(record.Warning{About: "sidecars.real", Reason: record.ReasonUsageUnknown, Phase: w.Name, Component: of.String(), Detail: err.Error()})
				continue
			}
			if usage == (kubelet.Usage{}) {
				continue // it was started later
			}
			if each.Container == nil {
				each.Container = &record.ByPhase[*record.ContainerUsage]{}
			}
			*each.Container.At(w.Name) = usageOf(usage, w)
			if sums[w.Name] == nil {
				sums[w.Name] = &kubelet.Usage{MemoryKnown: true}
			}
			sums[w.Name].Add(usage)
		}
		all.Each = append(all.Each, each)
	}
	for _, w := range windows {
		if sum := sums[w.Name]; sum != nil && !unknown[w.Name] {
			*all.At(w.Name) = &usageOf(*sum, w).Usage
		}
	}
}
