package istio

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/scenario"
)

// ofWaypoint returns a Gateway that is a waypoint, its pods and its Service.
func ofWaypoint(namespace, name, labels, allowed string) string {
	return `---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: ` + name + `, namespace: ` + namespace + `, labels: {` + labels + `}}
spec: {gatewayClassName: istio-waypoint, listeners: [{name: mesh, port: 15008, protocol: HBONE, ` + allowed + `}]}
---
apiVersion: scaler.mesh/v2
kind: Workload
metadata: {name: ` + name + `, namespace: ` + namespace + `}
spec: {owner: Deployment, replicas: 2, proxy: waypoint, labels: {gateway.networking.k8s.io/gateway-name: ` + name + `}, containers: [{name: istio-proxy}]}
---
apiVersion: v1
kind: Service
metadata: {name: ` + name + `, namespace: ` + namespace + `, labels: {gateway.istio.io/managed: istio.io-mesh-controller}}
spec: {selector: {gateway.networking.k8s.io/gateway-name: ` + name + `}, ports: [{name: status-port, port: 15021}, {name: mesh, port: 15008}]}
`
}

// A service of a captured mesh has the waypoint that it names, or its namespace, if the waypoint takes it.
func TestReplayedWaypoints(t *testing.T) {
	const ofService, ofNamespace = "metadata: {name: web, namespace: b}", "metadata: {name: b}"
	uses := func(labels string) string { return "metadata: {name: web, namespace: b, labels: {" + labels + "}}" }
	for name, c := range map[string]struct {
		service, namespace string // metadata; "" = without labels
		waypoint           string
		want               int
		certain            bool
	}{
		"none":             {"", "", ofWaypoint("b", "w", "", ""), -1, true},
		"of the service":   {uses("istio.io/use-waypoint: w"), "", ofWaypoint("b", "w", "", ""), 0, true},
		"of the namespace": {"", "metadata: {name: b, labels: {istio.io/use-waypoint: w}}", ofWaypoint("b", "w", "", ""), 0, true},
		"not for it": { // the workload has another service, which the waypoint serves
			uses("istio.io/use-waypoint: none"), "metadata: {name: b, labels: {istio.io/use-waypoint: w}}", ofWaypoint("b", "w", "", ""), -1, true},
		"for workloads":       {uses("istio.io/use-waypoint: w"), "", ofWaypoint("b", "w", "istio.io/waypoint-for: workload", ""), -1, true},
		"for all":             {uses("istio.io/use-waypoint: w"), "", ofWaypoint("b", "w", "istio.io/waypoint-for: all", ""), 0, true},
		"not there":           {uses("istio.io/use-waypoint: x"), "", ofWaypoint("b", "w", "", ""), -1, false},
		"elsewhere":           {uses("istio.io/use-waypoint: w, istio.io/use-waypoint-namespace: a"), "", ofWaypoint("a", "w", "", "allowedRoutes: {namespaces: {from: All}}"), 0, true},
		"elsewhere, its own":  {uses("istio.io/use-waypoint: w, istio.io/use-waypoint-namespace: a"), "", ofWaypoint("a", "w", "", ""), 0, false},
		"elsewhere, selected": {uses("istio.io/use-waypoint: w, istio.io/use-waypoint-namespace: a"), "", ofWaypoint("a", "w", "", "allowedRoutes: {namespaces: {from: Selector}}"), 0, false},
	} {
		text := strings.Replace(meshHead, "replicas: 2, proxy: sidecar, labels: {app: web}", "replicas: 2, proxy: ambient, labels: {app: web}", 1)
		for old, with := range map[string]string{ofService: c.service, ofNamespace: c.namespace} {
			if !strings.Contains(text, old) {
				t.Fatalf("%s is not in the mesh", old)
			}
			if with != "" {
				text = strings.Replace(text, old, with, 1)
			}
		}
		mesh, err := capture.Read("mesh.yaml", strings.NewReader(text+c.waypoint))
		if err != nil {
			t.Fatal(name, err)
		}
		by, _ := mesh.ByNode(true)
		r := newReplayed(configuration{&ControlPlane{}}, &by)
		at := slices.IndexFunc(r.services, func(v visible) bool { return v.Name == "web" })
		if got, certain := r.waypointOf(r.services[at]); got != c.want || certain != c.certain {
			t.Errorf("%s: %d, certain %v; want %d, %v", name, got, certain, c.want, c.certain)
			continue
		}
		served := c.want == 0 && c.certain
		waypoints := replayedWaypoints{r}
		w := waypoints.List(by.Topology())[0]
		if (served || name == "not for it") != (len(w.Services) == 1) || w.Pods != 2 || w.Label != "waypoint.1" {
			t.Errorf("%s: %+v", name, w)
		}
		var keys []string
		for _, want := range waypoints.Wants(by.Topology(), w) {
			keys = append(keys, want.String()+want.Service)
		}
		if served != slices.Contains(keys, "EDS inbound-vip|80|http|web.b.svc.cluster.locallisted: b/web:http") || served != slices.Contains(keys, "LDS main_internal") {
			t.Errorf("%s: %q", name, keys)
		}
		through := false
		for _, want := range (replayedNodes{ambient(r.configuration), r}).Wants(by.Topology(), scenario.Settings{}) {
			through = through || strings.Contains(want.Name, "web.b") && len(want.Members) == 1
		}
		if through != served {
			t.Errorf("%s: ztunnels know the waypoint: %v", name, through)
		}
		if got := len(r.Objects(by.Topology(), scenario.Settings{})); got != len(by.Objects)-1 {
			t.Errorf("%s: %d objects are made with the mesh, of %d", name, got, len(by.Objects))
		}
		if env := meshEnv(&by); env != nil {
			t.Errorf("%s: %s, and istiod is to make the waypoint's pods", name, env)
		}
	}
}
