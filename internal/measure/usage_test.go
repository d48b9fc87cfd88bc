package measure

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// at returns the moment s seconds after epoch.
func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// look returns a reading at t: processor time and delays in seconds, memory in bytes.
func look(t, cpu, waited float64, resident, peak int64) Reading {
	return Reading{At: at(t), CPU: seconds(cpu), Waited: seconds(waited), Resident: resident, Peak: peak, Threads: 5, Files: 7}
}

func TestUsage(t *testing.T) {
	steady := []life{{started: at(-100), readings: []Reading{
		look(0, 50, 1, 100, 900), look(1, 50.5, 1, 100, 900), look(2, 51, 1, 100, 900), look(3, 51.5, 1, 100, 900), look(4, 52, 1, 100, 900),
	}}}
	burst := []life{{started: at(-1), readings: []Reading{
		look(0, 0, 0, 100, 100), look(1, 2, 0.5, 300, 300), look(2, 2.1, 3.5, 300, 700), look(4, 2.3, 3.51, 100, 700),
	}}}
	restarted := []life{
		{started: at(-10), ended: at(2.5), readings: []Reading{look(0, 10, 0, 400, 400), look(2, 12, 0, 400, 400), look(2.5, 13, 0, 400, 400)}},
		{started: at(3), readings: []Reading{look(4, 0.25, 0, 200, 250), look(6, 0.75, 0, 200, 250)}},
	}
	deaf := []life{{started: at(-1), readings: []Reading{
		{At: at(0), Waited: -1}, {At: at(2), CPU: seconds(1), Waited: -1},
	}}}
	for _, test := range []struct {
		name     string
		lives    []life
		from, to float64
		want     Usage
	}{
		{"steady load at readings", steady, 1, 3, Usage{
			CPUSeconds: 1, CoresMean: 0.5, CoresPeak: 0.5, MemoryMean: 100, MemoryPeak: 100, MemoryEnd: 100,
			Saturation: new(0.0), ThreadsPeak: 5, OpenFilesPeak: 7}},
		{"steady load between readings", steady, 0.5, 3.75, Usage{
			CPUSeconds: 1.625, CoresMean: 0.5, CoresPeak: 0.5, MemoryMean: 100, MemoryPeak: 100, MemoryEnd: 100,
			Saturation: new(0.0), ThreadsPeak: 5, OpenFilesPeak: 7}},
		{"window shorter than a second", steady, 0.25, 0.75, Usage{
			CPUSeconds: 0.25, CoresMean: 0.5, CoresPeak: 0.5, MemoryMean: 100, MemoryPeak: 100, MemoryEnd: 100,
			Saturation: new(0.0)}},
		// Memory: 200 for 1 s, 300 for 1 s, 200 for 2 s. Saturation: half of the
		// first second, all of the second, noise in the last two.
		{"burst", burst, 0, 4, Usage{
			CPUSeconds: 2.3, CoresMean: 0.575, CoresPeak: 2, MemoryMean: 225, MemoryPeak: 700, MemoryEnd: 100,
			Saturation: new(1.5 / 4), ThreadsPeak: 5, OpenFilesPeak: 7}},
		{"high-water mark of an interval that began before", burst, 1.5, 4, Usage{
			CPUSeconds: 0.25, CoresMean: 0.1, CoresPeak: 0.1, MemoryMean: (150 + 400) / 2.5, MemoryPeak: 300, MemoryEnd: 100,
			Saturation: new(0.5 / 2.5), ThreadsPeak: 5, OpenFilesPeak: 7}},
		// 3 s in the first life, 0.5 s in the second until 5; 2 cores over the
		// half second before the death make 1.5 over the best whole one.
		{"restart", restarted, 0, 5, Usage{
			CPUSeconds: 3.5, CoresMean: 0.7, CoresPeak: 1.5, MemoryMean: (400*2.5 + 200*2) / 4.5, MemoryPeak: 400, MemoryEnd: 200,
			Saturation: new(0.0), Restarts: 1, ThreadsPeak: 5, OpenFilesPeak: 7}},
		{"dead at the end", restarted[:1], 1, 3, Usage{
			CPUSeconds: 2, CoresMean: 1, CoresPeak: 1.5, MemoryMean: 400, MemoryPeak: 400, MemoryEnd: 0,
			Saturation: new(0.0), ThreadsPeak: 5, OpenFilesPeak: 7}},
		{"after the restart", restarted, 4, 6, Usage{
			CPUSeconds: 0.5, CoresMean: 0.25, CoresPeak: 0.25, MemoryMean: 200, MemoryPeak: 200, MemoryEnd: 200,
			Saturation: new(0.0), ThreadsPeak: 5, OpenFilesPeak: 7}},
		{"no run delays kept", deaf, 0, 2, Usage{CPUSeconds: 1, CoresMean: 0.5, CoresPeak: 0.5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := usage(test.lives, at(test.from), at(test.to), peakWindow, false)
			if err != nil {
				t.Fatal(err)
			}
			if !sameUsage(got, test.want) {
				t.Errorf("got  %+v, saturation %v\nwant %+v, saturation %v", got, show(got.Saturation), test.want, show(test.want.Saturation))
			}
		})
	}
}

func TestUsageNotCovered(t *testing.T) {
	alive := []life{{started: at(-10), readings: []Reading{look(0, 1, 0, 1, 1), look(2, 2, 0, 1, 1)}}}
	for _, test := range []struct {
		name     string
		lives    []life
		from, to float64
	}{
		{"nothing watched", nil, 0, 1},
		{"empty window", alive, 1, 1},
		{"window backwards", alive, 2, 1},
		{"before watching began", alive, -1, 1},
		{"no reading after the end", alive, 1, 2.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := usage(test.lives, at(test.from), at(test.to), peakWindow, false); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
		})
	}
}

// Windows that adjoin must add up to the whole, wherever they are cut.
func TestUsageAddsUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		l := life{started: at(-1)}
		moment, cpu, waited := 0.0, 1.0, 0.0
		for range 20 {
			l.readings = append(l.readings, look(moment, cpu, waited, rng.Int64N(1000), 1000))
			moment += 0.1 + rng.Float64()
			cpu += rng.Float64()
			waited += rng.Float64() / 3
		}
		end := l.last().At.Sub(epoch).Seconds()
		cut := rng.Float64() * end
		whole, err := usage([]life{l}, at(0), at(end), peakWindow, false)
		if err != nil {
			t.Fatal(err)
		}
		var cpuSum, memorySum, waitSum float64
		for _, window := range [][2]float64{{0, cut}, {cut, end}} {
			part, err := usage([]life{l}, at(window[0]), at(window[1]), peakWindow, false)
			if err != nil {
				t.Fatal(err)
			}
			length := window[1] - window[0]
			cpuSum += part.CPUSeconds
			memorySum += part.MemoryMean * length
			waitSum += *part.Saturation * length
			if part.CoresPeak < part.CoresMean || part.MemoryPeak < part.MemoryMean-1e-6 {
				t.Errorf("a peak is below its mean: %+v", part)
			}
		}
		if !near(cpuSum, whole.CPUSeconds) || !near(memorySum/end, whole.MemoryMean) || !near(waitSum/end, *whole.Saturation) {
			t.Errorf("parts: %v s, %v bytes, %v; whole: %+v, %v", cpuSum, memorySum/end, waitSum/end, whole, *whole.Saturation)
		}
	}
}

func sameUsage(a, b Usage) bool {
	if (a.Saturation == nil) != (b.Saturation == nil) || a.Saturation != nil && !near(*a.Saturation, *b.Saturation) {
		return false
	}
	return near(a.CPUSeconds, b.CPUSeconds) && near(a.CoresMean, b.CoresMean) && near(a.CoresPeak, b.CoresPeak) &&
		near(a.MemoryMean, b.MemoryMean) && near(a.MemoryPeak, b.MemoryPeak) && near(a.MemoryEnd, b.MemoryEnd) &&
		a.Restarts == b.Restarts && a.ThreadsPeak == b.ThreadsPeak && a.OpenFilesPeak == b.OpenFilesPeak && a.Heap == b.Heap
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

func show(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// Time is slowed down in no window that lies in one in which it was not.
func TestSlowedWindows(t *testing.T) {
	s := NewSampler(0)
	s.SlowDown(4)
	s.RealTime(at(10), at(20))
	for _, w := range []struct {
		from, to float64
		want     bool
	}{{10, 20, false}, {12, 13, false}, {0, 10, true}, {9, 15, true}, {15, 21, true}, {20, 30, true}} {
		if got := s.slowed(at(w.from), at(w.to)); got != w.want {
			t.Errorf("in [%g, %g) time is slowed down: %v, want %v", w.from, w.to, got, w.want)
		}
	}
}

// Where time is slowed down saturation is made of what is late, in real time of all waiting.
func TestUsageSlowed(t *testing.T) {
	lives := []life{{started: at(-1), readings: []Reading{
		look(0, 0, 0, 1, 1), look(1, 0.25, 0.75, 1, 1), look(2, 0.25, 1.25, 1, 1), look(4, 1.25, 4.25, 1, 1),
	}}}
	for i, late := range []float64{0, 0, 0.5, 0.51} {
		lives[0].readings[i].Late = seconds(late)
	}
	for _, test := range []struct {
		slowed bool
		want   float64
	}{
		// Each second: 0.75, 0.5 and twice more than all of it.
		{false, (0.75 + 0.5 + 2) / 4},
		// Half of the second one, and noise in the last two.
		{true, 0.5 / 4},
	} {
		got, err := usage(lives, at(0), at(4), peakWindow, test.slowed)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(*got.Saturation-test.want) > 1e-9 {
			t.Errorf("slowed down %v: saturation %g, want %g", test.slowed, *got.Saturation, test.want)
		}
		if math.Abs(*got.Waited-4.25) > 1e-9 {
			t.Errorf("slowed down %v: waited %g, want 4.25", test.slowed, *got.Waited)
		}
	}
	lives[0].limits = NewProcessorLimits(2)
	lives[0].limits.change(at(-2), 0.5) // half a processor in the last stretch, and less before
	if got, err := usage(lives, at(0), at(4), peakWindow, false); err != nil || math.Abs(*got.Saturation-(0.75+0.5)/4) > 1e-9 || math.Abs(*got.Waited-4.25) > 1e-9 {
		t.Errorf("of a limit that it uses in the last two seconds: saturation %v, waited %v (%v)", show(got.Saturation), show(got.Waited), err)
	}
	lives[0].readings[3].Late = -1
	if got, err := usage(lives, at(0), at(4), peakWindow, true); err != nil || got.Saturation != nil {
		t.Errorf("what is late is not known, and saturation is %v (%v)", show(got.Saturation), err)
	}
}
