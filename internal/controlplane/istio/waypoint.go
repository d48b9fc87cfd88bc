package istio

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// classDefaults is the label of a ConfigMap in istiod's namespace which changes what istiod
// makes for each Gateway of a class.
const classDefaults = "gateway.istio.io/defaults-for-class"

// workloadType is the type of the workloads by which a waypoint knows its peers.
var workloadType = convergence.TypeOf("Workload")

// waypointTypes returns the types that a waypoint subscribes to, in this order: Envoy's types and, by the
// bootstrap extension metadata_discovery, which Istio's agent gives every waypoint, all
// workloads.
func waypointTypes() []xdsprobe.ResourceType {
	return append(xdsprobe.EnvoyTypes(), xdsprobe.ResourceType{Name: workloadType, URL: "type.googleapis.com/istio.workload.Workload"})
}

// waypointDataplane is ambientDataplane with waypoints.
func waypointDataplane() controlplane.Dataplane {
	d := ambientDataplane()
	d.Proxy.Types = func() (*xdsprobe.Types, error) { return xdsprobe.NewTypes(append(ztunnel.Types(), waypointTypes()...)) }
	var names []convergence.Type
	for _, t := range waypointTypes() {
		names = append(names, t.Name)
	}
	d.Proxy.New = func(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
		if spec.Node != "" {
			return authority.NewZtunnel(spec, s)
		}
		return authority.NewProxyOf(spec, s, names)
	}
	responses := metrics().Counters.Responses
	maps.Copy(responses, d.Metrics.Counters.Responses)
	d.Metrics.Counters.Responses = responses
	d.Metrics.Counters.AlsoCounts = map[convergence.Type][]convergence.Type{ztunnel.Address: {workloadType}}
	return d
}

// withWaypoints reports whether namespaces or services of a synthetic mesh have waypoints. For a captured one, captured.Prepare installs the
// kinds that its objects have.
func (c *ControlPlane) withWaypoints() bool {
	return c.opts.Waypoints == controlplane.NamespaceWaypoints || c.opts.Waypoints == controlplane.ServiceWaypoints
}

// waypoints are the waypoints of a mesh in ambient mode. What they hold follows
// buildWaypointInboundClusters and buildWaypointInbound of istiod's pilot/pkg/networking/core.
type waypoints struct{ *ControlPlane }

// waypointPorts returns the ports of a waypoint's Service (extractServicePorts of istiod's
// pilot/pkg/config/kube/gatewaycommon).
func waypointPorts() []topology.Port {
	return []topology.Port{{Name: "status-port", Number: 15021, Target: 15021, TCP: true}, {Name: "mesh", Number: 15008, Target: 15008, TCP: true}}
}

// List is part of controlplane.Waypoints.
func (c waypoints) List(mesh topology.Mesh) []controlplane.Waypoint {
	var all []controlplane.Waypoint
	waypoint := func(namespace, service string) controlplane.Waypoint {
		name := waypointOf(namespace, service)
		return controlplane.Waypoint{Namespace: namespace, Name: name, Label: name, Pods: 1, Ports: waypointPorts()}
	}
	if c.opts.Waypoints == controlplane.ServiceWaypoints {
		for i, s := range mesh.Services {
			w := waypoint(s.Namespace, s.Name)
			w.Services = []int{i}
			all = append(all, w)
		}
		return all
	}
	for _, namespace := range mesh.Namespaces {
		w := waypoint(namespace, "")
		for i, s := range mesh.Services {
			if s.Namespace == namespace {
				w.Services = append(w.Services, i)
			}
		}
		all = append(all, w)
	}
	return all
}

// waypointOf returns the name of the waypoint of a service or, where that is "", a namespace.
func waypointOf(namespace, service string) string {
	if service == "" {
		return "waypoint-" + namespace
	}
	return "waypoint-" + service
}

// Labels is part of controlplane.Waypoints.
func (c waypoints) Labels(namespace, service string) map[string]string {
	if (service != "") != (c.opts.Waypoints == controlplane.ServiceWaypoints) {
		return nil
	}
	return map[string]string{capture.UseWaypoint: waypointOf(namespace, service)}
}

// Objects is part of controlplane.Waypoints: a Gateway for each, as istioctl makes it, and what
// puts its pods onto fake nodes. istiod makes the Deployment of each Gateway, its account and
// its Service.
func (c waypoints) Objects(mesh topology.Mesh, run string) []*unstructured.Unstructured {
	objects := waypointsOnFakeNodes(namespace, run)
	for _, w := range c.List(mesh) {
		gateway := object("gateway.networking.k8s.io/v1", "Gateway", w.Namespace, w.Name, map[string]any{
			"gatewayClassName": capture.WaypointClass,
			"listeners": []any{map[string]any{
				"name": "mesh", "port": int64(15008), "protocol": "HBONE",
				"allowedRoutes": map[string]any{"namespaces": map[string]any{"from": "Same"}},
			}},
			"infrastructure": map[string]any{"labels": map[string]any{kwok.RunLabel: run, kwok.ServiceLabel: w.Name}},
		})
		gateway.SetLabels(map[string]string{waypointFor: "service"})
		c.own(gateway)
		kwok.SetRun(gateway, run)
		objects = append(objects, gateway)
	}
	return objects
}

// own labels a Gateway with this revision. Without revisions it changes nothing.
func (c *ControlPlane) own(gateway *unstructured.Unstructured) {
	if c.opts.Revision == "" {
		return
	}
	labels := gateway.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[revisionLabel] = c.opts.Revision
	gateway.SetLabels(labels)
}

// waypointsOnFakeNodes returns a ConfigMap for the namespace of istiod. It puts the pods of all waypoints onto fake nodes.
func waypointsOnFakeNodes(root, run string) []*unstructured.Unstructured {
	overlay, err := yaml.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"nodeSelector": kwok.NodeSelector(), "tolerations": []any{kwok.Toleration()},
	}}}})
	if err != nil {
		return nil // it is made of strings
	}
	defaults := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "scaler-waypoints", "namespace": root, "labels": map[string]any{classDefaults: capture.WaypointClass}},
		"data":     map[string]any{"deployment": string(overlay)},
	}}
	kwok.SetRun(defaults, run)
	return []*unstructured.Unstructured{defaults}
}

// Wants is part of controlplane.Waypoints.
func (c waypoints) Wants(mesh topology.Mesh, w controlplane.Waypoint) []convergence.Want {
	wants := wantTunnels()
	for _, i := range w.Services {
		s := mesh.Services[i]
		for _, p := range s.Ports {
			protocol := "http"
			if p.TCP {
				protocol = "tcp"
			}
			cluster := inboundVIP(p.Number, protocol, hostname(s))
			endpoints := convergence.WantOf(convergence.EDS, cluster)
			endpoints.Service = controlplane.Listed(s.ServicePort(p))
			wants = append(wants, convergence.WantOf(convergence.CDS, cluster), endpoints)
		}
	}
	return wants
}

// wantTunnels returns the resources that every waypoint holds.
func wantTunnels() (wants []convergence.Want) {
	for _, name := range []string{"connect_terminate", "main_internal", "connect_originate"} {
		wants = append(wants, convergence.WantOf(convergence.LDS, name))
	}
	for _, name := range []string{"main_internal", "encap", "connect_originate"} {
		wants = append(wants, convergence.WantOf(convergence.CDS, name))
	}
	return wants
}

// inboundVIP returns the cluster of a port of a service at its waypoint.
func inboundVIP(port int, protocol, host string) string {
	return fmt.Sprintf("inbound-vip|%d|%s|%s", port, protocol, host)
}

// withoutDoubleTunnel are the lines whose waypoints have nothing for other networks unless
// AMBIENT_ENABLE_MULTI_NETWORK is set (ShouldCreateDoubleHBONEResources of istiod's pilot/pkg/model,
// which does not ask for it since 1.29).
var withoutDoubleTunnel = map[string]bool{"1.27": true, "1.28": true}

// Holds is part of controlplane.Waypoints.
func (c waypoints) Holds(mesh topology.Mesh, w controlplane.Waypoint, pods []string) []convergence.Key {
	if !expected(c.report.Version) {
		return nil
	}
	keys := ambient(c).workloads(workloadType, pods)
	if !withoutDoubleTunnel[component.IstioLine(c.report.Version)] {
		for _, name := range []string{"inner_connect_originate", "outer_connect_originate"} {
			keys = append(keys, convergence.Key{Type: convergence.CDS, Name: name}, convergence.Key{Type: convergence.LDS, Name: name})
		}
	}
	return append(keys, convergence.Keys(c.Wants(mesh, w))...)
}
