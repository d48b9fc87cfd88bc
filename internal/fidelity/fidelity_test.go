package fidelity

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

func TestSpecValidate(t *testing.T) {
	if err := DefaultSpec().Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	for want, spoil := range map[string]func(*Spec){
		`changes: got -1, want 0 to 10000`:                              func(s *Spec) { s.Changes = -1 },
		`starts: got 0, want 1 to 100`:                                  func(s *Spec) { s.Starts = 0 },
		`cases: got "strict", want each case once`:                      func(s *Spec) { s.Cases = []string{"strict", "mtls", "strict"} },
		`cases: got "x", want permissive, mtls, scope, authz or strict`: func(s *Spec) { s.Cases = []string{"mtls", "x"} },
		`cases: got "", want permissive, mtls, scope, authz or strict`:  func(s *Spec) { s.Cases = nil },
		`cases: got "scope", want permissive, mtls, authz or strict`:    func(s *Spec) { s.Ztunnel, s.Cases = "/ztunnel", []string{"scope"} },
	} {
		s := DefaultSpec()
		spoil(&s)
		if err := s.Validate(); err == nil || err.Error() != want {
			t.Errorf("Validate is %v, want %s", err, want)
		}
	}
}

// Every case is another setting of the knobs, and every one can be.
func TestKnobCases(t *testing.T) {
	for i, c := range sidecars.cases {
		if err := c.knobs.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if slices.ContainsFunc(sidecars.cases[:i], func(o knobCase) bool { return o.knobs == c.knobs || o.name == c.name }) {
			t.Errorf("%s is there twice", c.name)
		}
	}
}

func TestPlanMeshChanges(t *testing.T) {
	mesh := topology.Build(meshSpec)
	observed := mostConnected(mesh)
	plan := planMeshChanges(mesh, observed, sidecars.changes, 500, 1)
	if len(plan) != 500 || !slices.Equal(plan, planMeshChanges(mesh, observed, sidecars.changes, 500, 1)) || slices.Equal(plan, planMeshChanges(mesh, observed, sidecars.changes, 500, 2)) {
		t.Fatal("the plan is not as many changes as asked for, drawn by the seed")
	}
	kinds, replicas, there := map[meshChangeKind]int{}, map[int]int{}, map[meshChange]bool{}
	for _, c := range plan {
		kinds[c.kind]++
		thing := meshChange{kind: c.kind, service: c.service}
		switch {
		case c.kind == scaleChange:
			if c.service == observed || c.value < 1 || c.value > replicasMost || c.value == replicas[c.service] {
				t.Errorf("%s: want another number of replicas, of another service", c)
			}
			replicas[c.service] = c.value
		case !c.on && !there[thing]:
			t.Errorf("%s, which is not there", c)
		}
		there[thing] = c.on
	}
	for _, kind := range []meshChangeKind{scaleChange, healthChange, routeChange, policyChange, serviceChange} {
		if kinds[kind] < 50 {
			t.Errorf("%d changes of %s among 500", kinds[kind], kind)
		}
	}
}

func TestTrimCommon(t *testing.T) {
	for _, c := range []struct{ a, b, wantA, wantB string }{
		{"", "", "", ""}, {"abc", "abc", "", ""}, {"abc", "axc", "b", "x"}, {"abc", "ac", "b", ""}, {"aab", "ab", "a", ""}, {"a", "b", "a", "b"},
	} {
		a, b := trimCommon(strings.Split(c.a, ""), strings.Split(c.b, ""))
		if strings.Join(a, "") != c.wantA || strings.Join(b, "") != c.wantB {
			t.Errorf("trimCommon(%q, %q) = %q, %q, want %q, %q", c.a, c.b, a, b, c.wantA, c.wantB)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   *record.Spread
	}{
		{nil, nil}, {[]float64{2}, &record.Spread{Min: 2, Median: 2, Max: 2}},
		{[]float64{4, 1, 2, 3}, &record.Spread{Min: 1, Median: 2.5, Max: 4}}, {[]float64{9, 1, 2}, &record.Spread{Min: 1, Median: 2, Max: 9}},
	} {
		if got := spread(c.values); !reflect.DeepEqual(got, c.want) {
			t.Errorf("spread is %+v, want %+v", got, c.want)
		}
	}
}

func TestJudgeTimes(t *testing.T) {
	starts := func(n int, first, own, waiting time.Duration) (all []wiretap.Times) {
		for i := range n {
			noise := time.Duration(i) * time.Millisecond
			all = append(all, wiretap.Times{First: first + noise, Own: own, Complete: own + waiting + noise})
		}
		return all
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name        string
		starts      int
		first, own  time.Duration // of the simulated one; the real one's are 20 ms and 500 ms
		waiting     time.Duration // the same; 50 ms
		judged      bool
		unexplained []string
		explained   []string
	}{
		{"the same", 6, 20 * ms, 500 * ms, 50 * ms, true, nil, nil},
		{"Envoy's own work", 6, 20 * ms, 5 * ms, 50 * ms, true, nil, []string{"start: complete configuration"}},
		{"more work than Envoy", 6, 20 * ms, 900 * ms, 50 * ms, true, []string{"start: complete configuration"}, nil},
		{"a late first answer", 6, 60 * ms, 500 * ms, 50 * ms, true, []string{"start: first configuration"}, nil},
		{"an early first answer", 6, 1 * ms, 500 * ms, 50 * ms, true, []string{"start: first configuration"}, nil},
		{"an answer waited for", 6, 20 * ms, 5 * ms, 90 * ms, true, []string{"start: waiting for istiod"}, []string{"start: complete configuration"}},
		{"too few starts", 5, 60 * ms, 5 * ms, 90 * ms, false, nil, nil},
	} {
		var result record.Fidelity
		var times [][2][]wiretap.Times
		for range sidecars.cases {
			both := [2][]wiretap.Times{starts(c.starts, 20*ms, 500*ms, 50*ms), starts(c.starts, c.first, c.own, c.waiting)}
			times = append(times, both)
			result.Cases = append(result.Cases, record.FidelityCase{Real: startTimes(both[realSide]), Simulated: startTimes(both[simulated])})
		}
		times = append(times, [2][]wiretap.Times{starts(1, 20*ms, 0, 0), nil}) // a case that did not come that far
		result.Cases = append(result.Cases, record.FidelityCase{})
		judgeTimes(&result, times, c.starts, envoysWork)
		for _, one := range result.Cases[:len(sidecars.cases)] {
			var unexplained, explained []string
			for _, d := range one.Differences {
				if d.Explained == "" {
					unexplained = append(unexplained, d.About)
				} else {
					explained = append(explained, d.About)
				}
			}
			if !slices.Equal(unexplained, c.unexplained) || !slices.Equal(explained, c.explained) || (len(one.TimeTests) == 3) != c.judged {
				t.Errorf("%s: %+v, tests %+v", c.name, one.Differences, one.TimeTests)
			}
		}
		if want := "starts 5 are too few to compare 15 times with 95 % confidence: want 6"; c.judged && result.TimesNotJudged != "" || !c.judged && result.TimesNotJudged != want {
			t.Errorf("%s: not judged: %q", c.name, result.TimesNotJudged)
		}
	}
}

// By default times are judged.
func TestStartsWanted(t *testing.T) {
	if s := DefaultSpec(); startsWanted(len(s.Cases)*len(startFigures)) > s.Starts {
		t.Errorf("%d starts are too few for %d cases", s.Starts, len(s.Cases))
	}
}

func TestContentText(t *testing.T) {
	content := &convergence.Content{
		Endpoints: convergence.Endpoints{netip.MustParseAddrPort("10.0.0.2:80"): convergence.Unhealthy, netip.MustParseAddrPort("10.0.0.1:80"): convergence.Healthy},
		Members:   []string{"b", "a", "b"},
	}
	for kind, want := range map[convergence.Type]string{
		convergence.EDS: "10.0.0.1:80 healthy, 10.0.0.2:80 unhealthy", convergence.RDS: "a, b", convergence.LDS: "", convergence.CDS: "",
	} {
		if got := contentText(convergence.Key{Type: kind}, content); got != want {
			t.Errorf("%s says %q, want %q", kind, got, want)
		}
	}
	if got := contentText(convergence.Key{Type: convergence.EDS}, nil); got != "" {
		t.Errorf("nothing says %q", got)
	}
}

func TestCompareHeld(t *testing.T) {
	type content = map[wiretap.Key]string
	type sent = map[wiretap.Key]wiretap.Resource
	bytes := func(n int) wiretap.Resource { return wiretap.Resource{Bytes: n} }
	eds, rds := wiretap.Key{Type: "EDS", Name: "a"}, wiretap.Key{Type: "RDS", Name: "80"}
	for _, c := range []struct {
		name   string
		own    [2]content
		passed [2]sent
		want   map[string]record.HeldResources
		about  []string
	}{
		{
			"the same, within 2 %", [2]content{{eds: "x"}, {eds: "x"}}, [2]sent{{eds: bytes(100)}, {eds: bytes(99)}},
			map[string]record.HeldResources{"EDS": {Real: 1, Simulated: 1, Common: 1, RealBytes: 100, SimulatedBytes: 99}}, nil,
		},
		{
			"other bytes", [2]content{{eds: "x"}, {eds: "x"}}, [2]sent{{eds: bytes(100)}, {eds: bytes(97)}},
			map[string]record.HeldResources{"EDS": {Real: 1, Simulated: 1, Common: 1, RealBytes: 100, SimulatedBytes: 97}}, []string{"bytes of EDS a"},
		},
		{
			"other endpoints", [2]content{{eds: "x"}, {eds: "y"}}, [2]sent{{eds: bytes(9)}, {eds: bytes(9)}},
			map[string]record.HeldResources{"EDS": {Real: 1, Simulated: 1, Common: 1, RealBytes: 9, SimulatedBytes: 9}}, []string{"content of EDS a"},
		},
		{
			"one more", [2]content{{eds: "x", rds: ""}, {eds: "x"}}, [2]sent{{eds: bytes(9), rds: bytes(5)}, {eds: bytes(9)}},
			map[string]record.HeldResources{"EDS": {Real: 1, Simulated: 1, Common: 1, RealBytes: 9, SimulatedBytes: 9}, "RDS": {Real: 1, RealBytes: 5}},
			[]string{"resource held by one alone"},
		},
		{
			"sent and not held", [2]content{{}, {rds: ""}}, [2]sent{{rds: bytes(5)}, {rds: bytes(5)}},
			map[string]record.HeldResources{"RDS": {Simulated: 1, SimulatedBytes: 5}}, []string{"resource held by one alone", "resource sent and not held"},
		},
		{
			"endpoints that Envoy has of itself", [2]content{{eds: ""}, {}}, [2]sent{{}, {}}, map[string]record.HeldResources{}, nil,
		},
	} {
		seen := differencesSeen{}
		got := seen.compareHeld(c.own, c.passed)
		var about []string
		for _, d := range seen.explained() {
			about = append(about, d.About)
		}
		if !maps.Equal(got, c.want) || !slices.Equal(about, c.about) {
			t.Errorf("%s: %+v and %q, want %+v and %q", c.name, got, about, c.want, c.about)
		}
	}
}

// Two that send nothing are alike, but show nothing.
func TestCompareRequests(t *testing.T) {
	words := func(real, fake string) (both [2][]string) {
		for side, text := range [2]string{real, fake} {
			both[side] = strings.Fields(text)
		}
		return both
	}
	for _, c := range []struct {
		name      string
		both      exchange
		want      record.Sameness
		different int
	}{
		{"alike", exchange{words("a b", "a b"), words("x", "x")}, record.Sameness{Same: 2}, 0},
		{"not alike", exchange{words("a b", "a c"), words("x", "x")}, record.Sameness{}, 1},
		{"silent", exchange{}, record.Sameness{Same: 2, Silent: 2}, 0},
		{"silent though it received something", exchange{responses: words("x", "")}, record.Sameness{Same: 2}, 0},
	} {
		seen := differencesSeen{}
		var got record.Sameness
		seen.compareRequests("scale", c.both, &got, 2)
		if got != c.want || len(seen) != c.different {
			t.Errorf("%s: %+v and %d differences, want %+v and %d", c.name, got, len(seen), c.want, c.different)
		}
	}
}

// What is not known must not be explained.
func TestExplain(t *testing.T) {
	for about, known := range map[string]bool{
		"node metadata NAME": true, "node metadata PROXY_CONFIG.statusPort": true, "node metadata ANNOTATIONS.status.sidecar.istio.io/port": true,
		"node metadata NAMESPACE": false, "node metadata ANNOTATIONS.sidecar.istio.io/status": false, "node metadata PROXY_CONFIG.image": false, "start requests": false, "resource held by one alone": false,
	} {
		if got := explain(record.Difference{About: about}); (got != "") != known {
			t.Errorf("%s is explained by %q", about, got)
		}
	}
}

func TestDifferencesSeen(t *testing.T) {
	seen := differencesSeen{}
	for range 3 {
		seen.add(oneSided("b", simulated, "x"))
	}
	seen.add(oneSided("node metadata NAME", realSide, "y"))
	got := seen.explained()
	if len(got) != 2 || got[0] != (record.Difference{About: "b", Real: "-", Simulated: "x", Count: 3}) || got[1].Explained == "" {
		t.Errorf("differences are %+v", got)
	}
	f := record.Fidelity{Cases: []record.FidelityCase{{Differences: got}}}
	if all := f.Unexplained(); len(all) != 1 || all[0].About != "b" {
		t.Errorf("unexplained are %+v", all)
	}
}

func TestExchange(t *testing.T) {
	lines := func(text string) []string {
		if text == "" {
			return nil
		}
		return strings.Split(text, ";")
	}
	for name, c := range map[string]struct {
		real, fake, receivedReal, receivedFake string
		late                                   bool
		excuse                                 string
	}{
		"one is behind":          {"CDS ack a;EDS ack", "CDS ack a", "", "", true, ""},
		"nothing was sent":       {"", "CDS ack a", "", "", true, ""},
		"the end of a draining":  {"RDS -r;EDS ack a", "EDS ack a;RDS -r", "EDS a", "EDS a", false, excuseDraining},
		"no draining at all":     {"EDS ack a;LDS ack", "EDS ack a;RDS -r", "EDS a", "EDS a", false, ""},
		"another order":          {"CDS ack a;RDS ack r", "RDS ack r;CDS ack a", "CDS a;RDS r", "RDS r;CDS a", false, excuseReordered},
		"in other parts":         {"CDS ack a b", "CDS ack a;CDS ack b", "CDS a b", "CDS a;CDS b", false, excuseReordered},
		"something else":         {"CDS ack a b", "CDS ack a", "CDS a b", "CDS a", false, ""},
		"a removal not received": {"CDS ack -a", "CDS ack a", "CDS -a", "CDS a", false, ""},
		"silence":                {"CDS ack a;RDS ack r", "RDS ack r", "CDS a;RDS r", "RDS r;CDS a", false, ""},
		"a refusal":              {"CDS ack a;RDS ack r", "RDS nack r;CDS ack a", "CDS a;RDS r", "RDS r;CDS a", false, ""},
		"the same received":      {"CDS ack a;RDS ack r", "RDS ack r;CDS ack a", "CDS a;RDS r", "CDS a;RDS r", false, ""},
		"others asked for":       {"EDS +a;CDS ack a", "CDS ack a;EDS +b", "CDS a", "CDS a;EDS b", false, ""},
	} {
		s := exchange{[2][]string{lines(c.real), lines(c.fake)}, [2][]string{lines(c.receivedReal), lines(c.receivedFake)}}
		if got := s.incomplete(); got != c.late {
			t.Errorf("%s: late is %t, want %t", name, got, c.late)
		}
		if got := s.excuse(); !c.late && got != c.excuse {
			t.Errorf("%s: the excuse is %q, want %q", name, got, c.excuse)
		}
	}
}
