package record

import (
	"math"
	"testing"
)

func TestCoresOfACycle(t *testing.T) {
	usage := func(cores, seconds float64) *Usage {
		return &Usage{CPUSeconds: &seconds, Cores: &Level{Mean: &cores}}
	}
	// 60 s at 0.125 cores are 7.5 s; the other 9 s, over 30 minutes, are 0.005 cores.
	c := Cycle{Sidecars: 300, AgeSeconds: 1800}
	c.SetCores(usage(0.125, 1), usage(0.275, 16.5), new(60.0), new(Run).SlowdownIn)
	if *c.CPUSeconds != 9 || *c.Cores != 0.13 {
		t.Errorf("%g s and %g cores, want 9 and 0.13", *c.CPUSeconds, *c.Cores)
	}
	// Slowed down by 4, the cycle and the age take 4 times as long, and steady alone does not.
	const steady = 0.03125
	for _, c := range []struct {
		realTime []PhaseName
		want     float64
	}{{nil, 4*steady + 9.0/1800}, {[]PhaseName{PhaseSteady}, steady + 9.0/1800}} {
		run := Run{Environment: Environment{Dilation: &Dilation{RealTime: c.realTime}}}
		run.Scenario.Instrument.Dilation.Factor = 4
		got := Cycle{AgeSeconds: 1800}
		got.SetCores(usage(steady, 1), usage(0.06875, 16.5), new(240.0), run.SlowdownIn)
		if cores := 4 * *got.Cores; *got.CPUSeconds != 9 || math.Abs(cores-c.want) > 1e-12 {
			t.Errorf("%v: %g s and %g cores, want 9 and %g", c.realTime, *got.CPUSeconds, cores, c.want)
		}
	}
	for name, c := range map[string]struct{ steady, cycle *Usage }{
		"no steady": {nil, usage(1, 1)}, "no cycle": {usage(1, 1), nil}, "nothing measured": {&Usage{}, &Usage{}},
	} {
		var got Cycle
		got.SetCores(c.steady, c.cycle, new(60.0), new(Run).SlowdownIn)
		if got.Cores != nil || got.CPUSeconds != nil {
			t.Errorf("%s: %v cores, want none", name, *got.Cores)
		}
	}
}
