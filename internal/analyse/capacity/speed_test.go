package capacity

import (
	"math"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// even returns a speed that all parts of the work were done at.
func even(speed float64) *record.Speed {
	return &record.Speed{Work: "1", Speed: speed, Low: speed, High: speed}
}

// Processor time of runs that were not made at one speed is warned about.
func TestPlanOfDifferentSpeeds(t *testing.T) {
	for name, test := range map[string]struct {
		last float64 // of the last run
		work string  // likewise
		want string
	}{
		"one speed":  {1.02, "1", ""},
		"two speeds": {1.2, "1", ""}, // the forecast is of one processor
		"two works":  {1, "2", "different works, 1 and 2, which are different units"},
	} {
		all := strict().runs(nil, 2, 200, 400, 600, 800)
		for i := range all {
			p := &record.Processor{Model: "one", Run: even(1)}
			if i == len(all)-1 {
				p.Run = even(test.last)
				p.Run.Work = test.work
			}
			all[i].Environment.Processor = p
		}
		plan, err := Make(all, Options{Pods: 1600})
		if err != nil {
			t.Fatal(err)
		}
		var said string
		for _, d := range plan.Warnings {
			if d.About == rolloutCPU && strings.Contains(d.Text, "processor") && strings.Contains(d.Text, "not in one unit") {
				said += d.Text
			}
		}
		if test.want == "" && said != "" || !strings.Contains(said, test.want) {
			t.Errorf("%s: %q, want %q", name, said, test.want)
		}
	}
}

// Runs of one mesh on machines of several speeds give one plan: processor time and cores are of one processor, that of the runs on
// average or that of the nodes.
func TestPlanOnOneProcessor(t *testing.T) {
	of := func(speeds ...float64) []record.Run {
		all := strict().runs(nil, 2, 200, 400, 600, 800)
		for i := range all {
			speed := speeds[i%len(speeds)]
			all[i] = *withSpeed(*withSpeed(all[i], 1).OnProcessor(speed), speed)
		}
		return all
	}
	cpu := func(runs []record.Run, nodes *record.Speed) (float64, *record.Speed) {
		t.Helper()
		p, err := Make(runs, Options{Pods: 1600, NodeSpeed: nodes})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Figures {
			if f.Name == rolloutCPU {
				return f.Forecast, p.Processor
			}
		}
		t.Fatal("no processor time is planned")
		return 0, nil
	}
	same, _ := cpu(of(1), nil)
	for name, test := range map[string]struct {
		speeds []float64
		nodes  *record.Speed
		speed  float64
	}{
		"two speeds":           {[]float64{0.8, 1.2}, nil, 1},
		"quicker nodes":        {[]float64{1}, &record.Speed{Work: "1", Speed: 2}, 2},
		"nodes and two speeds": {[]float64{0.8, 1.2}, &record.Speed{Work: "1", Speed: 0.5}, 0.5},
	} {
		got, on := cpu(of(test.speeds...), test.nodes)
		if want := same / test.speed; math.Abs(got/want-1) > 1e-6 || on == nil || math.Abs(on.Speed-test.speed) > 1e-9 {
			t.Errorf("%s: %g s on %+v, want %g s", name, got, on, want)
		}
	}
	if _, err := Make(of(1), Options{Pods: 1600, NodeSpeed: &record.Speed{Work: "2", Speed: 1}}); err == nil || !strings.Contains(err.Error(), "nodeSpeed") {
		t.Errorf("got %v, want an error of nodeSpeed", err)
	}
}

// withSpeed returns a run on a machine of this speed.
func withSpeed(r record.Run, speed float64) *record.Run {
	r.Environment.Processor = &record.Processor{Run: speedOf(speed)}
	return &r
}

func speedOf(speed float64) *record.Speed { return &record.Speed{Work: "1", Speed: speed} }

// Runs of one day do not show what days differ by, and their interval contains it; runs of three days do. No runs of one machine
// show by how much the unit is wrong for another kind of processor.
func TestIntervalsOfDaysAndKinds(t *testing.T) {
	shares := func(days int, nodes *record.Speed) (below, above float64) {
		all := strict().runs(nil, 2, 200, 400, 600, 800) // without any noise
		for i := range all {
			all[i] = *withSpeed(all[i], 1)
			all[i].Started = time.Date(2026, 11, 1+i%days, 12, 0, 0, 0, time.UTC)
		}
		p, err := Make(all, Options{Pods: 1600, NodeSpeed: nodes})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Figures {
			if f.Name == rolloutCPU {
				return 1 - *f.Low/f.Forecast, *f.High/f.Forecast - 1
			}
		}
		t.Fatalf("no forecast of %s", rolloutCPU)
		return 0, 0
	}
	const day = 1.96 * dayToDay
	nodes := &record.Speed{Work: "1", Speed: 0.5}
	for _, c := range []struct {
		days         int
		nodes        *record.Speed
		below, above float64
	}{
		{1, nil, day, day}, {2, nil, day, day}, {3, nil, 0, 0},
		{1, nodes, math.Hypot(day, AnotherKind), math.Hypot(day, AnotherKind/(1-AnotherKind))},
		{3, nodes, AnotherKind, AnotherKind / (1 - AnotherKind)},
	} {
		if below, above := shares(c.days, c.nodes); math.Abs(below-c.below) > 1e-3 || math.Abs(above-c.above) > 1e-3 {
			t.Errorf("%d days, nodes %v: the interval is %.4f below the forecast and %.4f above, want %.4f and %.4f", c.days, c.nodes != nil, below, above, c.below, c.above)
		}
	}
}
