package capture

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	injectionLabel  = "istio-injection"
	revisionLabel   = "istio.io/rev"
	injectLabel     = "sidecar.istio.io/inject" // also an annotation
	templatesKey    = "inject.istio.io/templates"
	gatewayTemplate = "gateway"
	proxyContainer  = "istio-proxy"
)

// droppedLabel reports whether a label is dropped: the labels that decide which pods get
// a sidecar (Workload.Sidecar has that), those that controllers and injection add by
// themselves, and scaler's own.
func droppedLabel(name string) bool {
	switch name {
	case injectionLabel, revisionLabel, injectLabel, "security.istio.io/tlsMode",
		"pod-template-hash", "controller-revision-hash", "pod-template-generation", "controller-uid", "job-name",
		"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", corev1.LabelMetadataName:
		return true
	}
	return strings.HasPrefix(name, "scaler.mesh/") || strings.HasPrefix(name, "batch.kubernetes.io/")
}

func keptLabels(labels map[string]string) map[string]string {
	return kept(labels, func(name string) bool { return !droppedLabel(name) })
}

// keptAnnotations returns the annotations that a control plane reads: on services and
// namespaces those for visibility and traffic distribution, on pods those for injection.
func keptAnnotations(annotations map[string]string) map[string]string {
	return kept(annotations, func(name string) bool {
		switch name {
		case "networking.istio.io/exportTo", "networking.istio.io/traffic-distribution", templatesKey,
			corev1.AnnotationTopologyMode, "ambient.istio.io/redirection":
			return true
		}
		return strings.HasPrefix(name, "traffic.sidecar.istio.io/") || strings.HasPrefix(name, "alpha.istio.io/") ||
			name == "gateway.istio.io/controller-version"
	})
}

func kept(all map[string]string, keep func(string) bool) map[string]string {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(name, _ string) bool { return !keep(name) })
	if len(some) == 0 {
		return nil
	}
	return some
}

// trimmed returns an object of a mesh's configuration reduced to what the control plane
// reads: its name, labels, kept annotations and spec.
func (r Resource) trimmed(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := map[string]any{"name": object.GetName()}
	if !r.Cluster {
		metadata["namespace"] = object.GetNamespace()
		if object.GetNamespace() == "" {
			metadata["namespace"] = metav1.NamespaceDefault
		}
	}
	if labels := keptLabels(object.GetLabels()); labels != nil {
		metadata["labels"] = untyped(labels)
	}
	if annotations := keptAnnotations(object.GetAnnotations()); annotations != nil {
		metadata["annotations"] = untyped(annotations)
	}
	trimmed := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata}
	if spec := object.Object["spec"]; spec != nil {
		trimmed["spec"] = spec
	}
	return (&unstructured.Unstructured{Object: trimmed}).DeepCopy()
}

func untyped(values map[string]string) map[string]any {
	all := map[string]any{}
	for name, value := range values {
		all[name] = value
	}
	return all
}

// trimmedService returns a service reduced to what a control plane reads. Addresses are
// left out: the replay assigns its own.
func trimmedService(s corev1.Service) corev1.Service {
	t := corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name, Namespace: s.Namespace, Labels: keptLabels(s.Labels), Annotations: keptAnnotations(s.Annotations),
		},
		Spec: corev1.ServiceSpec{
			Selector: s.Spec.Selector, ExternalName: s.Spec.ExternalName, PublishNotReadyAddresses: s.Spec.PublishNotReadyAddresses,
			TrafficDistribution: s.Spec.TrafficDistribution,
		},
	}
	if policy := s.Spec.InternalTrafficPolicy; policy != nil && *policy != corev1.ServiceInternalTrafficPolicyCluster {
		t.Spec.InternalTrafficPolicy = policy
	}
	if s.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Spec.Type = s.Spec.Type
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		t.Spec.ClusterIP = corev1.ClusterIPNone
	}
	for _, p := range s.Spec.Ports {
		p.NodePort = 0
		if p.Protocol == corev1.ProtocolTCP {
			p.Protocol = ""
		}
		if p.TargetPort.IntVal == p.Port {
			p.TargetPort.IntVal = 0 // which means the same
		}
		t.Spec.Ports = append(t.Spec.Ports, p)
	}
	return t
}

// fill copies the properties of a pod's metadata and specification to a workload.
func (w *WorkloadSpec) fill(meta metav1.ObjectMeta, spec corev1.PodSpec) {
	w.Labels, w.Annotations = meta.Labels, meta.Annotations
	w.Gateway = isGateway(meta, spec)
	if spec.ServiceAccountName != "default" {
		w.Account = spec.ServiceAccountName
	}
	for _, c := range spec.Containers {
		if c.Name == proxyContainer && !w.Gateway {
			continue
		}
		for _, p := range c.Ports {
			if w.Gateway && p.Name == "http-envoy-prom" {
				continue // injection adds it
			}
			if p.Protocol == corev1.ProtocolTCP {
				p.Protocol = ""
			}
			w.Ports = append(w.Ports, Port{p.Name, p.ContainerPort, p.Protocol})
		}
	}
}

// isGateway reports whether a pod is a gateway: it requests the gateway template, or its
// only proxy runs as a router.
func isGateway(meta metav1.ObjectMeta, spec corev1.PodSpec) bool {
	if meta.Annotations[templatesKey] == gatewayTemplate {
		return true
	}
	for _, c := range spec.Containers {
		if c.Name == proxyContainer && len(c.Args) > 1 && c.Args[0] == "proxy" && c.Args[1] == "router" {
			return true
		}
	}
	return false
}

// hasProxy reports whether a pod has a sidecar; native ones are init containers.
func hasProxy(spec corev1.PodSpec) bool {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range containers {
			if c.Name == proxyContainer {
				return true
			}
		}
	}
	return false
}

// asksForSidecar reports whether a template requests a sidecar, whatever its namespace
// says.
func asksForSidecar(meta metav1.ObjectMeta, spec corev1.PodSpec) bool {
	if spec.HostNetwork {
		return false
	}
	return meta.Labels[injectLabel] == "true" || meta.Labels[injectLabel] == "" && meta.Labels[revisionLabel] != ""
}

// refusesSidecar reports whether a template refuses a sidecar, whatever its namespace
// says.
func (w WorkloadSpec) refusesSidecar() bool {
	return w.Labels[injectLabel] == "false" || w.Labels[injectLabel] == "" && w.Annotations[injectLabel] == "false"
}
