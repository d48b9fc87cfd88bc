package osm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// mesh returns a service that calls another one of another namespace, and a third that nobody calls.
func mesh() topology.Mesh {
	port := []topology.Port{{Name: "http", Number: 80, Target: 8080}}
	return topology.Mesh{Namespaces: []string{"m", "n"}, Services: []topology.Service{
		{Name: "a", Namespace: "m", Account: "a", Pods: 1, Ports: port, Calls: []int{1}},
		{Name: "b", Namespace: "n", Account: "b", Pods: 1, Ports: port},
		{Name: "c", Namespace: "m", Account: "c", Pods: 1, Ports: port},
	}}
}

// knobs returns the knobs of a mode.
func knobs(mode string) scenario.Settings {
	of, _ := Driver().Mode(mode)
	return of.Knobs
}

func TestHolds(t *testing.T) {
	own := []string{
		"CDS m/a|8080|local", "CDS passthrough-outbound", "LDS inbound-listener", "LDS outbound-listener",
		"RDS rds-inbound.8080", "SDS root-cert-for-mtls-inbound:m/a", "SDS service-cert:m/a",
	}
	called := func(names ...string) (keys []string) {
		for _, name := range names {
			keys = append(keys, "CDS "+name+"|8080", "EDS "+name+"|8080", "SDS root-cert-for-mtls-outbound:"+name)
		}
		return append(keys, "RDS rds-outbound.80")
	}
	for mode, want := range map[string][]string{
		permissive: slices.Concat(own, called("m/a", "n/b", "m/c")), // itself among them
		"strict":   slices.Concat(own, called("n/b")),
	} {
		var got []string
		for _, key := range new(controlPlane).Holds(mesh(), knobs(mode), 0) {
			got = append(got, key.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: a sidecar holds\n%s\nwant\n%s", mode, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	// Who calls nobody has no routes to others.
	for _, key := range new(controlPlane).Holds(mesh(), knobs("strict"), 1) {
		if key.Type == convergence.EDS || key.Name == "rds-outbound.80" {
			t.Errorf("a sidecar that calls nobody holds %v", key)
		}
	}
}

func TestWants(t *testing.T) {
	for _, w := range new(controlPlane).Wants(mesh(), knobs("strict"), 0) {
		called := w.Type == convergence.EDS || w.Name == "n/b|8080" || w.Name == "rds-outbound.80" || w.Name == "root-cert-for-mtls-outbound:n/b"
		if want := map[bool]string{true: "n/b:http"}[called]; w.Since != want {
			t.Errorf("%v is wanted since %q has an endpoint, want %q", w.Key, w.Since, want)
		}
		switch w.Key.String() {
		case "EDS n/b|8080":
			if w.Service != "n/b:http" {
				t.Errorf("%v has the endpoints of %q", w.Key, w.Service)
			}
		case "RDS rds-outbound.80":
			if !slices.Equal(w.Members, []string{"b.n.svc.cluster.local:80"}) {
				t.Errorf("%v has %v", w.Key, w.Members)
			}
		case "RDS rds-inbound.8080":
			if !slices.Equal(w.Members, []string{"a.m.svc.cluster.local:80"}) {
				t.Errorf("%v has %v", w.Key, w.Members)
			}
		default:
			if w.Service != "" || w.Members != nil {
				t.Errorf("%v is compared by %+v", w.Key, w)
			}
		}
	}
}

// Accounts that are shared are what policies are about, and a service without pods is not found.
func TestReachedByAccount(t *testing.T) {
	m := mesh()
	m.Services[2].Namespace, m.Services[2].Account = "n", "b"
	if got := reached(m, knobs("strict"), 0); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("reached %v", got)
	}
	m.Services[1].Pods = 0
	if got := reached(m, knobs("strict"), 0); !slices.Equal(got, []int{2}) {
		t.Errorf("reached %v without pods of the first", got)
	}
	if got := reached(m, knobs(permissive), 0); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("reached %v without policies and without pods of one", got)
	}
}

func TestObjects(t *testing.T) {
	if objects := new(controlPlane).Objects(mesh(), knobs(permissive)); objects != nil {
		t.Errorf("%d objects, want none in permissive mode", len(objects))
	}
	var got []string
	for _, o := range new(controlPlane).Objects(mesh(), knobs("strict")) {
		spec, err := json.Marshal(o.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()+" "+string(spec))
	}
	want := []string{
		`HTTPRouteGroup m/all {"matches":[{"methods":["*"],"name":"everything","pathRegex":".*"}]}`,
		`HTTPRouteGroup n/all {"matches":[{"methods":["*"],"name":"everything","pathRegex":".*"}]}`,
		`TrafficTarget n/b {"destination":{"kind":"ServiceAccount","name":"b","namespace":"n"},"rules":[{"kind":"HTTPRouteGroup","matches":["everything"],"name":"all"}],"sources":[{"kind":"ServiceAccount","name":"a","namespace":"m"}]}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("objects\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A policy is followed by a marker, which changes no traffic; nothing else is.
func TestProbe(t *testing.T) {
	probe, concerned := new(controlPlane).Probe(controlplane.PolicyProbe, mesh(), knobs(permissive), 1, "the-marker")
	spec, err := json.Marshal(probe.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"host":"b.n.svc.cluster.local","rateLimit":{"local":{"http":{"requests":2147483647,"responseHeadersToAdd":[{"name":"x-scaler-probe","value":"the-marker"}],"unit":"second"}}}}`
	if string(spec) != want || probe.GetNamespace() != "n" || !slices.Equal(concerned, []int{1}) {
		t.Errorf("%s/%s %s concerns %v, want %s of n and 1", probe.GetNamespace(), probe.GetName(), spec, concerned, want)
	}
	for _, kind := range []controlplane.ProbeKind{controlplane.RouteProbe, controlplane.MeshProbe} {
		if probe, _ := new(controlPlane).Probe(kind, mesh(), knobs(permissive), 1, "the-marker"); probe != nil {
			t.Errorf("%s: %v", kind, probe)
		}
	}
}

func TestEndpointHealth(t *testing.T) {
	for _, ready := range []bool{true, false} {
		if health, sent := new(controlPlane).EndpointHealth(ready, true, !ready); sent != ready || health != convergence.Healthy {
			t.Errorf("ready %t: %v, sent %t", ready, health, sent)
		}
	}
}

// The mode is the MeshConfig's.
func TestMeshConfig(t *testing.T) {
	for mode, want := range map[string]bool{permissive: true, "strict": false} {
		c := &controlPlane{}
		c.options.Knobs = knobs(mode)
		preset, err := c.preset()
		if err != nil {
			t.Fatal(err)
		}
		var spec struct {
			Traffic struct {
				Permissive *bool `json:"enablePermissiveTrafficPolicyMode"`
			}
		}
		if err := json.Unmarshal([]byte(preset.Data["preset-mesh-config.json"]), &spec); err != nil {
			t.Fatal(err)
		}
		if got := spec.Traffic.Permissive; got == nil || *got != want {
			t.Errorf("%s: the preset is %s", mode, preset.Data)
		}
	}
}
