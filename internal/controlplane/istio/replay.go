package istio

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// captured replays captured meshes.
type captured struct{ *ControlPlane }

func (c captured) parts() *controlplane.Captured {
	return &controlplane.Captured{
		Prepare: c.Prepare, Replay: c.Replay, Templates: c.Templates, Assigned: c.Assigned, Machines: c.Machines, Explain: c.Explain, Probes: c.Probes, Distributed: c.Distributed,
		Nodes: func(mesh *capture.Mesh) *controlplane.NodeProxies {
			r := newReplayed(configuration(c), mesh)
			nodes := &controlplane.NodeProxies{Nodes: replayedNodes{ambient(c), r}}
			if mesh.Waypoints != nil {
				nodes.Waypoints = replayedWaypoints{r}
			}
			return nodes
		},
	}
}

// Replay derives what is expected from services, the pods that they select, who may see them, and
// the Sidecars that say what a workload wants to see. Where the rules of this package do not say for
// certain what istiod sends, nothing is expected, and what that is about is returned.
func (c captured) Replay(mesh *capture.Mesh) (controlplane.Mesh, []record.NotChecked) {
	r := newReplayed(configuration(c), mesh)
	return r, r.notChecked()
}

// replayed has what istiod makes of a captured mesh.
type replayed struct {
	configuration
	mesh     *capture.Mesh
	root     string                       // namespace
	unseen   []string                     // namespaces
	objects  []*unstructured.Unstructured // that istiod sees
	defaults exports
	services []visible
	scopes   []egress       // of the workloads, with their indices
	shared   map[int32]bool // ports of more than HTTP services, of which something else may have the listener on any address
	routed   []string       // hosts that VirtualServices for sidecars name, as they are written
	chosen   []string       // hosts that DestinationRules send past istiod's endpoints
	removes  bool           // an EnvoyFilter takes clusters away
	rules    []rule         // DestinationRules
	entries  []entry        // hosts of ServiceEntries
	named    map[string]int // by host: services and ServiceEntries that have it
	machines []machine      // WorkloadEntries

	configured bool // ProxyConfigs change what proxies are configured to
}

// exports state who sees services and rules that do not state it themselves, by the mesh's configuration; nil = all.
type exports struct{ services, rules []string }

// visible is a service of Kubernetes, and who sees it.
type visible struct {
	*corev1.Service
	host     string
	rule     *rule    // the only DestinationRule for it; nil = none, or several
	exportTo []string // namespaces, "*" all, "." its own, "~" none; empty = all
	blurred  bool     // it selects a machine, or has an EndpointSlice or a ServiceEntry, of which the endpoints are not certain
	doubles  []entry  // of other namespaces that have its host
	sliced   bool     // it has endpoints that are no pods, in EndpointSlices
	// distributed names the object that distributes its connections over localities; "" = there is none.
	distributed string
	waypoint    int  // index in Mesh.Waypoints of the one that it has; -1 = none
	certain     bool // the waypoint is certain
}

// egress states what a workload's Sidecar lets it see.
type egress struct {
	name    string     // of the Sidecar, "" = there is none
	hosts   [][]string // of listeners for all ports: those of one listener; nil = all
	all     bool
	partial bool // there are listeners for one port, or several Sidecars that apply
	ingress bool // the Sidecar has inbound listeners of its own

	redirected bool // connections are redirected to the proxy, so that it has listeners for them
}

// rootOf returns the namespace whose configuration applies to the whole of a captured mesh: that of the file or, of an istiod that a
// cluster has already, its own.
func (c configuration) rootOf(mesh *capture.Mesh) string { return cmp.Or(c.home, mesh.Root()) }

func newReplayed(c configuration, mesh *capture.Mesh) *replayed {
	r := &replayed{configuration: c, mesh: mesh, root: c.rootOf(mesh), shared: map[int32]bool{}, named: map[string]int{}}
	r.unseen = r.readControlPlane()
	for _, o := range mesh.Objects {
		if !slices.Contains(r.unseen, o.GetNamespace()) {
			r.objects = append(r.objects, o)
		}
	}
	for i := range mesh.Services {
		s := &mesh.Services[i]
		if slices.Contains(r.unseen, s.Namespace) {
			continue
		}
		v := visible{Service: s, host: fqdn(s.Name, s.Namespace), exportTo: r.defaults.services}
		if to := s.Annotations["networking.istio.io/exportTo"]; to != "" {
			v.exportTo = nil
			for namespace := range strings.SplitSeq(to, ",") {
				v.exportTo = append(v.exportTo, strings.TrimSpace(namespace))
			}
		}
		r.services = append(r.services, v)
		for _, p := range s.Spec.Ports {
			if v.headless() && kindOf(p) != routed && p.Protocol != corev1.ProtocolUDP {
				r.shared[p.Port] = true
			}
		}
	}
	for _, o := range r.objects {
		r.readObject(o)
	}
	entries := map[string][]entry{} // by host
	for _, e := range r.entries {
		entries[e.host] = append(entries[e.host], e)
		r.named[e.host]++
	}
	by, sliced := distributed(mesh), mesh.ServiceSlices()
	for i := range r.services {
		r.services[i].distributed = by(r.services[i].host)
		r.services[i].rule = ruleOf(r.rules, r.services[i].host)
		r.services[i].blurred = slices.ContainsFunc(r.machines, func(m machine) bool { return !m.certain() && m.selected(r.services[i]) })
		for _, s := range sliced[r.services[i].Namespace+"/"+r.services[i].Name] {
			r.services[i].sliced, r.services[i].blurred = true, r.services[i].blurred || !certainSlice(s)
		}
		for _, e := range entries[r.services[i].host] {
			if e.Namespace == r.services[i].Namespace {
				r.services[i].blurred = true // istiod adds the endpoints of the entry to those of the Service
			} else {
				r.services[i].doubles = append(r.services[i].doubles, e)
			}
		}
		r.named[r.services[i].host]++
		r.services[i].waypoint, r.services[i].certain = r.waypointOf(r.services[i])
	}
	for i := range mesh.Workloads {
		w := &mesh.Workloads[i]
		scope := r.egressOf(w)
		scope.redirected = w.Spec.Redirected()
		r.scopes = append(r.scopes, scope)
	}
	return r
}

// readControlPlane takes what the captured control plane's configuration decides about the expectations, and
// returns the namespaces that it does not see.
func (r *replayed) readControlPlane() (unseen []string) {
	served := r.mesh.Served()
	if served == nil {
		return nil
	}
	list := func(name string) (texts []string) {
		all, _ := served.MeshConfig[name].([]any)
		for _, of := range all {
			if text, ok := of.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	r.defaults = exports{services: list("defaultServiceExportTo"), rules: list("defaultDestinationRuleExportTo")}
	return served.Undiscovered
}

// readObject takes what an object of the configuration decides about the expectations.
func (r *replayed) readObject(o *unstructured.Unstructured) {
	if capture.IsGatewayAPI(o.GroupVersionKind()) {
		if hosts, ok := routeOfService(o); ok {
			r.routed = append(r.routed, hosts...)
		}
		return
	}
	switch o.GetKind() {
	case "VirtualService":
		gateways, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "gateways")
		if len(gateways) > 0 && !slices.Contains(gateways, "mesh") {
			return
		}
		hosts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "hosts")
		for _, host := range hosts {
			r.routed = append(r.routed, capture.FullHost(host, o.GetNamespace(), trustDomain))
		}
	case "DestinationRule":
		r.rules = append(r.rules, r.readRule(o))
		if holdsText(o.Object["spec"], "simple", "PASSTHROUGH") {
			host, _, _ := unstructured.NestedString(o.Object, "spec", "host")
			r.chosen = append(r.chosen, capture.FullHost(host, o.GetNamespace(), trustDomain))
		}
	case "ProxyConfig":
		r.configured = true
	case "WorkloadEntry":
		if r.on("PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES", true) {
			r.machines = append(r.machines, readMachine(o))
		}
	case "ServiceEntry":
		for _, e := range r.readEntry(o) {
			r.entries = append(r.entries, e)
			for _, p := range e.ports {
				r.shared[int32(p.number)] = true
			}
		}
	case "EnvoyFilter":
		r.removes = r.removes || holdsText(o.Object["spec"], "operation", "REMOVE")
	}
}

// routeOfService returns the hosts of Services that a route of the Gateway API is a child of.
func routeOfService(o *unstructured.Unstructured) (hosts []string, ok bool) {
	parents, _, _ := unstructured.NestedSlice(o.Object, "spec", "parentRefs")
	for _, p := range parents {
		parent, _ := p.(map[string]any)
		if parent["kind"] == "Service" {
			name, _ := parent["name"].(string)
			namespace, _ := parent["namespace"].(string)
			hosts = append(hosts, fqdn(name, cmp.Or(namespace, o.GetNamespace())))
		}
	}
	return hosts, hosts != nil
}

// holdsText reports whether a field of this name, anywhere below, has this text.
func holdsText(value any, field, text string) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, of := range v {
			if name == field && of == text || holdsText(of, field, text) {
				return true
			}
		}
	case []any:
		for _, of := range v {
			if holdsText(of, field, text) {
				return true
			}
		}
	}
	return false
}

// external reports whether a service is another name of one.
func (v visible) external() bool { return v.Spec.Type == corev1.ServiceTypeExternalName }

func (v visible) headless() bool { return !v.external() && v.Spec.ClusterIP == corev1.ClusterIPNone }

// some reports whether sidecars get only some of a service's endpoints, or others than ready ones by
// rules of their own (SupportsUnhealthyEndpoints and the node-local filter of istiod's pilot/pkg).
func (v visible) some() bool {
	local := v.Spec.InternalTrafficPolicy != nil && *v.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
	return local || v.blurred || v.distributed != "" || v.Spec.TrafficDistribution != nil || v.Spec.PublishNotReadyAddresses ||
		v.Annotations[capture.TrafficDistribution] != "" || v.Annotations[corev1.AnnotationTopologyMode] != ""
}

// doubled reports whether a workload of another namespace than a service may have, in place of it, a ServiceEntry of its host: which of both
// depends on their namespaces and on Sidecars (DefaultSidecarScopeForNamespace and appendSidecarServices of istiod's pilot/pkg/model).
func (v visible) doubled(from string) bool {
	return from != v.Namespace && slices.ContainsFunc(v.doubles, func(e entry) bool { return e.exported(from) })
}

// exported reports whether a service is visible in a namespace.
func (v visible) exported(to string) bool {
	if len(v.exportTo) == 0 {
		return true
	}
	for _, e := range v.exportTo {
		if e == "*" || e == to || e == "." && v.Namespace == to {
			return true
		}
	}
	return false
}

// egressOf returns what the Sidecar of a workload lets it see: one that selects it, else the one of its
// namespace, else that of the root namespace. Gateways have none.
func (r *replayed) egressOf(w *capture.Workload) egress {
	if w.Spec.Proxy == capture.Gateway {
		return egress{all: true}
	}
	var own, ofNamespace, ofRoot []*unstructured.Unstructured
	for _, o := range r.objects {
		if o.GetKind() != "Sidecar" {
			continue
		}
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "workloadSelector", "labels")
		switch {
		case o.GetNamespace() == w.Namespace && len(selector) > 0:
			if selects(selector, w.Spec.Labels) {
				own = append(own, o)
			}
		case o.GetNamespace() == w.Namespace:
			ofNamespace = append(ofNamespace, o)
		case o.GetNamespace() == r.root && len(selector) == 0:
			ofRoot = append(ofRoot, o)
		}
	}
	for _, candidates := range [][]*unstructured.Unstructured{own, ofNamespace, ofRoot} {
		if len(candidates) > 0 {
			e := readEgress(candidates[0])
			e.partial = e.partial || len(candidates) > 1
			if len(candidates) > 1 { // the oldest applies, and a file has no times
				e.hosts, e.all = nil, false
			}
			return e
		}
	}
	return egress{all: true}
}

func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return true
}

func readEgress(o *unstructured.Unstructured) egress {
	e := egress{name: o.GetNamespace() + "/" + o.GetName()}
	_, e.ingress, _ = unstructured.NestedSlice(o.Object, "spec", "ingress")
	listeners, _, _ := unstructured.NestedSlice(o.Object, "spec", "egress")
	e.all = len(listeners) == 0
	for _, l := range listeners {
		listener, _ := l.(map[string]any)
		if listener["port"] != nil || listener["bind"] != nil || listener["captureMode"] != nil {
			e.partial = true
			continue
		}
		hosts, _, _ := unstructured.NestedStringSlice(listener, "hosts")
		e.hosts = append(e.hosts, hosts)
	}
	return e
}

// sees reports whether a workload of a namespace certainly sees a service.
func (e egress) sees(from string, v visible) bool {
	if !v.exported(from) {
		return false
	}
	if e.all {
		return true
	}
	for _, hosts := range e.hosts {
		for _, host := range hosts {
			in, name, ok := strings.Cut(host, "/")
			if !ok || in == "~" {
				continue
			}
			if in == "*" || in == v.Namespace || in == "." && v.Namespace == from {
				if capture.HostMatches(name, v.host) {
					return true
				}
			}
		}
	}
	return false
}

// Objects returns the captured objects. With waypoints, whose Gateways are made before, istiod leaves all other Gateways alone.
func (r *replayed) Objects(topology.Mesh, scenario.Settings) []*unstructured.Unstructured {
	if r.mesh.Waypoints == nil {
		return r.mesh.Objects
	}
	var objects []*unstructured.Unstructured
	for _, o := range r.mesh.Objects {
		switch gateway := o.GetKind() == "Gateway" && capture.IsGatewayAPI(o.GroupVersionKind()); {
		case gateway && r.mesh.WaypointNamed(o.GetNamespace(), o.GetName()) >= 0:
		case gateway:
			objects = append(objects, capture.LeftAlone(o))
		default:
			objects = append(objects, o)
		}
	}
	return objects
}

// Wants are, for every service in scope that is not external, a cluster for each port, the clusters
// of its subsets and their endpoints, which headless ones have at gateways alone; the clusters of
// hosts outside the cluster; for a workload with a sidecar also its listeners of all traffic, an inbound
// cluster for each port of a service that selects it, and the route configuration of each port that
// HTTP services in scope share, with the hosts that nothing else routes.
func (r *replayed) Wants(_ topology.Mesh, _ scenario.Settings, service int) []convergence.Want {
	w, e := &r.mesh.Workloads[service], r.scopes[service]
	if !w.Spec.HasSidecar() {
		return nil
	}
	var wants []convergence.Want
	if w.Spec.Proxy != capture.Gateway && e.redirected {
		wants = append(wants, convergence.WantOf(convergence.LDS, virtualOutbound), convergence.WantOf(convergence.LDS, virtualInbound))
		wants = append(wants, r.inbound(w, e)...)
	}
	if w.Spec.Proxy == capture.Gateway && r.on(gatewayClusters, false) {
		return nil // it has only the clusters that its routes name
	}
	routes := map[int32][]string{}
	for _, v := range r.services {
		if v.external() || !e.sees(w.Namespace, v) || v.doubled(w.Namespace) {
			continue
		}
		for _, p := range v.Spec.Ports {
			if p.Protocol == corev1.ProtocolUDP || p.Protocol == corev1.ProtocolSCTP {
				continue
			}
			wants = append(wants, r.outbound(w, v, p)...)
			if kindOf(p) == routed && w.Spec.Proxy != capture.Gateway {
				routes[p.Port] = append(routes[p.Port], v.host)
			}
		}
	}
	if r.removes {
		return wants
	}
	wants = append(wants, r.wantEntries(w, e)...)
	if e.partial || !e.redirected {
		return wants
	}
	for port, hosts := range routes {
		if r.shared[port] || port >= 15000 && port < 15100 { // the proxy's own
			continue
		}
		route := convergence.WantOf(convergence.RDS, fmt.Sprint(port))
		for _, host := range hosts {
			if !slices.ContainsFunc(r.routed, func(by string) bool { return capture.HostMatches(by, host) }) {
				route.Members = append(route.Members, host)
			}
		}
		wants = append(wants, route, convergence.WantOf(convergence.LDS, anyAddress(int(port))))
	}
	return wants
}

// outbound returns the clusters of a service's port, its own and those of its subsets, and their
// endpoints. Of a subset that selects some of the service's pods, they are not compared.
func (r *replayed) outbound(w *capture.Workload, v visible, p corev1.ServicePort) []convergence.Want {
	if r.removes {
		return nil
	}
	var wants []convergence.Want
	add := func(name string, whole bool) {
		wants = append(wants, convergence.WantOf(convergence.CDS, name))
		if r.isChosen(v.host) || v.headless() && w.Spec.Proxy != capture.Gateway {
			return
		}
		endpoints := convergence.WantOf(convergence.EDS, name)
		if whole && !v.some() {
			endpoints.Service = v.Namespace + "/" + v.Name + ":" + p.Name
		}
		wants = append(wants, endpoints)
	}
	add(outboundCluster(int(p.Port), v.host), true)
	for _, s := range v.subsetsFor(w.Namespace) {
		add(subsetCluster(int(p.Port), s.name, v.host), s.all(v))
	}
	return wants
}

// isChosen reports whether a DestinationRule sends a host past istiod's endpoints.
func (r *replayed) isChosen(host string) bool {
	return slices.ContainsFunc(r.chosen, func(by string) bool { return capture.HostMatches(by, host) })
}

// inbound returns the clusters of what reaches a workload.
func (r *replayed) inbound(w *capture.Workload, e egress) []convergence.Want {
	if e.ingress || r.removes {
		return nil
	}
	targets := map[int32]bool{}
	for _, v := range r.services {
		if !capture.Selects(v.Service, w) {
			continue
		}
		for _, p := range v.Spec.Ports {
			if target := capture.Target(p, w); target > 0 && p.Protocol != corev1.ProtocolUDP && p.Protocol != corev1.ProtocolSCTP {
				targets[target] = true
			}
		}
	}
	var wants []convergence.Want
	for target := range targets {
		wants = append(wants, convergence.WantOf(convergence.CDS, inboundCluster(topology.Port{Target: int(target)})))
	}
	return wants
}

// on returns the value of a setting of istiod that is on or off.
func (r *replayed) on(name string, otherwise bool) bool {
	if r.ControlPlane == nil {
		return otherwise
	}
	return setting(r.opts.Resources.Env, name, otherwise)
}

// Holds is not known: the services decide about the least that a sidecar holds.
func (r *replayed) Holds(topology.Mesh, scenario.Settings, int) []convergence.Key { return nil }

// Machines returns the endpoints of WorkloadEntries that services select.
func (c captured) Machines(mesh *capture.Mesh) map[string]convergence.Endpoints {
	return newReplayed(configuration(c), mesh).Machines()
}

// Templates returns the names of the templates of the injector's configuration, and their aliases.
func (c captured) Templates(ctx context.Context) ([]string, error) {
	name := c.named("istio-sidecar-injector")
	object, err := c.client.CoreV1().ConfigMaps(c.systemNamespace()).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the templates of injection: %w", err)
	}
	var config struct {
		Templates map[string]string   `json:"templates"`
		Aliases   map[string][]string `json:"aliases"`
	}
	if err := yaml.Unmarshal([]byte(object.Data["config"]), &config); err != nil {
		return nil, fmt.Errorf("reading the templates of injection, ConfigMap %s: %w", name, err)
	}
	return append(slices.Collect(maps.Keys(config.Templates)), slices.Collect(maps.Keys(config.Aliases))...), nil
}

// Assigned returns the hosts of ServiceEntries that istiod chose an address for, in the order in which it met them.
func (c captured) Assigned(ctx context.Context) (all []record.AddressedObject, err error) {
	entries, err := c.dynamic.Resource(serviceEntries).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing ServiceEntries: %w", err)
	}
	for _, entry := range entries.Items {
		addresses, _, err := unstructured.NestedSlice(entry.Object, "status", "addresses")
		if err != nil {
			return nil, fmt.Errorf("reading the addresses of ServiceEntry %s/%s: %w", entry.GetNamespace(), entry.GetName(), err)
		}
		of := map[string][]string{} // by host
		for _, address := range addresses {
			if a, ok := address.(map[string]any); ok {
				host, _, _ := unstructured.NestedString(a, "host")
				value, _, _ := unstructured.NestedString(a, "value")
				of[host] = append(of[host], value)
			}
		}
		for _, host := range slices.Sorted(maps.Keys(of)) {
			all = append(all, record.AddressedObject{Kind: "ServiceEntry", Namespace: entry.GetNamespace(), Name: host, Addresses: of[host]})
		}
	}
	return all, nil
}

// Prepare installs the kinds of the Gateway API where the mesh has objects of it.
func (c captured) Prepare(ctx context.Context, mesh *capture.Mesh) error {
	definitions := gatewayDefinitions(mesh)
	mapper := c.mapper()
	for _, d := range definitions {
		if err := c.create(ctx, mapper, d); err != nil {
			return fmt.Errorf("creating %s: %w", d.GetName(), err)
		}
	}
	return controlplane.AwaitDefinitions(ctx, c.client.Discovery(), definitions)
}
