package report

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

// bothPlanes are repeated runs of three sizes with sidecars and, at a third of the processor
// time, with a ztunnel for each of so many pods.
func bothPlanes(podsPerNode ...int) []record.Run {
	var runs []record.Run
	for _, r := range climbed(200, 400, 800, 200, 400, 800) {
		if r.ModeName() != "strict" {
			continue
		}
		r.Environment.ControlPlane.ProxyVersion = "1.31"
		r.Latencies.Certificate = &record.Latency{Unit: "s", Count: int64(r.PodCount())}
		r.Latencies.Propagation = map[record.ChangeKind]record.Propagation{
			record.PolicyChange: {First: &record.Latency{Unit: "s", Count: 100, P50: new(0.11)}, Last: &record.Latency{Unit: "s", Count: 100, P50: new(0.15)}},
		}
		runs = append(runs, r)
		for _, n := range podsPerNode {
			z := r
			z.Name = strings.Replace(r.Name, "istiod-", "istiod-ambient-", 1)
			z.Scenario.Mesh.Dataplane, z.Scenario.Mesh.PodsPerNode, z.Environment.Knobs.Scope = scenario.List[string]{"ambient"}, n, ""
			nodes := (z.PodCount() + n - 1) / n
			z.Proxies = &record.Proxies{Name: "ztunnel", Nodes: nodes, Ready: &nodes}
			c := &z.Environment.ControlPlane
			c.ProxyVersion, c.Settings = "", map[string]string{"AMBIENT": "true"}
			z.Latencies.Certificate = &record.Latency{Unit: "s", Count: int64(3 * nodes)}
			rollout := *r.ControlPlane.Rollout
			rollout.CPUSeconds = new(*rollout.CPUSeconds/4 + 0.1*float64(nodes))
			z.ControlPlane = &record.ByPhase[*record.Usage]{Rollout: &rollout, Steady: r.ControlPlane.Steady}
			runs = append(runs, z)
		}
	}
	return runs
}

func TestDataPlanesGolden(t *testing.T) {
	golden.Compare(t, filepath.Join("testdata", "dataplanes.txt"), text(t, as("wide"), bothPlanes(20)))
	golden.Compare(t, filepath.Join("testdata", "dataplanes-nodes.txt"), text(t, as("wide"), bothPlanes(20, 80)))
}

// A sentence about runs of several data planes is about proxies.
func TestAnswerOfDataPlanes(t *testing.T) {
	var d warnings
	var said []string
	for _, paragraph := range answers(sorted(bothPlanes(20)), &d) {
		for _, m := range paragraph {
			said = append(said, m.text)
		}
	}
	if text := strings.Join(said, " "); !strings.Contains(text, "Proxies waited ") || strings.Contains(text, "roxys") {
		t.Errorf("the answer is %q", text)
	}
}

func TestDataPlaneSentences(t *testing.T) {
	said := func(runs []record.Run) string {
		var d warnings
		var all []string
		for _, m := range planeSentences(sorted(runs), &d) {
			all = append(all, m.text)
		}
		return strings.Join(all, "\n")
	}
	runs := bothPlanes(20)
	if got := said(runs); !strings.Contains(got, "with 800 pods and 40 nodes (strict)") || !strings.Contains(got, "Limits:") || !strings.Contains(got, "one more pod costs") {
		t.Errorf("said %q", got)
	}
	few := runs[:6] // a run of each size
	if got := said(few); !strings.Contains(got, "no statement") || !strings.Contains(got, "--repeats 3") {
		t.Errorf("of single runs: said %q", got)
	}
	for i := range runs {
		if runs[i].Dataplane() != record.SidecarDataplane {
			continue
		}
		usage := *runs[i].ControlPlane.Rollout
		usage.Saturation = new(0.9)
		by := *runs[i].ControlPlane
		by.Rollout = &usage
		runs[i].ControlPlane = &by
	}
	if got := said(runs); !strings.Contains(got, "no statement") || !strings.Contains(got, "fewer processors") {
		t.Errorf("of a saturated control plane: said %q", got)
	}
	if got := said(climbed(200, 400)); got != "" {
		t.Errorf("of sidecars alone: said %q", got)
	}
}

// Runs with waypoints are of a data plane of their own.
func TestWaypoints(t *testing.T) {
	run := record.Run{
		Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{8}, Dataplane: scenario.List[string]{"ambient"}, Waypoints: "namespace", PodsPerNode: 4, Mode: scenario.List[string]{"strict"}}},
		Proxies:  &record.Proxies{Name: "ztunnel", Nodes: 2, Waypoints: &record.Waypoints{Ready: new(3), ConfigurationBytes: &record.ConfigurationBytes{Mean: new(2000.0), Max: new(3000.0)}}},
	}
	for got, want := range map[string]string{
		run.Mode():          "ambient with namespace waypoints strict",
		dataplaneText(&run): "ambient with namespace waypoints, a node for 4 pods; what is said of sidecars is of the nodes' ztunnels, and of 3 waypoints",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if n := proxies(&run); n == nil || *n != 5 {
		t.Errorf("%v proxies, want 5", n)
	}
	if rows := (&runReport{run: &run}).waypoints().Rows; len(rows) != 1 {
		t.Errorf("%d rows, want one", len(rows))
	}
	if rows := (&runReport{run: &record.Run{}}).waypoints().Rows; len(rows) != 0 {
		t.Errorf("%d rows without waypoints", len(rows))
	}
}

// In a mixed mesh there are sidecars and proxies of nodes, and what is said of sidecars is of sidecars.
func TestMixed(t *testing.T) {
	run := record.Run{
		Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{8}, Namespaces: 2, Dataplane: scenario.List[string]{"mixed"}, PodsPerNode: 4, Mode: scenario.List[string]{"strict"}}},
		XDS:      &record.XDS{ConfigurationBytes: &record.ConfigurationBytes{Mean: new(100.0)}},
		Proxies: &record.Proxies{
			Name: "ztunnel", Nodes: 2, Sidecars: new(5), Namespaces: []string{"mesh-1"}, ConfigurationBytes: &record.ConfigurationBytes{Mean: new(10.0)},
		},
	}
	if text, want := dataplaneText(&run), "mixed, a node for 4 pods; 3 pods in 1 of 2 namespaces have no sidecars, but the nodes' ztunnels"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
	if n := proxies(&run); n == nil || *n != 7 {
		t.Errorf("%v proxies, want 7", n)
	}
	if held := termConfiguration.of(&run); held == nil || *held != 520 {
		t.Errorf("together they hold %v bytes, want 520", held)
	}
	run.Latencies.Certificate = &record.Latency{Count: 5}
	if n := certificatesOfRollout(&run); n != nil {
		t.Errorf("%v certificates, although only those of sidecars are known", *n)
	}
	if noun := proxyNoun(&run); noun != "sidecar" {
		t.Errorf("what is said is of a %s", noun)
	}
}

func TestTextsOfProxies(t *testing.T) {
	sidecars, nodes := record.Run{}, record.Run{Proxies: &record.Proxies{Name: "ztunnel"}}
	const of = "Sidecars: bytes of a sidecar"
	for want, runs := range map[string][]*record.Run{
		of:                             {&sidecars},
		"Ztunnels: bytes of a ztunnel": {&nodes, &nodes},
		"Proxies: bytes of a proxy":    {&sidecars, &nodes},
	} {
		if got := ofProxies(of, runs...); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Charts by type have the types of the run's proxies.
func TestTypesOfCharts(t *testing.T) {
	at := func(sent map[string]int64) []record.Moment { return []record.Moment{{Responses: sent}} }
	for name, c := range map[string]struct {
		moments []record.Moment
		want    []string
	}{
		"nothing known":    {nil, usualTypes},
		"sidecars":         {at(map[string]int64{"CDS": 3, "EDS": 3, "LDS": 3, "RDS": 0, "ECDS": 0}), usualTypes},
		"with extensions":  {at(map[string]int64{"CDS": 3, "EDS": 3, "LDS": 3, "RDS": 3, "ECDS": 1}), []string{"CDS", "EDS", "LDS", "RDS", "ECDS"}},
		"ztunnels":         {at(map[string]int64{"Address": 3, "Authorization": 1}), []string{"Address", "Authorization"}},
		"without policies": {at(map[string]int64{"Address": 3, "Authorization": 0}), []string{"Address"}},
	} {
		if got := typesSent(c.moments); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	bars := typeBars("x", "x", "", tally, chart.Number, "responses", map[string]float64{"Authorization": 1, "Address": 3, "EDS": 2})
	if want := []string{"EDS", "Address", "Authorization"}; !slices.Equal(bars.Groups, want) {
		t.Errorf("bars of %v, want %v", bars.Groups, want)
	}
}
