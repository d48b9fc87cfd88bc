package record

import (
	"math"
	"testing"
)

// Every figure of a dilated run is scaled once, by the rule of the catalogue, and the
// measured run stays as it is.
func TestUndilated(t *testing.T) {
	run := fullRun(t)
	run.Scenario.Instrument.Dilation.Factor = 0
	if same, err := run.Undilated(); err != nil || same != run {
		t.Fatalf("a run that was not slowed down is changed: %v", err)
	}
	run.Scenario.Instrument.Dilation.Factor, run.Environment.Dilation = 4, &Dilation{}
	run.Phases = []Phase{{Name: PhaseBaseline, Seconds: new(8.0)}, {Name: PhaseRollout, Seconds: new(40.0), EndedBy: EndedByConverged}}
	run.Own.Rollout = map[string]float64{"debounceSeconds": 2, "pushes": 3, "requestsPerSecond": 5}
	run.Environment.ControlPlane.GOMAXPROCS = 2
	measured := map[string]float64{}
	for _, v := range run.Values() {
		if v.Value != nil {
			measured[v.Path] = *v.Value
		}
	}
	scaled, err := run.Undilated()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Scaling]int{}
	for _, v := range scaled.Values() {
		if v.Value == nil {
			continue
		}
		rule := v.Figure.Scaling()
		seen[rule]++
		want := measured[v.Path]
		switch rule {
		case ScalingTime:
			want /= 4
		case ScalingRate:
			want *= 4
		case ScalingNone:
		}
		if math.Abs(*v.Value-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s, a %q, is %g of measured %g, want %g", v.Path, rule, *v.Value, measured[v.Path], want)
		}
	}
	if seen[ScalingNone] == 0 || seen[ScalingTime] == 0 || seen[ScalingRate] == 0 {
		t.Errorf("figures by rule: %v", seen)
	}
	if got := *scaled.Phase(PhaseBaseline).Seconds; got != 2 {
		t.Errorf("the baseline is %g s, want 2", got)
	}
	if own := scaled.Own.Rollout; own["debounceSeconds"] != 0.5 || own["pushes"] != 3 || own["requestsPerSecond"] != 20 {
		t.Errorf("own metrics are %v", own)
	}
	if got, want := scaled.Environment.ControlPlane.GOMAXPROCS, run.Environment.ControlPlane.GOMAXPROCS; got != want {
		t.Errorf("GOMAXPROCS is %d, want %d, with which it ran", got, want)
	}
	for _, v := range run.Values() {
		if v.Value != nil && *v.Value != measured[v.Path] {
			t.Errorf("%s of the measured run became %g", v.Path, *v.Value)
		}
	}
}

// Figures of phases that were not slowed down stay as measured, and so do their lengths.
func TestUndilatedInRealTime(t *testing.T) {
	run := fullRun(t)
	run.Scenario.Instrument.Dilation.Factor = 4
	run.Environment.Dilation = &Dilation{RealTime: []PhaseName{PhaseBaseline, PhaseSteady}}
	run.Phases = []Phase{{Name: PhaseBaseline, Seconds: new(8.0)}, {Name: PhaseRollout, Seconds: new(40.0)}, {Name: PhaseSteady, Seconds: new(8.0)}}
	run.Own.Steady = map[string]float64{"debounceSeconds": 2}
	run.Own.Rollout = map[string]float64{"debounceSeconds": 2}
	scaled, err := run.Undilated()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]float64{
		"controlPlane.steady.cores.mean":   *run.Value("controlPlane.steady.cores.mean"),
		"controlPlane.baseline.cores.peak": *run.Value("controlPlane.baseline.cores.peak"),
		"xds.rates.steady.bytesPerSecond":  *run.Value("xds.rates.steady.bytesPerSecond"),
		"controlPlane.rollout.cores.mean":  4 * *run.Value("controlPlane.rollout.cores.mean"),
		"controlPlane.churn.cores.mean":    4 * *run.Value("controlPlane.churn.cores.mean"),
	} {
		if got := scaled.Value(path); got == nil || *got != want {
			t.Errorf("%s is %v, want %g", path, got, want)
		}
	}
	for phase, want := range map[PhaseName]float64{PhaseBaseline: 8, PhaseRollout: 10, PhaseSteady: 8} {
		if got := *scaled.Phase(phase).Seconds; got != want {
			t.Errorf("%s has %g s, want %g", phase, got, want)
		}
	}
	if got := scaled.Own.Steady["debounceSeconds"]; got != 2 {
		t.Errorf("in steady changes were collected for %g s, want 2", got)
	}
	if got := scaled.Own.Rollout["debounceSeconds"]; got != 0.5 {
		t.Errorf("in the rollout changes were collected for %g s, want 0.5", got)
	}
}

func TestScaling(t *testing.T) {
	for path, want := range map[string]Scaling{
		"phases.rollout.seconds":              ScalingTime,
		"controlPlane.rollout.cpuSeconds":     ScalingNone,
		"controlPlane.rollout.waitedSeconds":  ScalingTime,
		"instrument.waitedSeconds":            ScalingTime,
		"controlPlane.rollout.cores.peak":     ScalingRate,
		"controlPlane.steady.memoryBytes.end": ScalingNone,
		"controlPlane.rollout.saturation":     ScalingNone,
		"latencies.certificate.p99":           ScalingTime,
		"latencies.certificate.count":         ScalingNone,
		"xds.responses.CDS":                   ScalingNone,
		"arrival.achievedPerSecond":           ScalingRate,
		"arrival.readyPeakPerSecond":          ScalingNone,
		"certificates.perSecond":              ScalingRate,
		"instrument.lag.p99":                  ScalingTime,
	} {
		f, ok := FigureAt(path)
		if !ok || f.Scaling() != want {
			t.Errorf("%s: %q, %t, want %q", path, f.Scaling(), ok, want)
		}
	}
}
