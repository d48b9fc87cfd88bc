package capacity

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// captured makes runs of a captured mesh at these scales: 4 pods and 3 services that a cluster has once, and 20 and 5 in each copy.
func captured(repeats int, scales ...int) []record.Run {
	w := strict()
	var all []record.Run
	for _, scale := range scales {
		for range repeats {
			r := w.run(4+20*scale, nil)
			r.Pods = &record.Pods{Requested: 4 + 20*scale}
			r.Mesh = &record.Mesh{Digest: "0123456789ab", Services: 3 + 5*scale, Namespaces: 1 + scale}
			r.Scenario.Mesh = scenario.Mesh{File: "mesh.yaml", Scale: scenario.List[int]{scale}}
			r.Environment.Knobs = scenario.Settings{MTLS: "captured", Scope: "captured", Authz: "captured"}
			all = append(all, r)
		}
	}
	return all
}

// The scales of a captured mesh are sizes: a plan is of so many copies, and states of what.
func TestCaptured(t *testing.T) {
	for name, o := range map[string]Options{"scale": {Scale: 20}, "pods": {Pods: 404}, "services": {Pods: 404, Services: 103}} {
		p, err := Make(captured(2, 1, 2, 4), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m := p.Target.Mesh; m == nil || *m != (Captured{File: "mesh.yaml", Digest: "0123456789ab", Scale: 20}) || p.Target.Pods != 404 || p.Target.Services != 103 || p.Target.Mode != "captured" {
			t.Errorf("%s: it is of %+v", name, p.Target)
		}
		if cpu := strict().cpu(404); p.Figures[3].Name != rolloutCPU || p.Figures[3].Forecast < cpu*0.8 || p.Figures[3].Forecast > cpu*1.2 {
			t.Errorf("%s: %+v, want %.3g", name, p.Figures[3], cpu)
		}
		text := output.Wide(func(d *output.Document) { p.write(d, "") })
		for _, want := range []string{
			"mesh.yaml (0123456789ab) at scale 20: 404 pods, 103 services, on istiod 1.31.0\n",
			"from runs of 24 (scale 1, 2 runs), 44 (scale 2, 2 runs), 84 (scale 4, 2 runs) pods",
			"target.mesh: the mesh grows by copies of its namespaces",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		for _, w := range p.Warnings {
			if strings.Contains(w.Text, "treated as equal") || w.About == "target.services" {
				t.Errorf("%s: warned of %+v", name, w)
			}
		}
	}
	p, err := Make(captured(2, 1, 2, 3, 4), Options{Validate: true})
	if err != nil || p.Target.Mesh.Scale != 4 || p.Figures[0].Measured == nil {
		t.Errorf("validated: %v, %+v", err, p)
	}
}

// mixed makes runs of a captured mesh that has 2 nodes and a waypoint in each copy, and 10 of whose pods have sidecars.
func mixed(scales ...int) []record.Run {
	all := captured(2, scales...)
	for i := range all {
		r := &all[i]
		scale := r.Scenario.Mesh.Scale.First()
		r.Scenario.Mesh.Dataplane, r.Scenario.Mesh.Waypoints = scenario.List[string]{"mixed"}, "captured"
		held := func(mean float64) *record.ConfigurationBytes { return &record.ConfigurationBytes{Mean: &mean} }
		r.Proxies = &record.Proxies{
			Name: "ztunnel", Nodes: 2 * scale, Sidecars: new(10 * scale), ConfigurationBytes: held(100),
			Waypoints: &record.Waypoints{Ready: &scale, ConfigurationBytes: held(1000)},
		}
		r.XDS.ConfigurationBytes = held(10)
	}
	return all
}

// Of a captured mesh with ztunnels everything grows with its copies, so that pods stand for all proxies.
func TestCapturedProxies(t *testing.T) {
	runs := mixed(1, 2, 4)
	if got := configurationOf(&runs[0]) * 24; got != 10*10+2*100+1000 {
		t.Errorf("all proxies hold %g bytes", got)
	}
	p, err := Make(runs, Options{Scale: 20})
	if err != nil {
		t.Fatal(err)
	}
	if to := p.Target; to.Pods != 404 || to.Nodes != 40 || to.Proxies != 40+200+20 || to.PodsPerNode != 0 || to.Dataplane != "mixed with captured waypoints" {
		t.Errorf("it is of %+v", to)
	}
	for _, l := range p.Limits {
		switch l.Name {
		case Limiter: // ztunnels and waypoints are connected before
			if want := 199.0 / 20; l.Seconds < want*0.99 || l.Seconds > want*1.01 {
				t.Errorf("streams of 200 sidecars take %+v, want %.3g s", l, want)
			}
		case TokenReview:
			if !strings.HasSuffix(l.Rule, "for each sidecar, and 1 for each of at most 204 certificates, one for each identity on each node") {
				t.Errorf("got %+v", l)
			}
		}
	}
	if cpu := strict().cpu(404); p.Figures[3].Forecast < cpu*0.8 || p.Figures[3].Forecast > cpu*1.2 {
		t.Errorf("%+v, want %.3g", p.Figures[3], cpu)
	}
	if text := output.Wide(func(d *output.Document) { p.write(d, "") }); !strings.Contains(text, "After a restart 260 proxies, 40 ztunnels among them, connect again within") {
		t.Errorf("got\n%s", text)
	}
	if p, err := Make(mixed(1, 2, 3, 4), Options{Validate: true}); err != nil || p.Target.Nodes != 8 || p.Figures[0].Measured == nil {
		t.Errorf("validated: %v, %+v", err, p)
	}
	unknown := mixed(1)
	unknown[0].Proxies.ConfigurationBytes = nil
	if got := configurationOf(&unknown[0]); got != 0 {
		t.Errorf("got %g where what ztunnels hold is not known", got)
	}
	other := mixed(1, 2, 4)
	other[2].Proxies.Nodes++
	for want, c := range map[string]struct {
		runs []record.Run
		o    Options
	}{
		"podsPerNode: got 20, want none for runs of a captured mesh":                           {mixed(1, 2, 4), Options{Scale: 20, PodsPerNode: 20}},
		"of a captured mesh of data plane mixed with captured waypoints: want runs whose pods": {other, Options{Pods: 404}},
		"one size only: run 'scaler rollout --repeats 2 --seed 0 --dataplane mixed --waypoints captured --mesh mesh.yaml --scale 1,2,3,4,5,6,7 --arrival all --probes 0 --settle 0s --dilate 1 --priority=false'": {mixed(2), Options{Scale: 4}},
	} {
		if _, err := Make(c.runs, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// What is no number of copies is refused with those next to it, and the runs that are missing are of the mesh.
func TestCapturedRefused(t *testing.T) {
	other := captured(2, 1, 2, 4)
	other[5].Mesh.Digest = "ba9876543210"
	stock := captured(1, 2)
	stock[0].Scenario.ControlPlane.Configuration = scenario.StockConfiguration
	for _, tc := range []struct {
		runs []record.Run
		o    Options
		want string
	}{
		{captured(2, 1, 2, 4), Options{Pods: 410}, "pods: got 410, want 404 or 424, which are scale 20 and 21 of mesh.yaml"},
		{captured(2, 1, 2, 4), Options{Scale: 20, Services: 100}, "services: got 100, want 103, which mesh.yaml has at scale 20"},
		{captured(2, 1, 2, 4), Options{Scale: 60}, "more than 8 times the largest run, of 84 pods: run 'scaler rollout --repeats 2 --seed 0 --mesh mesh.yaml --scale 8,12,15,19,23,27,30 --"},
		{stock, Options{Scale: 4}, "one size only: run 'scaler rollout --repeats 2 --seed 0 --mesh mesh.yaml --scale 1,2,3,4,5,6,7 --set controlPlane.configuration=stock --arrival all --probes 0 --settle 0s --dilate 1 --priority=false'"},
		{other, Options{Pods: 404}, "they differ in topology (captured, 0123456789ab; captured, ba9876543210)"},
		{other, Options{Scale: 20, Force: true}, "scale: got 20, want runs that are all of one captured mesh, or the number of pods"},
		{strict().runs(nil, 2, 100, 200, 400), Options{Scale: 20}, "scale: got 20, want runs that are all of one captured mesh, or the number of pods"},
	} {
		if _, err := Make(tc.runs, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.o, err, tc.want)
		}
	}
}
