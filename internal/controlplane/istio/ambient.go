package istio

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

const (
	// Ambient is the data plane of ztunnels.
	Ambient = "ambient"
	// ambientSetting makes istiod serve ztunnels.
	ambientSetting = "PILOT_ENABLE_AMBIENT"
	// ztunnelName is the name of ztunnel's DaemonSet and account, which CA_TRUSTED_NODE_ACCOUNTS
	// trusts, and the value of its app label.
	ztunnelName = "ztunnel"
	// redirection is the annotation that istio-cni writes to a pod whose traffic goes
	// through its node's ztunnel. By it istiod knows that a pod is reached through HBONE.
	redirection = "ambient.istio.io/redirection"
	// strictPolicy is the policy that istiod sends in the root namespace as soon as there is a
	// PeerAuthentication (staticStrictPolicyName).
	strictPolicy = "istio_converted_static_strict"
)

// ambientDataplane returns a ztunnel on each node. Scope means nothing to ztunnels: each holds the whole mesh.
func ambientDataplane() controlplane.Dataplane {
	d := controlplane.Dataplane{
		Proxy: controlplane.Proxy{
			Name: ztunnelName,
			XDS:  &controlplane.XDS{Variants: []string{string(xdsprobe.Delta)}}, Types: func() (*xdsprobe.Types, error) { return xdsprobe.NewTypes(ztunnel.Types()) },
			Certificates: &controlplane.Certificates{Requested: true, ForLifetime: true}, Tokens: true,
			ConnectionAge: connectionAge, New: authority.NewZtunnel,
		},
		Revisions: true,
		Metrics:   metrics(),
	}
	for _, m := range controlplane.StandardModes() {
		m.Knobs.Scope = ""
		d.Modes = append(d.Modes, m)
	}
	responses := func(label string) string { return `sum(pilot_xds_pushes{type="` + label + `"})` }
	d.Metrics.Counters.Responses = map[convergence.Type]string{
		ztunnel.Address:       responses("wds"),
		ztunnel.Authorization: responses("wads"),
	}
	return d
}

// ambient is a mesh with ztunnels. What they hold follows istiod's
// pilot/pkg/serviceregistry/ambient: every pod that has an address, whether ready or not,
// every service, every endpoint without a pod, and every policy that is not for waypoints
// alone.
type ambient struct{ *ControlPlane }

// Objects is ztunnel's DaemonSet, as its chart makes it, as far as the control plane sees it.
func (c ambient) Objects() (*corev1.ServiceAccount, *appsv1.DaemonSet) {
	labels := map[string]string{"app": ztunnelName, "app.kubernetes.io/name": ztunnelName, "sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none"}
	meta := metav1.ObjectMeta{Name: ztunnelName, Namespace: namespace, Labels: labels}
	annotations := map[string]string{"sidecar.istio.io/inject": "false"}
	if c.opts.Revision != "" {
		annotations[revisionLabel] = c.opts.Revision
	}
	return &corev1.ServiceAccount{ObjectMeta: meta}, &appsv1.DaemonSet{
		ObjectMeta: meta,
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": ztunnelName}},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
				Spec: corev1.PodSpec{
					ServiceAccountName: ztunnelName,
					NodeSelector:       kwok.NodeSelector(),
					Tolerations:        []corev1.Toleration{kwok.Toleration()},
					Containers:         []corev1.Container{{Name: proxyContainer, Image: "scaler.mesh/simulated"}},
				},
			},
		},
	}
}

// PodHealth is part of controlplane.Nodes: each pod that is there is sent.
func (c ambient) PodHealth(ready, terminating bool) convergence.Health {
	if !ready || terminating {
		return convergence.Unhealthy
	}
	return convergence.Healthy
}

// Serves is part of controlplane.Nodes: all namespaces or, in a mixed mesh, every other one. The annotation
// is that which istio-cni writes.
func (c ambient) Serves(mesh topology.Mesh, namespace string) (m controlplane.Membership, ok bool) {
	if c.hasSidecars(mesh, namespace) {
		return m, false
	}
	return controlplane.Membership{
		NamespaceLabels: map[string]string{"istio.io/dataplane-mode": Ambient}, PodAnnotations: map[string]string{redirection: "enabled"},
	}, true
}

// Discovered is part of controlplane.Nodes. With scoped pushes of addresses, istiod skips sidecars in pushes
// that contain nothing else for them, so that they lack the workloads of such a push (proxyDependentOnConfig
// of its pilot/pkg/xds, which asks for a subscription to Address, where sidecars have one to Workload).
func (c ambient) Discovered(pods []string) (keys []convergence.Key, all bool) {
	if !c.mixed() {
		return nil, true
	}
	return c.workloads(workloadType, pods), !setting(c.opts.Resources.Env, scopedSetting, true)
}

// spec returns the ztunnel of a pod: what its construct of a node in src/xds/client.rs says, and
// the headers of src/identity/auth.rs.
func (c ambient) spec(pod *corev1.Pod) proxy.Spec {
	ip, node := pod.Status.PodIP, pod.Spec.NodeName
	return proxy.Spec{
		ID:         pod.Namespace + "/" + pod.Name,
		Address:    c.reached.address,
		ServerName: c.serverName(),
		RootPEM:    c.root,
		NodeID:     fmt.Sprintf("ztunnel~%s~%s.%s~%s.svc.%s", ip, pod.Name, pod.Namespace, pod.Namespace, trustDomain),
		Metadata: map[string]any{
			"NAME": pod.Name, "NAMESPACE": pod.Namespace, "INSTANCE_IPS": ip, "NODE_NAME": node, "CLUSTER_ID": clusterID,
		},
		Headers:   map[string]string{"clusterid": clusterID},
		Keepalive: 30 * time.Second,
		Token:     authority.TokenRequest(pod, tokenAudience),
		Node:      node,
	}
}

// Wants is part of controlplane.Nodes.
func (c ambient) Wants(mesh topology.Mesh, knobs scenario.Settings) []convergence.Want {
	var wants []convergence.Want
	via := map[int][]string{} // the waypoint of each service
	for _, w := range c.waypoints(mesh) {
		host := fqdn(w.Name, w.Namespace)
		wants = append(wants, convergence.Want{Key: addressOf(w.Namespace, host)})
		for _, p := range w.Ports {
			wants = append(wants, convergence.Want{Key: ztunnel.Endpoints(w.Namespace, host, p.Number), Service: w.Namespace + "/" + w.Name + ":" + p.Name})
		}
		for _, i := range w.Services {
			via[i] = []string{ztunnel.WaypointMember(w.Namespace, host)}
		}
	}
	for i, s := range mesh.Services {
		wants = append(wants, convergence.Want{Key: addressOf(s.Namespace, hostname(s)), Members: via[i]})
		for _, p := range s.Ports {
			wants = append(wants, convergence.Want{Key: ztunnel.Endpoints(s.Namespace, hostname(s), p.Number), Service: s.ServicePort(p)})
		}
	}
	for _, o := range c.others {
		wants = append(wants, convergence.Want{Key: addressOf(o.namespace, o.host)})
	}
	for _, key := range c.authorizations(mesh, knobs) {
		wants = append(wants, convergence.Want{Key: key})
	}
	return append(wants, convergence.Want{Key: ztunnel.Serviceless, Service: controlplane.Serviceless})
}

// Holds is part of controlplane.Nodes.
func (c ambient) Holds(mesh topology.Mesh, knobs scenario.Settings, pods []string) []convergence.Key {
	if !expected(c.report.Version) {
		return nil
	}
	var keys []convergence.Key
	for _, w := range c.Wants(mesh, knobs) {
		if w.Service == "" { // else it is of endpoints, which are no resource
			keys = append(keys, w.Key)
		}
	}
	return append(keys, c.workloads(ztunnel.Address, pods)...)
}

// workloads returns the keys of all workloads of the cluster.
func (c ambient) workloads(t convergence.Type, pods []string) []convergence.Key {
	var keys []convergence.Key
	for _, name := range c.podless {
		keys = append(keys, convergence.Key{Type: t, Name: name})
	}
	for _, id := range pods {
		keys = append(keys, convergence.Key{Type: t, Name: clusterID + "//Pod/" + id})
	}
	return keys
}

// waypoints returns the waypoints of a mesh.
func (c ambient) waypoints(mesh topology.Mesh) []controlplane.Waypoint {
	if !c.withWaypoints() {
		return nil
	}
	return waypoints(c).List(mesh)
}

// ServiceProbe returns an annotation that prefers endpoints of the client's zone: fake nodes have
// none. Unlike the field of the Service, it changes no EndpointSlice.
func (c ambient) ServiceProbe(mesh topology.Mesh, service int, made bool) *controlplane.ServiceChange {
	s := mesh.Services[service]
	return preferClose(s.Namespace, s.Name, made)
}

// preferClose returns the change of a Service that has no preference for endpoints, made or taken back. Where nodes have zones, sidecars and
// waypoints are sent other priorities for a while.
func preferClose(namespace, name string, made bool) *controlplane.ServiceChange {
	value := "null"
	if made {
		value = `"PreferClose"`
	}
	return &controlplane.ServiceChange{
		Namespace: namespace, Name: name, Changes: addressOf(namespace, fqdn(name, namespace)),
		Patch: fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, capture.TrafficDistribution, value),
	}
}

// authorizations returns the resources that istiod makes of the knobs' policies.
func (c ambient) authorizations(mesh topology.Mesh, knobs scenario.Settings) []convergence.Key {
	var keys []convergence.Key
	add := func(namespace, name string) {
		keys = append(keys, convergence.Key{Type: ztunnel.Authorization, Name: namespace + "/" + name})
	}
	if knobs.MTLS == "strict" {
		add(namespace, strictPolicy)
	}
	if knobs.Authz == "declared" {
		for callee, callers := range callers(mesh) {
			for _, p := range policiesOf(mesh, callee, callers) {
				add(mesh.Services[callee].Namespace, p.name)
			}
		}
	}
	return keys
}

// addressOf returns the resource of a service.
func addressOf(namespace, host string) convergence.Key {
	return convergence.Key{Type: ztunnel.Address, Name: namespace + "/" + host}
}
