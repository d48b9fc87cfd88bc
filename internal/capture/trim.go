package capture

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
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
	exportToKey     = "networking.istio.io/exportTo" // of a Service
	gatewayTemplate = "gateway"
	proxyContainer  = "istio-proxy"
	proxyConfigKey  = "proxy.istio.io/config"             // an annotation of a pod: the ProxyConfig of its proxy, in YAML
	interceptionKey = "sidecar.istio.io/interceptionMode" // an annotation of a pod, which overrides the mode of the ProxyConfig
	injectionStatus = "sidecar.istio.io/status"           // an annotation of a pod: what injection added
)

// TrafficDistribution is the annotation of a Service or a Namespace with the endpoints that clients prefer.
const TrafficDistribution = "networking.istio.io/traffic-distribution"

// Further names of labels and annotations.
const (
	podName        = "statefulset.kubernetes.io/pod-name"
	podIndex       = "apps.kubernetes.io/pod-index"
	canonical      = "service.istio.io/canonical-" // and name or revision, which injection adds where it is missing
	tlsModeLabel   = "security.istio.io/tlsMode"   // which injection adds where it is missing, as tlsModeInjected
	dataplaneLabel = "istio.io/dataplane-mode"
	networkLabel   = "topology.istio.io/network"    // of the control plane's namespace and pods: that of endpoints; of a Service or a Gateway: that it leads to
	redirection    = "ambient.istio.io/redirection" // of a pod whose connections a ztunnel takes

	tlsModeInjected = "istio"
	ownPrefix       = "scaler.mesh/" // of scaler's labels and annotations
)

// droppedLabel reports whether a label is dropped: the labels that decide which pods get
// a sidecar (Workload.Proxy has that), those that controllers and injection add by
// themselves, and scaler's own.
func droppedLabel(name string) bool {
	switch name {
	case injectionLabel, revisionLabel, injectLabel, tlsModeLabel, "pod-template-hash", corev1.LabelMetadataName:
		return true
	}
	return strings.HasPrefix(name, ownPrefix) || perPod(name)
}

// perPod reports whether a controller adds a label to its pods that a Deployment's pods do not have of
// their own. It is kept where something selects pods by it.
func perPod(name string) bool {
	switch name {
	case "controller-revision-hash", "pod-template-generation", "controller-uid", "job-name", podName, podIndex:
		return true
	}
	return strings.HasPrefix(name, "batch.kubernetes.io/")
}

func keptLabels(labels map[string]string) map[string]string {
	return kept(labels, func(name string) bool { return !droppedLabel(name) })
}

// keptAnnotations returns the annotations that a control plane reads: on services and
// namespaces those for visibility and traffic distribution, on pods those for injection.
func keptAnnotations(annotations map[string]string) map[string]string {
	return kept(annotations, func(name string) bool {
		switch name {
		case exportToKey, TrafficDistribution, templatesKey, corev1.AnnotationTopologyMode, controllerVersion:
			return true
		}
		return strings.HasPrefix(name, "traffic.sidecar.istio.io/") || strings.HasPrefix(name, "alpha.istio.io/")
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
// reads: its name, labels, kept annotations and spec, and the revision that it is for.
func (r Resource) trimmed(object *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := map[string]any{"name": object.GetName()}
	if !r.Cluster {
		metadata["namespace"] = cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)
	}
	if labels := keptLabels(object.GetLabels()); labels != nil {
		metadata["labels"] = untyped(labels)
	}
	annotations := keptAnnotations(object.GetAnnotations())
	if annotations[controllerVersion] == otherVersion { // of LeftAlone
		delete(annotations, controllerVersion)
		if version := object.GetAnnotations()[keptVersion]; version != "" {
			annotations[controllerVersion] = version
		}
	}
	if of := cmp.Or(object.GetLabels()[revisionLabel], object.GetAnnotations()[revisionAnnotation]); of != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[revisionAnnotation] = of
	}
	if len(annotations) > 0 {
		metadata["annotations"] = untyped(annotations)
	}
	trimmed := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata}
	if spec := object.Object["spec"]; spec != nil {
		trimmed["spec"] = spec
	}
	made := (&unstructured.Unstructured{Object: trimmed}).DeepCopy()
	if r.Kind == "Gateway" {
		withoutMade(made)
	}
	return made
}

func untyped(values map[string]string) map[string]any {
	all := map[string]any{}
	for name, value := range values {
		all[name] = value
	}
	return all
}

// trimmedService returns a service reduced to what a control plane reads. Addresses that a cluster assigns are
// left out: the replay assigns its own. Its IP families are there if they are more than IPv4.
func trimmedService(s corev1.Service) corev1.Service {
	t := corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name, Namespace: s.Namespace, Labels: keptLabels(s.Labels), Annotations: keptAnnotations(s.Annotations),
		},
		Spec: corev1.ServiceSpec{
			Selector: s.Spec.Selector, ExternalName: s.Spec.ExternalName, PublishNotReadyAddresses: s.Spec.PublishNotReadyAddresses,
			TrafficDistribution: s.Spec.TrafficDistribution, ExternalIPs: s.Spec.ExternalIPs, IPFamilies: familiesOf(s),
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

// familiesOf returns the IP families of a service, of one of a replay those that it has not; nil = IPv4 alone.
func familiesOf(s corev1.Service) (families []corev1.IPFamily) {
	families = s.Spec.IPFamilies
	if text := s.Annotations[familiesAnnotation]; text != "" {
		families = nil
		for family := range strings.SplitSeq(text, ",") {
			families = append(families, corev1.IPFamily(family))
		}
	}
	if len(families) == 0 || slices.Equal(families, []corev1.IPFamily{corev1.IPv4Protocol}) {
		return nil
	}
	return families
}

// specOf returns what a pod's metadata and specification say of its workload: its proxy, account and
// containers. Those of injection are none of the pod's own. proxy is its proxy, if that is known; "" = the pod shows it.
func specOf(meta metav1.ObjectMeta, spec corev1.PodSpec, proxy Proxy) WorkloadSpec {
	w := WorkloadSpec{Proxy: cmp.Or(proxy, proxyOf(meta, spec))}
	if account := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount); account != "default" {
		w.Account = account // the API server gives both fields the same
	}
	containers := spec.Containers
	for _, c := range spec.InitContainers { // those that stay have ports as well, after the others
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(slices.Clip(containers), c)
		}
	}
	injected, _ := injectedContainers(meta)
	for _, c := range containers {
		if (w.Proxy == Sidecar || w.Proxy == NoProxy) && (c.Name == proxyContainer || slices.Contains(injected, c.Name)) || c.Image == placeholderImage {
			continue
		}
		of := Container{Name: c.Name}
		for _, p := range c.Ports {
			if c.Name == proxyContainer && p.Name == "http-envoy-prom" {
				continue // injection adds it
			}
			if p.Protocol == corev1.ProtocolTCP {
				p.Protocol = ""
			}
			of.Ports = append(of.Ports, Port{p.Name, p.ContainerPort, p.Protocol})
		}
		w.Containers = append(w.Containers, of)
	}
	return w
}

// injectedContainers returns the names of the containers that Istio's injection added to a pod, as it writes them on it.
func injectedContainers(meta metav1.ObjectMeta) (names []string, known bool) {
	var added struct{ InitContainers, Containers []string }
	if json.Unmarshal([]byte(meta.Annotations[injectionStatus]), &added) != nil {
		return nil, false
	}
	return slices.Concat(added.InitContainers, added.Containers), true
}

// asksFor reports whether annotations of a pod ask for one of these templates of injection.
func asksFor(annotations map[string]string, templates ...string) bool {
	for name := range strings.SplitSeq(annotations[templatesKey], ",") {
		if slices.Contains(templates, strings.TrimSpace(name)) {
			return true
		}
	}
	return false
}

// proxyless reports whether the application of a pod has no proxy, but asks the control plane for configuration itself, as gRPC does.
func proxyless(annotations map[string]string) bool {
	return asksFor(annotations, "grpc-simple", "grpc-agent")
}

// proxyOf returns what a pod is by its proxy: what its arguments make of it, or the template of
// injection that it requests. The proxy of a sidecar may be an init container. The agent of an application without a proxy is none.
func proxyOf(meta metav1.ObjectMeta, spec corev1.PodSpec) Proxy {
	switch {
	case asksFor(meta.Annotations, gatewayTemplate):
		return Gateway
	case proxyless(meta.Annotations):
		return NoProxy
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range containers {
			if c.Name != proxyContainer {
				continue
			}
			role := ""
			if len(c.Args) > 1 && c.Args[0] == "proxy" {
				role = c.Args[1]
			}
			switch {
			case role == "router":
				return Gateway
			case role == "waypoint", meta.Labels["gateway.networking.k8s.io/gateway-class-name"] == WaypointClass:
				return Waypoint
			case role == "ztunnel", meta.Labels["app"] == "ztunnel":
				return Ztunnel
			}
			return Sidecar
		}
	}
	return NoProxy
}
