package measure

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/record"
)

// stored returns the log of samples of a new record.
func stored(t *testing.T) (*record.Writer, *record.SampleLog) {
	t.Helper()
	w, err := record.Create(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, w.Samples()
}

// paced returns a source with one reading per second. The first is at begin.
func paced(id string, begin time.Time, readings int) *counted {
	c := &counted{id: id, started: begin.Add(-1500 * time.Millisecond)}
	for i := range readings {
		c.readings = append(c.readings, Reading{
			At: begin.Add(time.Duration(i)*time.Second + 123*time.Nanosecond), CPU: time.Duration(i*i)*time.Millisecond + 7, Waited: time.Duration(i%3) * 30 * time.Millisecond * time.Duration(i),
			Resident: int64(1000 + i%7), Peak: int64(1000 + min(i, 6)), Threads: 3 + i%2, Files: 4,
		})
	}
	return c
}

// A sampler with a store has the same figures as one that keeps all in memory, holds few
// readings, and what it wrote gives the same figures when it is read.
func TestStoredSamplerHasTheSameFigures(t *testing.T) {
	w, log := stored(t)
	begin := time.Now()
	inMemory, kept := NewSampler(0), NewStoredSampler(0, log)
	const first, second = 300, 200
	restart := begin.Add(first * time.Second)
	for _, s := range []*Sampler{inMemory, kept} {
		one, other := paced("one", begin, first), paced("other", begin, first+second)
		for _, watch := range []struct {
			name string
			src  Source
		}{{"it", one}, {"beside", other}} {
			if err := s.Watch(watch.name, watch.src); err != nil {
				t.Fatal(err)
			}
		}
		read := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if err := errors.Join(s.readHere(), s.flush(time.Now(), false)); err != nil {
				t.Fatal(err)
			}
		}
		for range first - 1 {
			read()
		}
		// The first life ends, with more processor time than was read.
		s.mu.Lock()
		s.end("it", s.tracks["it"], restart.Add(-500*time.Millisecond))
		s.mu.Unlock()
		one.exit = 100 * time.Second
		s.Ended("it", one)
		if err := s.Watch("it", paced("two", restart.Add(2*time.Second), second)); err != nil {
			t.Fatal(err)
		}
		for range second - 1 {
			read()
		}
	}
	for name, track := range kept.tracks {
		for i, l := range track.lives {
			if len(l.readings) > 2*resident {
				t.Errorf("life %d of %s has %d readings in memory", i, name, len(l.readings))
			}
		}
	}
	path := &record.Run{Dir: w.Dir()}
	history, err := ReadHistory(path.Samples, 0)
	if err != nil {
		t.Fatal(err)
	}
	offset := history.base.Sub(kept.base.Round(0)) // of wall clocks
	for _, name := range []string{"it", "beside"} {
		// None ends at the last reading: the wall clock, which a history is read by, and the
		// monotonic one are not read at the same nanosecond.
		for _, window := range [][2]float64{{0.001, 497.9}, {0.5, 1}, {100.25, 280.75}, {290, 310}, {310, 450}, {3, 299.4}} {
			from, to := begin.Add(seconds(window[0])), begin.Add(seconds(window[1]))
			want, err := inMemory.Figures(name, from, to)
			if err != nil {
				t.Fatal(name, window, err)
			}
			got, err := kept.Figures(name, from, to)
			if err != nil {
				t.Fatal(name, window, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s in %v: (-in memory +stored)\n%s", name, window, diff)
			}
			read, err := history.Figures(name, from.Round(0).Add(offset), to.Round(0).Add(offset))
			if err != nil {
				t.Fatal(name, window, err)
			}
			if math.Abs(read.CPUSeconds-want.CPUSeconds) > 1e-4 || math.Abs(read.MemoryMean-want.MemoryMean) > 1e-6 || read.Restarts != want.Restarts {
				t.Errorf("%s in %v: read %+v, want %+v", name, window, read, want)
			}
		}
		if got, want := fmt.Sprint(kept.Live(name)), fmt.Sprint(inMemory.Live(name)); got != want {
			t.Errorf("%s uses %s now, want %s", name, got, want)
		}
	}
}

// What cannot be written stays in memory until it can.
func TestStoredSamplerReportsWhatItCannotWrite(t *testing.T) {
	_, log := stored(t)
	w, err := record.Create(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil { // no file of it can be written now
		t.Fatal(err)
	}
	s := NewStoredSampler(0, log)
	if err := s.Watch("it", paced("one", time.Now(), 500)); err != nil {
		t.Fatal(err)
	}
	s.store = w.Samples()
	for range 3 * resident {
		if _, err := s.Edge(); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("error %v, want %v", err, os.ErrClosed)
		}
	}
	if n := len(s.tracks["it"].lives[0].readings); n != 3*resident+1 {
		t.Errorf("%d readings are left, want all", n)
	}
	s.store = log
	edge(t, s)
	if n := len(s.tracks["it"].lives[0].readings); n > 2*resident {
		t.Errorf("%d readings are left after they were written", n)
	}
}

func TestReadHistoryRefuses(t *testing.T) {
	zero := 0.0
	for want, samples := range map[string][]record.Sample{
		"a time of 1e+300 s":                 {{At: 1e300}},
		"a time of NaN s":                    {{At: math.NaN()}},
		"life 1 of 1: its start is missing":  {{Components: []record.ComponentRead{{Name: "x", Started: &zero}, {Name: "x", Life: 1}}}},
		"life 0 of 0: its start is missing":  {{Components: []record.ComponentRead{{Name: "x"}}}},
		"life -1 of 1: its start is missing": {{Components: []record.ComponentRead{{Name: "x", Started: &zero}, {Name: "x", Life: -1}}}},
		"0.000 s after one of a later time":  {{Components: []record.ComponentRead{{Name: "x", Started: &zero, At: 1}, {Name: "x"}}}},
		`component "x": a time of -1e+300 s`: {{Components: []record.ComponentRead{{Name: "x", Started: &zero, CPUSeconds: -1e300}}}},
	} {
		_, err := ReadHistory(func(take func(record.Sample) error) error {
			for _, s := range samples {
				if err := take(s); err != nil {
					return err
				}
			}
			return nil
		}, 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Records come from elsewhere; a run's own samples have no limit.
func TestReadHistoryIsBounded(t *testing.T) {
	zero := 0.0
	many := func(take func(record.Sample) error) error {
		s := record.Sample{Components: []record.ComponentRead{{Name: "x", Started: &zero}}}
		for len(s.Components) < 1000 {
			s.Components = append(s.Components, record.ComponentRead{Name: "x"})
		}
		if err := take(s); err != nil {
			return err
		}
		s.Components = s.Components[1:]
		for range maxReadings / 999 {
			if err := take(s); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := ReadHistory(many, 0); err == nil || !strings.Contains(err.Error(), "more than 4194304 readings") {
		t.Errorf("got %v", err)
	}
	if _, err := readHistory(many, 0, time.Time{}, 0); err != nil {
		t.Error(err)
	}
}

// What Live costs does not grow with the length of a run.
func BenchmarkLive(b *testing.B) {
	for _, length := range []int{100, 100_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			s := NewSampler(0)
			if err := s.Watch("it", paced("one", time.Now(), length)); err != nil {
				b.Fatal(err)
			}
			for range length - 1 {
				if err := s.readHere(); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for b.Loop() {
				s.Live("it")
			}
		})
	}
}

// What is late survives in the store, and makes saturation where time is slowed down.
func TestStoredSamplerKeepsWhatIsLate(t *testing.T) {
	_, log := stored(t)
	s := NewStoredSampler(0, log)
	s.SlowDown(4)
	begin := time.Now()
	src := &counted{id: "one", started: begin.Add(-time.Second)}
	const n = 3 * resident
	for i := range n {
		src.readings = append(src.readings, Reading{At: begin.Add(time.Duration(i) * time.Second), Waited: time.Duration(i) * 900 * time.Millisecond, Late: time.Duration(i) * 300 * time.Millisecond})
	}
	if err := s.Watch("it", src); err != nil {
		t.Fatal(err)
	}
	for range n - 1 {
		edge(t, s)
	}
	if s.tracks["it"].lives[0].dropped == 0 {
		t.Fatal("all readings are in memory")
	}
	u, err := s.Figures("it", begin, begin.Add((n-1)*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if !near(*u.Saturation, 0.3) {
		t.Errorf("saturation %g, want 0.3", *u.Saturation)
	}
}
