package capacity

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// buffered are runs of istiod whose routes have 1.6 kB and 49 bytes for each pod, so that they are larger than 32 KiB
// from 636 pods on, where memory is higher by a step.
func buffered(step, share float64, random *rand.Rand, repeats int, sizes ...int) []record.Run {
	w := permissive()
	w.share = share
	w.memory = func(n float64) float64 {
		if n > 636 {
			return step + 1e6*n
		}
		return 1e6 * n
	}
	runs := w.runs(random, repeats, sizes...)
	for i := range runs {
		pods := float64(runs[i].PodCount())
		runs[i].XDS.ConfigurationBytes.ByType = map[string]float64{"CDS": 200 * pods, "EDS": 300 * pods, "LDS": 21.4e3, "RDS": 1.6e3 + 49*pods}
	}
	return runs
}

// The step is found where two sizes are on either side of it, and the live heap has none.
func TestLargeResponses(t *testing.T) {
	const step = 200e6
	for name, c := range map[string]struct {
		sizes    []int
		pods     int
		want     float64 // memory that is forecast, above that of the empty control plane
		warnings bool
	}{
		"both sides, a larger mesh":    {[]int{200, 400, 600, 700, 800}, 1600, step + 1600e6, false},
		"both sides, a smaller mesh":   {[]int{200, 400, 600, 700, 800}, 300, 300e6, false},
		"small, a larger mesh":         {[]int{200, 300, 400, 500, 600}, 1600, 1600e6, true},
		"small, a small mesh":          {[]int{200, 300, 400, 500}, 600, 600e6, false},
		"large":                        {[]int{700, 800, 1000}, 1600, step + 1600e6, false},
		"one size large, a large mesh": {[]int{200, 300, 400, 500, 800}, 1600, 0, true},
		"one size large, a small mesh": {[]int{200, 300, 400, 500, 800}, 300, 0, true},
		"one size small":               {[]int{600, 700, 800, 900}, 1600, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Make(buffered(step, 0, nil, 2, c.sizes...), Options{Pods: c.pods})
			if err != nil {
				t.Fatal(err)
			}
			if warning := p.warningAbout(rolloutMemory, "from about 636 pods on"); (warning != "") != c.warnings {
				t.Errorf("the warning is %q", warning)
			}
			for _, figure := range []string{rolloutMemory, steadyMemory} {
				if got := p.figure(t, figure).Forecast; c.want != 0 && math.Abs(got/(c.want+emptyResident)-1) > 1e-6 {
					t.Errorf("%s is forecast as %g, want %g", figure, got, c.want+emptyResident)
				}
			}
			if model := p.figure(t, rolloutMemory).model(); strings.HasSuffix(model, " + 191MiB for large responses") != strings.HasPrefix(name, "both sides") {
				t.Errorf("the model is %s", model)
			}
			if got, want := p.figure(t, liveHeap).Forecast, emptyHeap+permissive().heap(float64(c.pods)); math.Abs(got/want-1) > 1e-6 {
				t.Errorf("live heap is forecast as %g, want %g", got, want)
			}
		})
	}
}

// The largest response is that of listeners or routes, and of clusters where all of them are sent. Buffers of other control planes are not known.
func TestLargestResponse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*record.Run)
		want   float64
	}{
		"listeners":          {func(*record.Run) {}, 21.4e3},
		"routes":             {func(r *record.Run) { r.XDS.ConfigurationBytes.ByType["RDS"] = 50e3 }, 50e3},
		"state of the world": {func(r *record.Run) { r.Scenario.Mesh.Sidecars.XDS = "sotw" }, 80e3},
		"limit not known":    {func(r *record.Run) { r.Environment.ControlPlane.Limits = nil }, 0},
		"not known":          {func(r *record.Run) { r.XDS = nil }, 0},
		"types not known":    {func(r *record.Run) { r.XDS.ConfigurationBytes.ByType = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := buffered(0, 0, nil, 1, 400)[0]
			r.Scenario.Mesh.Sidecars.XDS = "delta"
			c.change(&r)
			if got := largestResponse(&r) * limits.LargeResponseBytes; math.Abs(got-c.want) > 1e-6 {
				t.Errorf("%g, want %g", got, c.want)
			}
		})
	}
}

// Intervals contain one more run with a step and without one.
func TestIntervalsOfLargeResponsesCover(t *testing.T) {
	const experiments = 400
	for _, step := range []float64{0, 100e6, 250e6} {
		random := rand.New(rand.NewPCG(11, 12))
		inside := 0
		var widths []float64
		for range experiments {
			runs := append(buffered(step, 0.04, random, 1, 200, 300, 400, 500, 600, 700, 800), buffered(step, 0.04, random, 1, 1600)...)
			p, err := Make(runs, Options{Validate: true})
			if err != nil {
				t.Fatal(err)
			}
			f := p.figure(t, rolloutMemory)
			if *f.Low <= *f.Measured && *f.Measured <= *f.High {
				inside++
			}
			widths = append(widths, (*f.High-*f.Low)/2/f.Forecast)
		}
		slices.Sort(widths)
		share, width := float64(inside)/experiments, widths[experiments/2]
		t.Logf("a step of %g bytes: %.3f inside, ±%.0f%% in the median", step, share, 100*width)
		if share < 0.9 {
			t.Errorf("a step of %g bytes: %.3f of the intervals hold what was measured, want 0.9", step, share)
		}
		if width > 0.25 {
			t.Errorf("a step of %g bytes: ±%.0f%%, want 25%%", step, 100*width)
		}
	}
}
