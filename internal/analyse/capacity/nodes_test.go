package capacity

import (
	"math"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// ofNodesRun returns a run without noise of a mesh whose nodes have proxies: 124 MB, 50 kB for each pod and 400 kB
// for each node, of which half is there before the mesh; 7 ms for each pod and 20 ns for each byte
// that the proxies hold together.
func ofNodesRun(pods, perNode int) record.Run {
	w := strict()
	nodes := float64((pods + perNode - 1) / perNode)
	n := float64(pods)
	w.configuration = func(n float64) float64 { return 2e3 + 360*n + 220*nodes }
	w.memory = func(n float64) float64 { return 2e6 + 50e3*n + 400e3*nodes }
	w.heap = func(n float64) float64 { return 1e6 + 20e3*n + 100e3*nodes }
	w.cpu = func(n float64) float64 { return 0.007*n + 20e-9*nodes*w.configuration(n) }
	r := w.run(pods, nil)
	r.Phases[0].Seconds = new(n / 40)
	r.Arrival.AchievedPerSecond = new(40.0)
	r.ControlPlane.Baseline.MemoryBytes.Mean = new(emptyResident + 200e3*nodes)
	r.ControlPlane.Baseline.HeapBytes.Mean = new(emptyHeap + 50e3*nodes)
	r.Scenario.Mesh.Dataplane, r.Scenario.Mesh.PodsPerNode = scenario.List[string]{"ambient"}, perNode
	r.Proxies = &record.Proxies{Name: "ztunnel", Nodes: int(nodes)}
	return r
}

func ofNodesRuns(perNode int, sizes ...int) []record.Run {
	var all []record.Run
	for _, pods := range sizes {
		all = append(all, ofNodesRun(pods, perNode), ofNodesRun(pods, perNode))
	}
	return all
}

// Where nodes have proxies, forecasts are of pods and nodes, and streams and certificates are of
// nodes.
func TestProxiesOfNodes(t *testing.T) {
	together := ofNodesRuns(20, 200, 400, 800)
	several := slices.Concat(together, ofNodesRuns(5, 200, 400, 800), ofNodesRuns(80, 400, 800))
	for name, c := range map[string]struct {
		runs    []record.Run
		perNode int // wanted
		plan    int // 0 = as in the runs
		about   string
	}{
		"pods and nodes together": {together, 20, 0, "holds for 20 pods for each node only"},
		"pods and nodes separate": {several, 40, 40, ""},
		"the usual number":        {several, 20, 0, ""},
		"beyond":                  {several, 100, 100, "runs have 5 to 80 pods for each node: 100 is beyond them"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Make(append(slices.Clone(c.runs), strict().runs(nil, 2, 200, 400, 800)...), Options{Pods: 1600, PodsPerNode: c.plan, Dataplane: "ambient"})
			if err != nil {
				t.Fatal(err)
			}
			want := ofNodesRun(1600, c.perNode)
			for name, value := range map[string]float64{
				liveHeap:      *want.ControlPlane.Steady.HeapBytes.Collected,
				steadyMemory:  *want.ControlPlane.Steady.MemoryBytes.Peak,
				rolloutMemory: *want.ControlPlane.Rollout.MemoryBytes.Peak,
				rolloutCPU:    *want.ControlPlane.Rollout.CPUSeconds,
				rolloutTime:   40,
			} {
				if f := p.figure(t, name); math.Abs(f.Forecast/value-1) > 1e-6 {
					t.Errorf("%s: %g, want %g; %+v", name, f.Forecast, value, f.Model)
				}
			}
			if nodes := 1600 / c.perNode; p.Target.Nodes != nodes || p.Target.PodsPerNode != c.perNode || p.Target.Proxy != "ztunnel" {
				t.Errorf("target %+v, want %d nodes", p.Target, nodes)
			}
			if got := math.Abs(p.Target.ConfigurationBytes / *want.XDS.ConfigurationBytes.Mean - 1); got > 1e-6 {
				t.Errorf("configuration %g, want %g", p.Target.ConfigurationBytes, *want.XDS.ConfigurationBytes.Mean)
			}
			if text := p.warningAbout("target.podsPerNode", ""); !strings.Contains(text, c.about) || (text == "") != (c.about == "") {
				t.Errorf("warning %q, want %q", text, c.about)
			}
			if text := p.warningAbout("target.nodes", "no run had more than"); text != "" {
				t.Errorf("%d nodes of at most 160: %s", p.Target.Nodes, text)
			}
			for _, l := range p.Limits {
				switch l.Name {
				case Limiter:
					t.Errorf("limit %+v: streams are not opened in the rollout", l)
				case TokenReview:
					if want := (1600.0 - 160) / 80; l.Seconds != want {
						t.Errorf("limit %+v, want %g s", l, want)
					}
				}
			}
		})
	}
	p, err := Make(several, Options{Pods: 1600, PodsPerNode: 5})
	if err != nil {
		t.Fatal(err)
	}
	if p.warningAbout("target.nodes", "no run had more than 160 nodes") == "" {
		t.Errorf("320 nodes, of at most 160 in runs: %+v", p.Warnings)
	}
	few := mesh{pods: 1600, processors: 2, replicas: 1, limits: limits, certificates: mostCertificates(1600, 10, 20)}
	for _, l := range few.times() {
		if l.Name == TokenReview && l.Seconds != (200.0-160)/80 {
			t.Errorf("%+v: want that of 200 certificates, of 10 identities on 20 nodes", l)
		}
	}
}

// The largest size is compared with runs of as many nodes alone.
func TestProxiesOfNodesValidated(t *testing.T) {
	runs := slices.Concat(ofNodesRuns(20, 200, 400, 800, 1600), ofNodesRuns(5, 200, 400, 800), []record.Run{ofNodesRun(1600, 5)})
	p, err := Make(runs, Options{Validate: true})
	if err != nil {
		t.Fatal(err)
	}
	if f := p.figure(t, steadyMemory); p.Target.Nodes != 80 || f.Error == nil || math.Abs(*f.Error) > 1e-6 {
		t.Errorf("%d nodes: %+v", p.Target.Nodes, f)
	}
	var text strings.Builder
	if err := Print(&text, "wide", p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1600 pods on 80 nodes with 80 ztunnels (ambient, 20 pods per node)", "200 (4 runs, 2 with 10 nodes, 2 with 40 nodes)",
		"After a restart 80 ztunnels connect again within", "x nodes", "x MiB held by all nodes' proxies", "each pod is served within",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("want %q in\n%s", want, text.String())
		}
	}
	if p.Reconnect == nil || p.Reconnect.Seconds != 79/20.0 { // one processor admits 20 streams a second
		t.Errorf("80 ztunnels connect again within %+v", p.Reconnect)
	}
}
