package compare

import (
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

func TestParseObjective(t *testing.T) {
	for in, want := range map[string]Objective{
		"push.p99<2s":                        {Figure: "change.push.p99", Path: "change.push.p99", Below: true, Value: 2, Unit: Seconds},
		" change.push.p99 < 200ms ":          {Figure: "change.push.p99", Path: "change.push.p99", Below: true, Value: 0.2, Unit: Seconds},
		"push.route.p50<1s":                  {Figure: "push.route.p50", Path: "latencies.push.route.p50", Below: true, Value: 1, Unit: Seconds},
		"latencies.certificate.p99<5s":       {Figure: "certificate.p99", Path: "latencies.certificate.p99", Below: true, Value: 5, Unit: Seconds},
		"rollout.cores<1.5":                  {Figure: "rollout.cores", Path: "controlPlane.rollout.cores.mean", Below: true, Value: 1.5, Unit: Cores},
		"change.memoryBytes.peak<512MiB":     {Figure: "change.memoryBytes.peak", Path: "controlPlane.change.memoryBytes.peak", Below: true, Value: 512 << 20, Unit: Bytes},
		"rollout.seconds<60s":                {Figure: "rollout.seconds", Path: "phases.rollout.seconds", Below: true, Value: 60, Unit: Seconds},
		"controlPlane.steady.saturation<10%": {Figure: "steady.saturation", Path: "controlPlane.steady.saturation", Below: true, Value: 0.1, Unit: Share},
		"certificates.perSecond>20":          {Figure: "certificates.perSecond", Path: "certificates.perSecond", Value: 20, Unit: PerSecond},
		"change.backlogSeconds<1s":           {Figure: "change.backlogSeconds", Path: "change.backlogSeconds", Below: true, Value: 1, Unit: Seconds},
	} {
		got, err := ParseObjective(in)
		got.Text = ""
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "push.p99", "push.p99<", "<2s", "push.p99<2", "push.p99<2MB", "push.p99<+10%", "no.such.figure<2s", "rollout.cores<2s", "push.p99<-2s", "push.p99<1e30s", "rollout.cores<10%"} {
		if got, err := ParseObjective(in); err == nil {
			t.Errorf("%q: %+v, want an error", in, got)
		}
	}
}

func FuzzParseObjective(f *testing.F) {
	for _, s := range []string{"push.p99<2s", "rollout.cores<1.5", "x>y", "<>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseObjective(s)
		if err != nil {
			return
		}
		if f, ok := record.FigureAt(o.Path); !ok || Unit(f.Unit) != o.Unit || o.Value < 0 {
			t.Errorf("%q: %+v", s, o)
		}
	})
}

// A value decides an objective, and so does one that lies among the lost. What too few
// changes do not determine decides nothing.
func TestObjectiveOf(t *testing.T) {
	o, err := ParseObjective("push.p99<2s")
	if err != nil {
		t.Fatal(err)
	}
	run := func(changes int, p99 *float64, lost int64) *record.Run {
		c := &record.Change{Changes: &changes, Push: &record.Latency{Unit: "s", Count: 1000, Lost: lost, P99: p99}}
		c.Withhold()
		return &record.Run{Change: c, Warnings: []record.Warning{
			{About: "change.push", Text: "of pushes"}, {About: "change", Text: "of all"}, {About: "latencies", Text: "of others"},
		}}
	}
	for name, c := range map[string]struct {
		run                  *record.Run
		known, met, withheld bool
	}{
		"met":            {run(100, new(1.9), 0), true, true, false},
		"missed":         {run(100, new(2.0), 0), true, false, false},
		"lost":           {run(100, nil, 50), true, false, false},
		"withheld":       {run(99, new(0.1), 0), false, false, true},
		"withheld, lost": {run(99, nil, 50), false, false, true},
		"not measured":   {&record.Run{}, false, false, false},
	} {
		got := o.Of(c.run)
		if got.Known() != c.known || got.Met != c.met || got.Withheld != c.withheld {
			t.Errorf("%s: %+v", name, got)
		}
		if want := min(2, len(c.run.Warnings)); len(got.Warnings) != want {
			t.Errorf("%s: warnings %q, want %d", name, got.Warnings, want)
		}
	}
}

// A figure that is biased toward the result decides nothing; one that is biased away from it does.
func TestObjectiveJudge(t *testing.T) {
	saturated := []record.Warning{{About: "controlPlane.rollout", Phase: record.PhaseRollout, Reason: record.ReasonSaturated}}
	for name, c := range map[string]struct {
		text     string
		cores    *float64
		warnings []record.Warning
		want     Outcome
		why      string
	}{
		"met":                     {text: "rollout.cores<1.5", cores: new(1.4), want: Inside, why: "1.40"},
		"missed":                  {text: "rollout.cores<1.5", cores: new(1.6), want: Beyond, why: "1.60"},
		"at the value":            {text: "rollout.cores<1.5", cores: new(1.5), want: Beyond, why: "1.50"},
		"not measured":            {text: "rollout.cores<1.5", want: Unknown, why: "the run did not measure it"},
		"met, and too low":        {text: "rollout.cores<1.5", cores: new(1.4), warnings: saturated, want: Undecided, why: "1.40, which is too low, by the warning of controlPlane.rollout"},
		"missed, and too low":     {text: "rollout.cores<1.5", cores: new(1.6), warnings: saturated, want: Beyond, why: "1.60"},
		"above, and too low":      {text: "rollout.cores>1.5", cores: new(1.6), warnings: saturated, want: Inside, why: "1.60"},
		"not above, and too low":  {text: "rollout.cores>1.5", cores: new(1.4), warnings: saturated, want: Undecided, why: "1.40, which is too low, by the warning of controlPlane.rollout"},
		"of another phase's bias": {text: "steady.cores<1.5", cores: new(1.4), warnings: saturated, want: Inside, why: "1.40"},
	} {
		o, err := ParseObjective(c.text)
		if err != nil {
			t.Fatal(err)
		}
		run := &record.Run{Warnings: c.warnings}
		if c.cores != nil {
			usage := record.Usage{Cores: &record.Level{Mean: c.cores}}
			run.ControlPlane = &record.ByPhase[*record.Usage]{Rollout: &usage, Steady: &usage}
		}
		got, why := o.Judge(run)
		if got != c.want || why != c.why {
			t.Errorf("%s: %s, %q, want %s, %q", name, got, why, c.want, c.why)
		}
	}
}
