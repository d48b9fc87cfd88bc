package compare

import (
	"math"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

func TestParseBound(t *testing.T) {
	for text, want := range map[string]Bound{
		"rollout.cores>+10%":                             {Figure: "rollout.cores", Change: 0.1, Percent: true},
		" rollout.cores > +10% ":                         {Figure: "rollout.cores", Change: 0.1, Percent: true},
		"controlPlane.rollout.cores.mean>+2.5%":          {Figure: "rollout.cores", Change: 0.025, Percent: true},
		"latencies.push.route.p99>+50ms":                 {Figure: "push.route.p99", Change: 0.05, Unit: Seconds},
		"push.route.p99>+50us":                           {Figure: "push.route.p99", Change: 50e-6, Unit: Seconds},
		"steady.memoryBytes<-20MB":                       {Figure: "steady.memoryBytes", Below: true, Change: 20e6, Unit: Bytes},
		"steady.memoryBytes>+1GiB":                       {Figure: "steady.memoryBytes", Change: 1 << 30, Unit: Bytes},
		"xds.refusals>+0":                                {Figure: "xds.refusals"},
		"cluster.kube-apiserver.steady.cores>+0.5":       {Figure: "cluster.kube-apiserver.steady.cores", Change: 0.5},
		"faults.reset-streams:20%@steady.seconds>+1s":    {Figure: "faults.reset-streams:20%@steady.seconds", Change: 1, Unit: Seconds},
		"faults.api-server-gone:10s@steady.seconds>+10%": {Figure: "faults.api-server-gone:10s@steady.seconds", Change: 0.1, Percent: true},
	} {
		got, err := ParseBound(text)
		want.Text = strings.TrimSpace(text)
		if math.Abs(got.Change-want.Change) < 1e-15 {
			got.Change = want.Change
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ">", "rollout.cores", "rollout.cores>10%", "rollout.cores>-10%", "rollout.cores<+10%", "rollout.cores=+10%",
		"rollout.cores>=+10%", ">+10%", "rollout.cores>", "rollout.cores>+%", "rollout.cores>+x%", "rollout.cores>+10%%",
		"rollout.cores>+10 %", "rollout.cores>+1e3", "rollout.cores>+.5", "rollout.cores>+5.", "rollout..>+1", ".cores>+1",
		"rollout cores>+10%", "rollout.cores>+10%>+20%", "push.p99>+5min", "rollout.cores>+10\n%", "rollout.cores>+NaN", "rollout.cores>+Inf",
		"rollout.cores>+9999999999999999999", "rollout.cores>++1",
	} {
		if got, err := ParseBound(text); err == nil || !strings.Contains(err.Error(), "want ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %+v, %v: want one line of error", text, got, err)
		}
	}
}

// A bound that parses is one: finite, not negative, and the same when what it was
// made of is put together again.
func FuzzParseBound(f *testing.F) {
	for _, seed := range []string{"rollout.cores>+10%", "push.route.p99 > +50ms", "a<-1GiB", "faults.reset-streams:20%@steady.seconds>+1s", "a>+0", "a>-1", "<", "a\x00>+1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBound(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: the error is more than one line: %v", text, err)
			}
			return
		}
		if !(b.Change >= 0) || math.IsInf(b.Change, 0) || b.Figure == "" || b.Percent && b.Unit != "" {
			t.Fatalf("%q: %+v", text, b)
		}
		again, err := ParseBound(b.Text)
		if err != nil || again != b {
			t.Fatalf("%q: %+v, and again %+v, %v", text, b, again, err)
		}
	})
}

func TestBounds(t *testing.T) {
	five := func(alters ...alter) []record.Run { return runs("b", 5, 2, alters...) }
	threeWorse := five()
	for i := range 3 {
		threeWorse[i].Status = record.StatusUnconverged
	}
	lost := five()
	lost[0].Latencies.Push[record.EndpointAdd].P99, lost[0].Latencies.Push[record.EndpointAdd].Lost = nil, 9
	few := five(func(r *record.Run) {
		r.Latencies.Propagation = map[record.ChangeKind]record.Propagation{record.EndpointAdd: {First: &record.Latency{Count: 20}}}
		r.Latencies.Withhold()
	})
	slower := func(factor float64) alter {
		return func(r *record.Run) { *r.ControlPlane.Rollout.Cores.Mean *= factor }
	}
	noisy := five()
	for i := range noisy {
		*noisy[i].ControlPlane.Rollout.Cores.Mean *= []float64{0.5, 1, 1, 1.5, 3}[i]
	}
	for _, tt := range []struct {
		name  string
		bound string
		b     []record.Run
		want  Outcome
		fails bool
	}{
		{"the same", "rollout.cores>+10%", five(), Inside, false},
		{"established, within the bound", "rollout.cores>+60%", five(slower(1.5)), Inside, false},
		{"established, beyond", "rollout.cores>+10%", five(slower(1.5)), Beyond, true},
		{"beyond in the unit", "rollout.cores>+0.1", five(slower(1.5)), Beyond, true},
		{"inside in the unit", "rollout.cores>+0.1", five(), Inside, false},
		{"at the bound", "rollout.cores>+50%", five(slower(1.5)), Undecided, false},
		{"no fall by all of it", "rollout.cores<-100%", five(slower(0.5)), Inside, false},
		{"less is no rise", "rollout.cores>+10%", five(slower(0.5)), Inside, false},
		{"less is a fall", "rollout.cores<-10%", five(slower(0.5)), Beyond, true},
		{"noise", "rollout.cores>+10%", noisy, Undecided, false},
		{"too few", "rollout.cores>+10%", runs("b", 2, 2, slower(2)), Undecided, false},
		{"too few, and within", "rollout.cores>+10%", runs("b", 2, 2), Undecided, false},
		{"push", "push.endpointAdd.p50>+500ms", five(debounced), Beyond, true},
		{"B did not complete", "rollout.cores>+10%", threeWorse, Unknown, true},
		{"lost", "push.endpointAdd.p99>+10%", lost, Unknown, true},
		{"too few changes", "push.endpointAdd.p99>+10%", few, Unknown, true},
		{"not measured by B", "rollout.cores>+10%", five(func(r *record.Run) { r.ControlPlane = nil }), Unknown, true},
		{"from nothing to something, in percent", "rollout.restarts>+10%", five(func(r *record.Run) { *r.ControlPlane.Rollout.Restarts = 2 }), Beyond, true},
		{"the same in every run", "rollout.restarts>+0", five(), Inside, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bound, err := ParseBound(tt.bound)
			if err != nil {
				t.Fatal(err)
			}
			r := comparison(t, runs("a", 5, 1), tt.b, Options{Bounds: []Bound{bound}, Figures: []string{"steady"}})
			if len(r.Bounds) != 1 || r.Bounds[0].Outcome != tt.want || r.Fails() != tt.fails {
				t.Errorf("%+v, fails %v: want %s", r.Bounds, r.Fails(), tt.want)
			}
			if r.Undecided() != (tt.want == Undecided) {
				t.Errorf("undecided: %v", r.Undecided())
			}
		})
	}
}

func TestBoundsThatNothingFits(t *testing.T) {
	for text, want := range map[string]string{
		"rollout.coresss>+10%": `which "rollout.coresss" is not, as rollout.`,
		"push.route.p99>+10%":  `as push.endpointAdd.p50`,
		"push.endpointAdd>+1s": `as push.endpointAdd.p50, push.endpointAdd.p99`,
		"rollout.cores>+10ms":  "want a change in %, or in cores, without a unit",
		"rollout.seconds>+1":   "want a change in %, or in s, ms or us",
		"rollout.seconds>+1MB": "want a change in %, or in s, ms or us",
	} {
		bound, err := ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Compare(runs("a", 5, 1), runs("b", 5, 2), Options{Bounds: []Bound{bound}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
