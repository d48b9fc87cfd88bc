package istio

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// Every part of a profile becomes as many objects as it says, all of different names, and a
// sidecar holds exactly what it is expected to hold.
func TestProfile(t *testing.T) {
	c := configuration{&ControlPlane{}}
	c.report.Version = "1.31.0"
	spec := topology.Spec{Pods: 60, Services: 6, Own: scenario.Parts{
		VirtualServices: new(8), DestinationRules: new(2), ServiceEntries: new(3), EnvoyFilters: new(7), Telemetries: new(2),
		TCPServices: new(1), HeadlessServices: new(1), ExternalNames: new(2), Gateways: new(1),
	}}
	mesh := topology.Build(spec)
	for mode, knobs := range controlplane.Modes {
		kinds, names := map[string]int{}, map[string]bool{}
		for _, o := range c.Objects(mesh, knobs) {
			kinds[o.GetKind()]++
			if name := o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName(); names[name] {
				t.Errorf("%s: two objects %s", mode, name)
			} else {
				names[name] = true
			}
		}
		for kind, want := range map[string]int{"VirtualService": 8 + 10, "Gateway": 1, "DestinationRule": 2, "ServiceEntry": 3, "EnvoyFilter": 7, "Telemetry": 2, "Service": 2} {
			if kinds[kind] != want {
				t.Errorf("%s: %d %s, want %d", mode, kinds[kind], kind, want)
			}
		}
	}
	for _, test := range []struct {
		mode                 string
		service              int
		cds, eds, lds, route int
	}{
		{"permissive", 0, 19, 11, 5, 1}, {"permissive", 5, 20, 11, 5, 1}, {"permissive", 6, 16, 12, 1, 1}, // 6 is the gateway
		{"strict", 0, 6, 2, 3, 1}, {"strict", 2, 5, 0, 3, 1}, {"strict", 4, 6, 2, 4, 1}, {"strict", 5, 5, 0, 2, 0}, {"strict", 6, 16, 12, 1, 1},
	} {
		held := map[convergence.Type]int{}
		for _, k := range c.Holds(mesh, controlplane.Modes[test.mode], test.service) {
			held[k.Type]++
		}
		if held[convergence.CDS] != test.cds || held[convergence.EDS] != test.eds || held[convergence.LDS] != test.lds || held[convergence.RDS] != test.route {
			t.Errorf("%s: service %d holds %v, want %+v", test.mode, test.service, held, test)
		}
	}
	wants := c.Wants(mesh, controlplane.Modes["permissive"], 0)
	count := map[convergence.Type]int{}
	var members []string
	compared := 0
	for _, w := range wants {
		count[w.Type]++
		if w.Type == convergence.RDS {
			members = w.Members
		}
		if w.Service != "" {
			compared++
		}
	}
	// 6 services and a gateway with one port, one of them with a second; 2 rules with 2 subsets; 3 hosts; own.
	if count[convergence.CDS] != 8+4+3+1 || count[convergence.EDS] != 7+4 || count[convergence.LDS] != 3+1+1 {
		t.Errorf("%v", count)
	}
	if compared != 7+2 || len(members) != 7+2+2 || !slices.Contains(members, "route-7.profile.example") {
		t.Errorf("%d with endpoints, hosts %v", compared, members)
	}
}

// A probe of a route changes the service's own object where it has one: of two for one host
// only the older counts.
func TestProbeOfOwnRoute(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 20, Own: scenario.Parts{VirtualServices: new(1)}})
	for service, own := range []bool{true, false} {
		probe, _ := (configuration{&ControlPlane{}}).Probe(controlplane.RouteProbe, mesh, controlplane.Modes["permissive"], service, "marker")
		if (probe.GetLabels()[kwok.ProfileLabel] != "") != own {
			t.Errorf("service %d: %v", service, probe)
		}
	}
}
