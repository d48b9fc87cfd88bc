package measure

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// planned uses processor time by a plan.
type planned struct {
	begin time.Time
	used  func(since time.Duration) time.Duration
	ended time.Duration // after which it cannot be read; 0 = never
}

func (p *planned) ID() string                     { return p.begin.String() }
func (p *planned) Started() (time.Time, error)    { return p.begin.Add(-time.Second), nil }
func (p *planned) ExitCPU() (time.Duration, bool) { return 0, false }

func (p *planned) Read() (Reading, error) {
	at, cpu, err := p.ReadCPU()
	return Reading{At: at, CPU: cpu}, err
}

func (p *planned) ReadCPU() (time.Time, time.Duration, error) {
	at := time.Now()
	since := at.Sub(p.begin)
	if p.ended > 0 && since >= p.ended {
		return time.Time{}, 0, ErrEnded
	}
	return at, p.used(since), nil
}

// burst uses cores from one moment to another, and nothing otherwise.
func burst(cores float64, from, to time.Duration) func(time.Duration) time.Duration {
	return func(since time.Duration) time.Duration {
		return time.Duration(cores * float64(min(max(since, from), to)-from))
	}
}

// run does something while s reads.
func run(t *testing.T, s *Sampler, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	do()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBriefPeaks(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name         string
		used         func(time.Duration) time.Duration
		slowdown     float64
		ended        time.Duration
		second       float64 // peak of a second, of the window
		first, later *float64
	}{
		{name: "steady", used: burst(0.5, 0, time.Hour), second: 0.5, first: new(0.5), later: new(0.5)},
		{name: "a burst of 100 ms", used: burst(2, 1000*ms, 1100*ms), second: 0.2, first: new(2.0), later: new(0.0)},
		{name: "a burst across two intervals", used: burst(2, 1050*ms, 1150*ms), second: 0.2, first: new(1.0), later: new(0.0)},
		{name: "a burst in the second window", used: burst(4, 3080*ms, 3180*ms), second: 0, first: new(0.0), later: new(4.0)},
		// The interval before the edge at 2.98 s is cut off, the one after it begins there.
		{name: "a burst before and after the edge", used: burst(2, 2950*ms, 3050*ms), second: 0.06, first: new(0.0), later: new(1.4)},
		{name: "time slowed down by 4", used: burst(2, 1200*ms, 1400*ms), slowdown: 4, second: 0.4, first: new(1.0), later: new(0.0)},
		{name: "ended in the first window", used: burst(1, 0, time.Hour), ended: 2 * time.Second, second: 1, first: new(1.0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewSampler(time.Second)
				s.SlowDown(max(1, test.slowdown))
				s.WatchBriefly("a")
				for _, name := range []string{"a", "other"} {
					if err := s.Watch(name, &planned{time.Now(), test.used, test.ended}); err != nil {
						t.Fatal(err)
					}
				}
				edges := []time.Time{edge(t, s)}
				run(t, s, func() {
					<-time.After(2980 * ms)
					edges = append(edges, edge(t, s))
					<-time.After(2 * time.Second)
					edges = append(edges, edge(t, s))
				})
				for i, want := range []*float64{test.first, test.later} {
					u, err := s.Figures("a", edges[i], edges[i+1])
					if err != nil {
						t.Fatal(err)
					}
					if got := u.CoresPeakBrief; (got == nil) != (want == nil) || got != nil && math.Abs(*got-*want) > 1e-9 {
						t.Errorf("window %d: got %v, want %v", i, show(got), show(want))
					}
					if i == 0 && test.ended == 0 && math.Abs(u.CoresPeak-test.second) > 1e-9 {
						t.Errorf("peak of a second %v, want %v", u.CoresPeak, test.second)
					}
				}
				if u, err := s.Figures("other", edges[0], edges[1]); err != nil || u.CoresPeakBrief != nil {
					t.Errorf("another program: %v, %v", u.CoresPeakBrief, err)
				}
			})
		})
	}
}
