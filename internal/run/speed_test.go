package run

import (
	"path/filepath"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/speed"
)

// samplesAt returns samples of a machine of a speed.
func samplesAt(t *testing.T, of float64, n int) []speed.Sample {
	t.Helper()
	all := make([]speed.Sample, n)
	for i := range all {
		all[i] = speed.Sample{At: time.Unix(int64(i), 0), CPU: time.Second}
	}
	if n < quotaSamples {
		return all
	}
	measured, err := speed.Of(all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].CPU = time.Duration(float64(time.Second) * measured.Speed / of)
	}
	return all
}

// The quota follows the latest samples, to all of the machine at most and never to nothing, and small differences and few samples do not change it.
func TestFollowQuota(t *testing.T) {
	group, err := process.OpenGroup(filepath.Join(t.TempDir(), "group"), process.GroupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	})
	here := float64(len(linux.Processors()))
	for name, c := range map[string]struct {
		k, speed float64
		samples  int
		want     float64
	}{
		"slower":                             {64, 0.5, quotaSamples, 0.25},
		"faster":                             {64, 2, quotaSamples, 0.0625},
		"nearly the same":                    {64, 1.01, quotaSamples, 0.125},
		"too few samples":                    {64, 0.5, 5, 0.125},
		"all of the machine":                 {64, 0.001, quotaSamples, here},
		"all of the machine, in full speed":  {1, 0.001, quotaSamples, here},
		"too slow for it from the beginning": {2, 0.001, quotaSamples, here},
	} {
		s := DefaultSpec()
		s.ControlPlane.Processors, s.Instrument.Dilation.Factor = 8, c.k
		r := &run{spec: s}
		r.group, r.limits = group, measure.NewProcessorLimits(here)
		first := controlplane.Quota{Processors: 8 / c.k}
		got := r.followQuota(first, samplesAt(t, c.speed, c.samples))
		if diff := got.Processors - c.want; diff > 1e-6 || diff < -1e-6 {
			t.Errorf("%s: %g processors, want %g", name, got.Processors, c.want)
		}
	}
}

// Samples belong to the window in which they ended.
func TestSpeedsInWindow(t *testing.T) {
	var s speeds
	for i := range 30 {
		if n, latest := s.add(speed.Sample{At: time.Unix(int64(i), 0), CPU: time.Duration(i)}); n != i+1 || len(latest) != min(n, quotaSamples) || latest[len(latest)-1].CPU != time.Duration(i) {
			t.Errorf("sample %d: %d in all, %d latest", i, n, len(latest))
		}
	}
	got := s.in(phases.Window{Begin: time.Unix(10, 0), End: time.Unix(20, 0)})
	if len(got) != 10 || got[0].CPU != 11 || got[9].CPU != 20 {
		t.Errorf("got %d samples from %v", len(got), got)
	}
}
