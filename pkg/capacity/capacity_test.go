package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// world makes runs of meshes whose needs are known.
type world struct {
	mode          string
	configuration func(n float64) float64 // bytes of a sidecar
	heap, memory  func(n float64) float64 // bytes above the empty control plane's
	cpu           func(n float64) float64 // seconds
	share         float64                 // standard deviation of a run's figures, of each
	queue         func(n float64) float64 // seconds that pushes wait; nil = none
	saturation    float64
}

const (
	emptyHeap     = 18e6
	emptyResident = 122e6
)

// permissive grows with what sidecars hold together, strict with sidecars.
func permissive() world {
	w := strict()
	w.mode = "permissive"
	w.configuration = func(n float64) float64 { return 30e3 + 306*n }
	w.cpu = func(n float64) float64 { return -4 + 0.040*n + 39e-9*n*w.configuration(n) }
	w.memory = func(n float64) float64 { return 80e6 + 670e3*n }
	return w
}

func strict() world {
	return world{
		mode:          "strict",
		configuration: func(float64) float64 { return 18.4e3 },
		heap:          func(n float64) float64 { return 4e6 + 160e3*n },
		memory:        func(n float64) float64 { return 20e6 + 330e3*n },
		cpu:           func(n float64) float64 { return -1.2 + 0.0222*n },
	}
}

// limits are istiod's.
var limits = &record.Limits{
	StreamsPerSecond: &record.ByProcessors{Base: 15, PerProcessor: 5, Max: 100}, StreamWaitSeconds: 1,
	ConcurrentPushes:      &record.ByProcessors{Base: 15, PerProcessor: 5, Max: 100},
	TokenReviewsPerSecond: 80, TokenReviewsBurst: 160, TokenReviewsPerSidecar: 2,
	DebounceSeconds: 0.1, DebounceMaxSeconds: 10,
}

// run is one of n pods. random nil makes one without noise.
func (w world) run(n int, random *rand.Rand) record.Run {
	noise := func(v float64) *float64 {
		if random != nil {
			v *= 1 + w.share*random.NormFloat64()
		}
		return &v
	}
	pods := float64(n)
	memory := noise(emptyResident + w.memory(pods))
	r := record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Name: fmt.Sprintf("istiod-%s-%d", w.mode, n),
		Status: record.StatusCompleted,
		Spec:   record.Spec{Pods: n, Services: n / 10, Topology: "layers", FanOut: 3, Burst: "all", Mode: w.mode, XDS: "delta"},
		Environment: record.Environment{
			CPUs:         2,
			ControlPlane: record.ControlPlaneSource{Name: "istiod", Version: "1.31.0", Replicas: 1, GOMAXPROCS: 2, Limits: limits},
			Knobs:        record.Knobs{MTLS: w.mode, Scope: map[string]string{"permissive": "all", "strict": "declared"}[w.mode], Authz: "none"},
		},
		Phases:  []record.Phase{{Name: record.PhaseRollout, Seconds: noise(1.2 * pods / 25), EndedBy: record.EndedByConverged}},
		Arrival: &record.Arrival{AchievedPerSecond: new(50.0)},
		ControlPlane: &record.ByPhase[*record.Usage]{
			Baseline: &record.Usage{HeapBytes: &record.Level{Mean: new(emptyHeap)}, MemoryBytes: &record.Level{Mean: new(emptyResident)}},
			Rollout:  &record.Usage{CPUSeconds: noise(w.cpu(pods)), MemoryBytes: &record.Level{Peak: memory}, Saturation: &w.saturation},
			Steady:   &record.Usage{HeapBytes: &record.Level{Collected: noise(emptyHeap + w.heap(pods)), Mean: new(2 * emptyHeap)}, MemoryBytes: &record.Level{Peak: memory}},
		},
		XDS: &record.XDS{ConfigurationBytes: &record.ConfigurationBytes{Mean: new(w.configuration(pods))}},
	}
	if w.queue != nil {
		r.Own = &record.Own{}
		r.Own.Rollout = map[string]float64{queueMetric: w.queue(pods)}
	}
	return r
}

func (w world) runs(random *rand.Rand, repeats int, sizes ...int) []record.Run {
	var all []record.Run
	for _, n := range sizes {
		for range repeats {
			all = append(all, w.run(n, random))
		}
	}
	return all
}

func (p *Plan) figure(t *testing.T, name string) Figure {
	t.Helper()
	for _, f := range p.Figures {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no figure %s in %+v", name, p.Figures)
	return Figure{}
}

// Without noise every figure is forecast as it is, however far.
func TestForecastsWithoutNoiseAreExact(t *testing.T) {
	for _, w := range []world{permissive(), strict()} {
		plan, err := Make(w.runs(nil, 2, 200, 400, 600, 800), Options{Pods: 6400})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]float64{
			liveHeap:      emptyHeap + w.heap(6400),
			steadyMemory:  emptyResident + w.memory(6400),
			rolloutMemory: emptyResident + w.memory(6400),
			rolloutCPU:    w.cpu(6400),
		} {
			if f := plan.figure(t, name); math.Abs(f.Forecast/want-1) > 1e-6 {
				t.Errorf("%s: %s is forecast as %v, want %v", w.mode, name, f.Forecast, want)
			}
		}
	}
}

// Of many experiments with noise, nearly 95 % of the intervals hold what a run of
// the target measures (the spreads are estimated, too, which costs some), and they
// are narrow enough to be of use.
func TestIntervalsCover(t *testing.T) {
	const experiments = 400
	for _, w := range []world{permissive(), strict()} {
		w.share = 0.04
		random := rand.New(rand.NewPCG(7, 1600))
		inside, width := map[string]int{}, map[string]float64{}
		for range experiments {
			plan, err := Make(append(w.runs(random, 3, 200, 400, 600, 800), w.run(1600, random)), Options{Validate: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range plan.Figures {
				if f.Low == nil || f.Measured == nil {
					t.Fatalf("%s has no interval, or nothing measured", f.Name)
				}
				if *f.Measured >= *f.Low && *f.Measured <= *f.High {
					inside[f.Name]++
				}
				width[f.Name] += (*f.High - *f.Low) / 2 / f.Forecast / experiments
			}
		}
		for _, name := range []string{steadyMemory, rolloutMemory, rolloutCPU, rolloutTime} {
			share := float64(inside[name]) / experiments
			t.Logf("%s: %s: %.3f within ±%.0f%% on average", w.mode, name, share, width[name]*100)
			if share < 0.9 {
				t.Errorf("%s: %s: %.3f of the intervals hold what was measured, want 0.95", w.mode, name, share)
			}
		}
		for name, w := range width {
			if w > 0.25 {
				t.Errorf("%s is told to ±%.0f%%, want 25%%", name, w*100)
			}
		}
	}
}

// Small sizes at which pushes did not queue are of another regime.
func TestSmallSizesOfAnotherRegimeAreLeftOut(t *testing.T) {
	w := strict()
	w.queue = func(n float64) float64 { return max(0, n-300) / 100 }
	w.memory = func(n float64) float64 {
		if n < 300 {
			return 500e3 * n
		}
		return 200e6 + 600e3*n
	}
	plan, err := Make(w.runs(nil, 2, 200, 400, 600, 800), Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plan.figure(t, steadyMemory).Forecast, emptyResident+w.memory(1600); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("memory is forecast as %v, want %v", got, want)
	}
	if text := fmt.Sprint(plan.Doubts); !strings.Contains(text, "1 size below 400 pods not used") {
		t.Errorf("doubts are %s", text)
	}
	plan, err = Make(w.runs(nil, 2, 200, 400, 800), Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(plan.Doubts); !strings.Contains(text, "pushes queued at 2 sizes of 3") || len(plan.Runs) != 3 {
		t.Errorf("with too few sizes left: runs %v, doubts %s", plan.Runs, text)
	}
}

// Times of saturated phases are not used where others are there, and not
// without a word where they are not.
func TestSaturatedPhases(t *testing.T) {
	calm, busy := strict(), strict()
	busy.saturation = 0.5
	slow := busy.runs(nil, 2, 200, 400, 800)
	for i := range slow {
		*slow[i].Phases[0].Seconds *= 3
	}
	for name, c := range map[string]struct {
		runs   []record.Run
		factor float64
		said   bool
	}{
		"calm":          {calm.runs(nil, 2, 200, 400, 800), 1.2, false},
		"both":          {append(calm.runs(nil, 2, 200, 400, 800), slow...), 1.2, false},
		"all saturated": {slow, 3.6, true},
	} {
		plan, err := Make(c.runs, Options{Pods: 1600})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.figure(t, rolloutTime).Model[0].Value; math.Abs(got/c.factor-1) > 0.01 {
			t.Errorf("%s: rollouts take %v times as long as their limit, want %v", name, got, c.factor)
		}
		if said := strings.Contains(fmt.Sprint(plan.Doubts), "saturated"); said != c.said {
			t.Errorf("%s: doubts are %v", name, plan.Doubts)
		}
	}
}
