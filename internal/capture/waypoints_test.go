package capture

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A replay with waypoints has their Gateways, whose pods its control plane makes, and a capture of it has the Gateways as they were.
func TestWaypoints(t *testing.T) {
	m := meshOf(t, "ambient/cluster.yaml")
	for i := range m.Workloads {
		if m.Workloads[i].Spec.Proxy == Waypoint {
			m.Workloads[i].Spec.Replicas = 2
		}
	}
	refers := len(m.Dangling())
	by, without := m.ByNode(true)
	if len(without) > 0 || len(by.Waypoints) != 1 || by.Waypoints[0].Replicas != 2 || by.Waypoints[0].Service == nil {
		t.Fatalf("waypoints %v, without %v", by.Waypoints, without)
	}
	if pods := by.Pods(); pods[Waypoint] != 0 || pods[Ambient] != 3 || m.Pods()[Waypoint] != 2 {
		t.Errorf("pods %v", pods)
	}
	if len(by.Objects) != len(m.Objects) || len(by.Services) != len(m.Services) || len(by.Dangling()) != refers {
		t.Errorf("%d objects, %d services, and refer to nothing: %v", len(by.Objects), len(by.Services), by.Dangling())
	}
	for _, o := range by.Surroundings(nil) {
		if o.GetKind() == "Service" && o.GetName() == "waypoint" {
			t.Error("its Service is made with the mesh")
		}
	}
	kinds := map[string]*unstructured.Unstructured{}
	for _, o := range by.Waypoints[0].Made(map[string]string{"scaler.mesh/run": "r"}) {
		kinds[o.GetKind()] = o
	}
	if len(kinds) != 3 || kinds["Service"] == nil || kinds["ConfigMap"].GetName() != "scaler-waypoint-waypoint" {
		t.Fatalf("made: %v", kinds)
	}
	made := kinds["Gateway"]
	labels, _, _ := unstructured.NestedStringMap(made.Object, "spec", "infrastructure", "labels")
	parameters, _, _ := unstructured.NestedString(made.Object, "spec", "infrastructure", "parametersRef", "name")
	if labels["scaler.mesh/run"] != "r" || parameters != "scaler-waypoint-waypoint" {
		t.Errorf("made: %v", made)
	}
	withoutMade(made)
	if diff := cmp.Diff(by.Waypoints[0].Gateway.Object, made.Object); diff != "" {
		t.Errorf("captured again (-want +got):\n%s", diff)
	}

	own := map[string]any{"labels": map[string]any{"a": "b"}, "parametersRef": map[string]any{"group": "", "kind": "ConfigMap", "name": "own"}}
	if err := unstructured.SetNestedMap(by.Waypoints[0].Gateway.Object, own, "spec", "infrastructure"); err != nil {
		t.Fatal(err)
	}
	if _, without := m.ByNode(true); len(without) != 1 || without[0].What != "spec.infrastructure.parametersRef" {
		t.Errorf("parameters of its own are not reproduced: %v", without)
	}
	withoutMade(by.Waypoints[0].Gateway)
	if got := by.Waypoints[0].Gateway.Object["spec"].(map[string]any)["infrastructure"]; !cmp.Equal(got, any(own)) {
		t.Errorf("what others have set is %v", got)
	}
	if without, _ := m.ByNode(false); without.Waypoints != nil || without.Pods()[Waypoint] != 2 {
		t.Error("there are waypoints in a replay without")
	}
}

// Labels name the waypoint of an anonymized mesh, and that of each copy.
func TestWaypointsByOtherNames(t *testing.T) {
	read := func() Mesh {
		m := meshOf(t, "ambient/cluster.yaml")
		for i := range m.Services {
			if m.Services[i].Name == "cart" {
				m.Services[i].Labels = map[string]string{UseWaypoint: "waypoint", UseWaypointNamespace: m.Services[i].Namespace}
			}
		}
		return m
	}
	anonymized := read()
	if err := anonymized.Anonymize(); err != nil {
		t.Fatal(err)
	}
	original := read()
	copies, err := original.Times(2)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mesh Mesh
		want int
	}{"anonymized": {anonymized, 1}, "copies": {copies, 2}} {
		by, _ := c.mesh.ByNode(true)
		named := map[string]bool{}
		for _, w := range by.Waypoints {
			named[w.Gateway.GetNamespace()+"/"+w.Gateway.GetName()] = true
		}
		if len(by.Waypoints) != c.want || name == "anonymized" && named["shop/waypoint"] {
			t.Errorf("%s: waypoints %v", name, named)
		}
		uses := 0
		for _, s := range by.Services {
			if of := s.Labels[UseWaypoint]; of != "" {
				uses++
				if at := s.Labels[UseWaypointNamespace] + "/" + of; !named[at] || s.Labels[UseWaypointNamespace] != s.Namespace {
					t.Errorf("%s: service %s/%s uses %s, of %v", name, s.Namespace, s.Name, at, named)
				}
			}
		}
		for _, n := range by.Namespaces {
			if of := n.Labels[UseWaypoint]; of != "" && !named[n.Name+"/"+of] {
				t.Errorf("%s: namespace %s uses %s, of %v", name, n.Name, of, named)
			}
		}
		if uses != c.want {
			t.Errorf("%s: %d services name a waypoint", name, uses)
		}
	}
}
