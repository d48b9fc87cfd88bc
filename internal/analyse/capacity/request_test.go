package capacity

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// cores parses an amount of processors as Kubernetes does.
func cores(t *testing.T, text string) float64 {
	t.Helper()
	number, milli := strings.CutSuffix(text, "m")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatalf("processors %q: %v", text, err)
	}
	if milli {
		v /= 1000
	}
	return v
}

// randomPlan plans for a random target from random runs.
func randomPlan(t *testing.T, random *rand.Rand) (*Plan, Options) {
	t.Helper()
	w := strict()
	if random.IntN(2) == 0 {
		w = permissive()
	}
	cost, cpu := 0.1+5*random.Float64(), w.cpu
	w.cpu = func(n float64) float64 { return 5 + cost*max(0, cpu(n)) }
	w.share, w.late = 0.1*random.Float64(), 2*random.Float64()
	runs := w.runs(random, 1+random.IntN(3), 200, 300, 400, 600, 800)
	peaks, churn := random.IntN(2) == 0, random.IntN(2) == 0
	busy := 4 * random.Float64()
	for i := range runs {
		r := &runs[i]
		pods := float64(r.PodCount()) / 800
		if peaks {
			r.ControlPlane.Rollout.Cores = &record.Level{Mean: new(pods), Peak100ms: new(2*pods + 1)}
		}
		if churn {
			r.ControlPlane.Churn = &record.Usage{Cores: &record.Level{Mean: new(busy * pods)}, MemoryBytes: r.ControlPlane.Rollout.MemoryBytes}
		}
	}
	o := Options{Pods: 200 + random.IntN(3000), Headroom: float64(random.IntN(3)) * 0.3, ReplicasMax: 1 + random.IntN(3)}
	if random.IntN(3) == 0 {
		o.Processors = 1 + random.IntN(8)
	}
	o.LimitProcessors = random.IntN(2) == 0
	if random.IntN(3) == 0 {
		o.Within = time.Duration(10+random.IntN(300)) * time.Second
	}
	plan, err := Make(runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return plan, o
}

// A request is never lower than the needs that the plan itself states, whatever was planned from and for.
func TestAdviceIsNotBelowTheNeed(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	for range 500 {
		plan, o := randomPlan(t, random)
		r := plan.Request
		_, need := plan.worst(func(s State) *Bounds { return s.Cores })
		need /= float64(r.Replicas)
		if got := cores(t, r.Resources.Requests.CPU); got < need*(1+o.Headroom) {
			t.Errorf("%+v: requests.cpu of %s, below the need of %.3f with headroom", o, r.Resources.Requests.CPU, need)
		}
		if float64(r.Processors) < need && r.Met {
			t.Errorf("%+v: GOMAXPROCS %d is called enough, below the need of %.3f", o, r.Processors, need)
		}
		if float64(r.Processors) < need*(1+o.Headroom) && (o.Processors == 0 && r.Met || plan.warningAbout("request.gomaxprocs", "plan for") == "") {
			t.Errorf("%+v: GOMAXPROCS %d, below the need of %.3f with headroom; warnings are %v", o, r.Processors, need, plan.Warnings)
		}
		if (r.Resources.Limits.CPU != "") != o.LimitProcessors {
			t.Errorf("%+v: limits.cpu %q", o, r.Resources.Limits.CPU)
		}
		if !o.LimitProcessors {
			continue
		}
		_, peak := plan.worst(func(s State) *Bounds { return s.PeakCores })
		if limit := cores(t, r.Resources.Limits.CPU); limit < max(peak, need*(1+o.Headroom), float64(r.Processors)) {
			t.Errorf("%+v: limits.cpu of %v, below a peak of %.3f, a need of %.3f or GOMAXPROCS %d", o, limit, peak, need, r.Processors)
		}
		if plan.warningAbout("request.resources.limits.cpu", "measured with 200 pods alone") == "" {
			t.Errorf("%+v: a limit is asked for as if what it costs was known: %v", o, plan.Warnings)
		}
	}
}

// A plan for other processors than the runs had says so, and one for the same does not.
func TestOtherProcessorsThanTheRuns(t *testing.T) {
	runs := strict().runs(nil, 2, 200, 400, 600, 800) // with 2
	for processors, other := range map[int]bool{1: true, 2: false, 4: true} {
		plan, err := Make(runs, Options{Pods: 1600, Processors: processors})
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.warningAbout("request.gomaxprocs", "the runs had GOMAXPROCS 2") != ""; got != other {
			t.Errorf("%d processors: warnings are %v", processors, plan.Warnings)
		}
	}
}

// What is used over 100 ms is forecast, and a plan for less says what that means.
func TestPeaksOf100ms(t *testing.T) {
	runs := strict().runs(nil, 2, 200, 400, 600, 800)
	for i := range runs {
		pods := float64(runs[i].PodCount())
		runs[i].ControlPlane.Rollout.Cores = &record.Level{Mean: new(0.67), Peak100ms: new(0.9 + pods/400)}
	}
	plan, err := Make(runs, Options{Pods: 1600, Processors: 2, LimitProcessors: true})
	if err != nil {
		t.Fatal(err)
	}
	if peak := plan.States[0].PeakCores; peak == nil || math.Abs(peak.Forecast-4.9) > 1e-6 {
		t.Errorf("the peak is %+v, want 4.9 cores", peak)
	}
	if r := plan.Request; r.Processors != 2 || r.Resources.Limits.CPU != "6" {
		t.Errorf("GOMAXPROCS %d with a limit of %s, want 2 and 6", r.Processors, r.Resources.Limits.CPU)
	}
	if plan.warningAbout("request.gomaxprocs", "over 100 ms up to 5.48 cores are used in rollout") == "" {
		t.Errorf("warnings are %v", plan.Warnings)
	}
}
