// Package kwok describes what KWOK simulates: the Stages that act as a kubelet for
// simulated pods, and the fake nodes that these run on. Callers start KWOK and create
// nodes and pods.
//
// A pod on a fake node has an address at once, and its containers start in the order in
// which a kubelet starts them, with a write of its status for each. If it has the label
// [RunLabel], it becomes Ready only when its simulated sidecar reports so, through the
// annotation [SidecarAnnotation], and unready again when the annotation is removed, like a
// real pod whose readiness is that of its proxy. Other pods are Ready at once. A deleted pod
// disappears at once, or runs on for the time in [GraceAnnotation].
package kwok

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"runtime"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RunLabel is the label of every object of a run; its value is the run's name.
	RunLabel = "scaler.mesh/run"
	// ServiceLabel distinguishes the pods of one service from those of another; its
	// value is the service's name.
	ServiceLabel = "scaler.mesh/service"
	// OutsideLabel is the label of the pods of a run that have no proxy, which do not have RunLabel: they become Ready at once. Its value is the
	// run's name, or "true" in a cluster of the run's own.
	OutsideLabel = "scaler.mesh/outside"
	// RealLabel is the label of a run's pods on real nodes, and of their owners; its
	// value is "true".
	RealLabel = "scaler.mesh/real"
	// ProfileLabel is the label of an object that belongs to the mesh's profile, in
	// contrast to objects that change it.
	ProfileLabel = "scaler.mesh/profile"
	// SidecarAnnotation on a pod is the state that its simulated sidecar reports.
	SidecarAnnotation = "scaler.mesh/sidecar"
	// SidecarReady is the annotation's value that makes the pod Ready; with any
	// other, or without the annotation, it is not.
	SidecarReady = "ready"
	// GraceAnnotation on a pod is the time that it runs on, terminating, after it was
	// deleted, as in 5s; see SetGracePeriod.
	GraceAnnotation = "scaler.mesh/grace-period"
	// NodeAnnotation marks the nodes that KWOK manages; its value is FakeNode.
	NodeAnnotation = "kwok.x-k8s.io/node"
	// NodeTaint keeps pods that do not tolerate it from fake nodes; its value is
	// FakeNode, its effect NoSchedule. Fake nodes have a label of the same key and value,
	// for the pods' node selector.
	NodeTaint = "kwok.x-k8s.io/node"
	// FakeNode is the value of NodeAnnotation and NodeTaint.
	FakeNode = "fake"
	// PodsPerNode is the number of simulated pods for each node; a node has Room for more.
	PodsPerNode = 100
	// Room is the number of pods that a node can have.
	Room = 1000
	// KubeletVersion is the version that fake nodes report. It must be a valid version:
	// istiod reads all nodes' kubelet versions to decide how it injects sidecars.
	KubeletVersion = "v1.36.3"
)

//go:embed stages.yaml
var stages []byte

// delays matches the durations in the Stages, in milliseconds.
var delays = regexp.MustCompile(`(urationMilliseconds: )(\d+)`)

// Stages returns a configuration file for the kwok program: the options that are the same
// in every cluster, and the Stages.
func Stages() []byte { return append([]byte(nil), stages...) }

// SlowedStages returns Stages with all delays multiplied by a factor.
func SlowedStages(slowdown float64) []byte {
	return delays.ReplaceAllFunc(stages, func(delay []byte) []byte {
		parts := delays.FindSubmatch(delay)
		milliseconds, err := strconv.ParseFloat(string(parts[2]), 64)
		if err != nil {
			return delay // it is made of digits
		}
		return fmt.Appendf(nil, "%s%.0f", parts[1], milliseconds*slowdown)
	})
}

// SetRun adds the label of a run to an object.
func SetRun(o metav1.Object, run string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[RunLabel] = run
	o.SetLabels(labels)
}

// SetGracePeriod makes deleted pods run on for this time, like containers that stop at
// the end of their grace period. Meanwhile such a pod stays Ready, and its endpoints are
// terminating. With 0 the pods are unchanged: they disappear at once.
func SetGracePeriod(pod *corev1.PodTemplateSpec, length time.Duration) {
	if length <= 0 {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[GraceAnnotation] = length.String()
	pod.Spec.TerminationGracePeriodSeconds = new(int64(math.Ceil(length.Seconds())))
}

// HasGracePeriod reports whether a pod runs on after it was deleted.
func HasGracePeriod(pod *corev1.Pod) bool { return pod.Annotations[GraceAnnotation] != "" }

// Nodes returns the number of fake nodes for a run of this number of pods, at least 1.
func Nodes(pods int) int { return max(1, (pods+PodsPerNode-1)/PodsPerNode) }

// Node returns fake node i (0 to 65533) of a run, ready to be created: the run's name is
// part of label and node name, and must be a valid DNS label. Each node has an address of
// 10.1.0.0/16, and no pod CIDR: stages.yaml defines the addresses of pods.
func Node(i int, run string) *corev1.Node { return Shared.Node(i, run) }

// Pool identifies the fake nodes that one KWOK manages. They have an annotation, a label
// and a taint of its key and value: KWOK selects them by the annotation, and simulated
// pods select the label and tolerate the taint.
type Pool struct{ Key, Value string }

// Shared is the pool for a cluster that has no other nodes.
var Shared = Pool{NodeTaint, FakeNode}

// PoolOf returns the pool of the nodes of one run, for clusters that have other nodes
// too. The nodes lack the label of the operating system, so that DaemonSets of the
// cluster that select it do not run there even if they tolerate every taint.
func PoolOf(run string) Pool { return Pool{RunLabel, run} }

// NodeSelector keeps a pod on the nodes of the pool.
func (p Pool) NodeSelector() map[string]string { return map[string]string{p.Key: p.Value} }

// Toleration lets a pod onto the nodes of the pool.
func (p Pool) Toleration() corev1.Toleration {
	return corev1.Toleration{Key: p.Key, Operator: corev1.TolerationOpEqual, Value: p.Value, Effect: corev1.TaintEffectNoSchedule}
}

// selection is the line of stages.yaml that selects the nodes that KWOK manages, and pods
// the expression there that makes a pod's address.
const (
	selection = "manageNodesWithAnnotationSelector: " + NodeTaint + "=" + FakeNode
	pods      = `printf "10.%d.%d.%d" (add 64 (mod`
)

// StagesOf returns Stages for the nodes of a pool, with pod addresses from one of the
// ranges that Addresses returns.
func StagesOf(p Pool, addresses netip.Prefix) []byte {
	first := addresses.Addr().As4()
	all := bytes.Replace(stages, []byte(selection), fmt.Appendf(nil, "manageNodesWithAnnotationSelector: %s=%s", p.Key, p.Value), 1)
	return bytes.Replace(all, []byte(pods), fmt.Appendf(nil, `printf "%d.%%d.%%d.%%d" (add %d (mod`, first[0], first[1]), 1)
}

// Addresses returns the possible ranges of the addresses of simulated pods, the default
// of Stages first. A pod's address is computed from a number of 22 bits.
func Addresses() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range []string{"10.64.0.0/10", "10.128.0.0/10", "10.192.0.0/10", "100.64.0.0/10"} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// nodeNetwork returns the beginning of the addresses of a pool's nodes: in a cluster with
// other nodes they are from a range for tests of networks (RFC 2544).
func (p Pool) nodeNetwork() string {
	if p == Shared {
		return "10.1"
	}
	return "198.18"
}

// Node is like the function Node, for the nodes of a pool.
func (p Pool) Node(i int, run string) *corev1.Node {
	name := fmt.Sprintf("%s-node-%d", run, i)
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1k"),
		corev1.ResourceMemory: resource.MustParse("4Ti"),
		corev1.ResourcePods:   *resource.NewQuantity(Room, resource.DecimalSI),
	}
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{p.Key: p.Value},
			Labels: map[string]string{
				p.Key:                  p.Value,
				RunLabel:               run,
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{{Key: p.Key, Value: p.Value, Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("%s.%d.%d", p.nodeNetwork(), (i+1)/256, (i+1)%256)},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            runtime.GOARCH,
				OperatingSystem:         "linux",
				ContainerRuntimeVersion: "kwok",
				KubeletVersion:          KubeletVersion,
			},
		},
	}
	if p != Shared {
		delete(node.Labels, corev1.LabelOSStable)
	}
	return node
}

// Toleration lets a pod onto fake nodes; [NodeSelector] keeps it there.
func Toleration() corev1.Toleration { return Shared.Toleration() }

// NodeSelector returns the node selector of simulated pods.
func NodeSelector() map[string]string { return Shared.NodeSelector() }

// ServiceAddress returns the n-th address, from 1 to 250, of those that the embedded
// cluster does not assign to services by itself: the first 256 of 10.0.0.0/16.
func ServiceAddress(n int) string { return fmt.Sprintf("10.0.0.%d", n+1) }
