package latency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Found describes what a cluster has, and what a run would make there.
type Found struct {
	*attach.Found
	Nodes []corev1.Node // that pods are on, the client's first

	client   kubernetes.Interface
	adapter  *controlplane.ControlPlane
	variants []*clusterVariant // the first is without sidecars
}

// validateExisting checks the options of an existing cluster, and those that exclude one.
func (s Spec) validateExisting(d controlplane.Driver) error {
	if s.Existing == nil {
		return nil
	}
	l := s.Latency
	switch {
	case d.Installed == nil || d.Installed.Sidecar == nil:
		return s.Refuse("controlPlane.name", "one whose sidecars a cluster can have, with place.context")
	case s.ControlPlane.Version != "":
		return s.Refuse("controlPlane.version", "none with place.context, whose cluster has its own")
	case l.Image == "":
		return s.Refuse("latency.image", "the image of this version of scaler that the pods run, with place.context")
	case l.KillServerEvery != 0:
		return s.Refuse("latency.killServerEvery", "none with place.context, where nothing is broken")
	case l.Proxy != "":
		return s.Refuse("latency.proxy", "none with place.context, whose cluster injects its own")
	case len(l.Nodes) > 2:
		return s.Refuse("latency.nodes", "one or two nodes")
	}
	if err := once("latency.placement", l.Placement); err != nil {
		return err
	}
	return once("latency.nodes", l.Nodes)
}

// Inspect examines the existing cluster of a specification and returns an error if a run
// must not start there. It creates nothing. The specification that it returns has the
// placements filled in.
func Inspect(ctx context.Context, s Spec) (Spec, *Found, error) {
	driver, err := s.Driver()
	if err != nil {
		return s, nil, err
	}
	f := &Found{}
	for _, variant := range append([]string{VariantNone}, s.Latency.Variants...) {
		if variant != VariantNone || f.variants == nil {
			mode, _ := driver.Mode(variant)
			f.variants = append(f.variants, &clusterVariant{variant: variant, knobs: mode.Knobs})
		}
	}
	var knobs []scenario.Settings
	for _, v := range f.variants[min(1, len(f.variants)-1):] {
		knobs = append(knobs, v.knobs)
	}
	place := *s.Existing
	place.Target.Injected = true
	if f.Found, err = place.Inspect(ctx, driver, place.Label(folderName), knobs...); err != nil {
		return s, nil, err
	}
	if f.client, err = kubernetes.NewForConfig(f.Cluster.Config); err != nil {
		return s, nil, err
	}
	if s.Latency.Placement, err = f.chooseNodes(ctx, s.Latency.Nodes, s.Latency.Placement); err != nil {
		return s, nil, err
	}
	if f.adapter, err = f.Adapter(ctx, driver, ""); err != nil {
		return s, nil, err
	}
	objects, err := dynamic.NewForConfig(f.Cluster.Config)
	if err != nil {
		return s, nil, err
	}
	for _, v := range f.variants {
		v.plan(s, f, objects, driver.Installed.Sidecar)
		f.Objects = append(f.Objects, v.applier.SurroundingManifests()...)
		for _, p := range v.pods() {
			f.Objects = append(f.Objects, p.manifest)
		}
	}
	s.found = f
	return s, f, nil
}

// chooseNodes chooses the nodes of the given placements, or of those that the cluster has
// room for.
func (f *Found) chooseNodes(ctx context.Context, named, placements []string) ([]string, error) {
	nodes, err := f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var able []corev1.Node
	for _, n := range nodes.Items {
		if takesPods(n) {
			able = append(able, n)
		}
	}
	slices.SortFunc(able, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	if named != nil {
		var chosen []corev1.Node
		for _, name := range named {
			at := slices.IndexFunc(able, func(n corev1.Node) bool { return n.Name == name })
			if at < 0 {
				return nil, scenario.Refuse("latency.nodes", name, "nodes that are ready, run Linux and have no taints: %s", nodeNames(able))
			}
			chosen = append(chosen, able[at])
		}
		able = chosen
	}
	if len(able) == 0 {
		return nil, errors.New("the cluster has no node that is ready, runs Linux and has no taints")
	}
	if placements == nil {
		placements = []string{OneNode, TwoNodes}[:min(2, len(able))]
	}
	needed := 1
	if slices.Contains(placements, TwoNodes) {
		needed = 2
	}
	if len(able) < needed {
		return nil, scenario.Refuse("latency.placement", TwoNodes, "%s: of the nodes, only %s is ready, runs Linux and has no taints", OneNode, nodeNames(able))
	}
	f.Nodes = able[:needed]
	return placements, nil
}

// takesPods reports whether pods without tolerations can run on a node, and the node is
// not a fake one.
func takesPods(n corev1.Node) bool {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
	return ready && !tainted && !n.Spec.Unschedulable && n.Labels[corev1.LabelOSStable] == "linux" && n.Annotations[kwok.NodeAnnotation] == ""
}

func nodeNames(nodes []corev1.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// cluster describes the cluster for a record.
func (s Spec) cluster() *record.LatencyCluster {
	f := s.found
	c := &record.LatencyCluster{Context: f.Cluster.Context, Server: f.Cluster.Server, Run: f.Run, Image: s.Latency.Image}
	for _, n := range f.Nodes {
		c.Nodes = append(c.Nodes, record.LatencyNode{
			Name: n.Name, CPUs: n.Status.Capacity.Cpu().AsApproximateFloat64(), MemoryBytes: n.Status.Capacity.Memory().AsApproximateFloat64(),
			Kernel: n.Status.NodeInfo.KernelVersion, Kubelet: n.Status.NodeInfo.KubeletVersion, Runtime: n.Status.NodeInfo.ContainerRuntimeVersion,
		})
	}
	return c
}

// controlPlane describes the cluster's control plane for a record.
func (f *Found) controlPlane(name string) record.ControlPlaneSource {
	i := f.Installation
	return record.ControlPlaneSource{Name: name, Version: i.Version, Replicas: i.Replicas, Settings: i.Settings}
}

// errSidecar reports a pod that has no sidecar but should, or has one but should not.
func errSidecar(pod *corev1.Pod, container string, wanted bool) error {
	all := slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers)
	has := slices.ContainsFunc(all, func(c corev1.Container) bool { return c.Name == container })
	switch {
	case wanted && !has:
		return fmt.Errorf("pod %s/%s has no container %s: the cluster's webhook has not injected it", pod.Namespace, pod.Name, container)
	case !wanted && has:
		return fmt.Errorf("pod %s/%s has a container %s, although it must not be injected", pod.Namespace, pod.Name, container)
	}
	return nil
}

// usable reports whether a pod can be connected to; if not, it returns a description of
// the pod's state.
func usable(pod *corev1.Pod) (state string, ok bool) {
	if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && observe.Ready(pod) {
		return "", true
	}
	return observe.Standing(pod), false
}
