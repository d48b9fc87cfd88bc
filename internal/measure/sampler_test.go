package measure

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/test/leak"
)

func TestMain(m *testing.M) {
	// Ginkgo never ends the goroutine that waits for interrupts.
	leak.Main(m, goleak.IgnoreAnyFunction("github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts.func2"))
}

// burn uses processor time of this process until it has used d by the clock
// of the process.
func burn(t *testing.T, d time.Duration) {
	t.Helper()
	start := ownCPU(t)
	for x := 0.0; ownCPU(t)-start < d; {
		for range 10_000 {
			x = math.Sqrt(x + 1)
		}
		runtime.KeepAlive(x)
	}
}

// ownCPU returns the processor time by getrusage(2), independently of the sampler.
func ownCPU(t *testing.T) time.Duration {
	t.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func edge(t *testing.T, s *Sampler) time.Time {
	t.Helper()
	at, err := s.Edge()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestSamplerOnItself(t *testing.T) {
	s := NewSampler(20 * time.Millisecond)
	if err := s.Watch("self", Self()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	before, from := ownCPU(t), edge(t, s)
	burn(t, 300*time.Millisecond)
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	to, after := edge(t, s), ownCPU(t)
	runtime.KeepAlive(block)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if cores, memory, ok := s.Live("self"); !ok || cores <= 0 || memory < 64<<20 {
		t.Errorf("live: %v cores, %v bytes, %v", cores, memory, ok)
	}
	if _, _, ok := s.Live("unknown"); ok {
		t.Error("live figures of what was never watched")
	}
	u, err := s.Figures("self", from, to)
	if err != nil {
		t.Fatal(err)
	}
	if want := (after - before).Seconds(); math.Abs(u.CPUSeconds-want) > 0.02*want+0.005 {
		t.Errorf("%v CPU seconds, getrusage says %v", u.CPUSeconds, want)
	}
	if u.MemoryPeak < 64<<20 || u.MemoryMean > u.MemoryPeak || u.MemoryEnd > u.MemoryPeak {
		t.Errorf("memory: mean %v, peak %v, end %v; want a peak of 64 MiB and more", u.MemoryMean, u.MemoryPeak, u.MemoryEnd)
	}
	if u.Saturation == nil || *u.Saturation < 0 || *u.Saturation > 1 {
		t.Errorf("saturation %v, want 0 to 1", show(u.Saturation))
	}
	if u.ThreadsPeak < 2 || u.OpenFilesPeak < 3 || u.Restarts != 0 || u.Heap != nil {
		t.Errorf("figures %+v", u)
	}
}

// computed waits until a process has used so much processor time.
func computed(t *testing.T, src Source, d time.Duration) {
	t.Helper()
	for {
		r, err := src.Read()
		if err != nil {
			t.Fatal(err)
		}
		if r.CPU >= d {
			return
		}
		runtime.Gosched()
	}
}

// spin starts a child that computes until it is killed, and returns what ends
// it and states how much processor time it used.
func spin(t *testing.T) (src Source, end func() float64) {
	t.Helper()
	group, err := process.OpenGroup(t.TempDir(), process.GroupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = group.Stop(context.Background()) })
	child, err := group.Start(process.Spec{Name: "spin", Path: "/bin/sh", Args: []string{"-c", "while :; do :; done"}})
	if err != nil {
		t.Fatal(err)
	}
	return OfProcess(child.Handle()), func() float64 {
		child.Kill()
		<-child.Done()
		used, _ := child.Handle().ExitCPU()
		return used.Seconds()
	}
}

func TestSamplerThroughARestart(t *testing.T) {
	s := NewSampler(0)
	from := edge(t, s)
	var want float64
	for range 3 {
		src, end := spin(t)
		if err := s.Watch("spin", src); err != nil {
			t.Fatal(err)
		}
		computed(t, src, 50*time.Millisecond)
		used := end()
		edge(t, s) // finds it gone
		s.Ended("spin", src)
		want += used
	}
	u, err := s.Figures("spin", from, edge(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(u.CPUSeconds-want) > 0.001 {
		t.Errorf("%v CPU seconds, the kernel accounted %v at their ends", u.CPUSeconds, want)
	}
	if u.Restarts != 2 || u.MemoryEnd != 0 || u.MemoryMean == 0 {
		t.Errorf("got %+v; want 2 restarts, no memory at the end, some before", u)
	}
}

// counted is a source of another kind than a process: its readings are given.
type counted struct {
	id       string
	started  time.Time
	readings []Reading
	exit     time.Duration
}

func (c *counted) ID() string                     { return c.id }
func (c *counted) Started() (time.Time, error)    { return c.started, nil }
func (c *counted) ExitCPU() (time.Duration, bool) { return c.exit, c.exit > 0 }
func (c *counted) Read() (Reading, error) {
	if len(c.readings) == 0 {
		return Reading{}, ErrEnded
	}
	r := c.readings[0]
	c.readings = c.readings[1:]
	return r, nil
}

func TestSamplerOnAnySource(t *testing.T) {
	s := NewSampler(0)
	first := &counted{id: "first", started: at(0), readings: []Reading{look(1, 1, 0, 100, 100), look(2, 2, 0, 100, 100)}}
	if err := s.Watch("it", first); err != nil {
		t.Fatal(err)
	}
	edge(t, s)
	edge(t, s) // finds the first ended
	if _, _, running := s.Live("it"); running {
		t.Error("the first life goes on after ErrEnded")
	}
	first.exit = 4 * time.Second
	s.Ended("it", &counted{id: "other"})
	s.Ended("it", first)
	now := time.Now()
	second := &counted{id: "second", started: now, readings: []Reading{{At: now.Add(time.Second), CPU: time.Second, Waited: -1}}}
	if err := s.Watch("it", second); err != nil {
		t.Fatal(err)
	}
	u, err := s.Figures("it", at(0), now.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(u.CPUSeconds-5) > 0.01 || u.Restarts != 1 || u.Saturation != nil {
		t.Errorf("got %+v, want 5 CPU seconds, of both lives, one restart and no saturation", u)
	}
}

// What a component waited since a moment is that of its readings, as saturation counts it; that of a group is the sum.
func TestLate(t *testing.T) {
	s := NewSampler(0)
	for name, waited := range map[string][3]float64{"a": {0, 0.5, 0.6}, "b": {0, 1.5, 1.51}} { // in the second second b waits for less than what is noise
		if err := s.Watch(name, &counted{id: name, started: at(0), readings: []Reading{look(1, 1, waited[0], 100, 100), look(2, 2, waited[1], 100, 100), look(3, 3, waited[2], 100, 100)}}); err != nil {
			t.Fatal(err)
		}
		s.Join("both", name)
	}
	edge(t, s)
	edge(t, s)
	for name, want := range map[string][2]float64{"a": {0.6, 0.1}, "b": {1, 0}, "both": {1.6, 0.1}} {
		for i, since := range []float64{1, 2} {
			late, until, ok := s.Late(name, at(since))
			if !ok || !until.Equal(at(3)) || math.Abs(late.Seconds()-want[i]) > 1e-6 {
				t.Errorf("%s since %g: %s until %s, %v, want %g s", name, since, late, until, ok, want[i])
			}
		}
		if _, _, ok := s.Late(name, at(3)); ok {
			t.Errorf("%s: something is known after the last reading", name)
		}
	}
	if _, _, ok := s.Late("c", at(1)); ok {
		t.Error("something is known of what is not watched")
	}
}

func TestSamplerKeepsTheLastReadingOfTheDead(t *testing.T) {
	s := NewSampler(0)
	src, end := spin(t)
	if err := s.Watch("spin", src); err != nil {
		t.Fatal(err)
	}
	from := edge(t, s)
	computed(t, src, 50*time.Millisecond)
	to := edge(t, s)
	before, err := s.Figures("spin", from, to)
	if err != nil {
		t.Fatal(err)
	}
	end()
	after, err := s.Figures("spin", from, edge(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if after.CPUSeconds < before.CPUSeconds || before.CPUSeconds == 0 {
		t.Errorf("%v CPU seconds, then %v when dead", before.CPUSeconds, after.CPUSeconds)
	}
}

func TestSamplerErrors(t *testing.T) {
	s := NewSampler(0)
	src, end := spin(t)
	end()
	if err := s.Watch("dead", src); !errors.Is(err, ErrEnded) {
		t.Errorf("watching a dead process: %v, want ErrEnded", err)
	}
	if _, err := s.Figures("unknown", at(0), at(1)); err == nil {
		t.Error("figures of what was never watched: want an error")
	}
	s.Ended("unknown", src)
	if err := s.Watch("self", Self()); err != nil {
		t.Error(err)
	}
	if err := s.Watch("self", Self()); err != nil {
		t.Error(err)
	}
	if n := len(s.tracks["self"].lives); n != 1 {
		t.Errorf("watching the same process twice made %d lives", n)
	}
}

// The three ways to a process's time must agree within their resolution.
func TestKeepsDelays(t *testing.T) {
	for name, c := range map[string]struct {
		ran  uint64
		used time.Duration
		want bool
	}{
		"kept":                    {1000, time.Microsecond, true},
		"not kept":                {0, time.Microsecond, false},
		"the process has not run": {0, 0, true},
	} {
		if got := keepsDelays(c.ran, c.used); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestProcessClock(t *testing.T) {
	burn(t, 50*time.Millisecond)
	src := Self().(*processSource)
	started, err := src.Started()
	if err != nil {
		t.Fatal(err)
	}
	r, err := src.Read()
	if err != nil {
		t.Fatal(err)
	}
	stat, err := src.proc.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if d := r.CPU.Seconds() - stat.CPUTime(); math.Abs(d) > 0.03 {
		t.Errorf("clock %v, /proc/PID/stat %v", r.CPU.Seconds(), stat.CPUTime())
	}
	if age := time.Since(started); age <= 0 || age > time.Hour || r.At.Before(started) {
		t.Errorf("this process would be %s old", age)
	}
}

func BenchmarkReadProcess(b *testing.B) {
	src := Self()
	for b.Loop() {
		if _, err := src.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// The moments of edges are those of the samples that a scrape gets, one at each.
func TestEdgesAreExported(t *testing.T) {
	s := NewSampler(0)
	if err := s.Watch("self", Self()); err != nil {
		t.Fatal(err)
	}
	want := []time.Time{edge(t, s)}
	if next := edge(t, s); next.Sub(want[0]) > sameEdge { // the next phase's, unless we did not get to run
		want = append(want, next)
	}
	burn(t, 2*sameEdge)
	want = append(want, edge(t, s))
	for i, at := range want {
		got := s.next()
		if !got.at.Equal(at) || len(got.all) != 1 || got.all[0].name != "self" || got.all[0].cpu <= 0 {
			t.Errorf("scrape %d gets %+v, want the edge of %v", i, got, at)
		}
	}
	begin := time.Now()
	if got := s.next(); got.at.Before(begin) {
		t.Errorf("a scrape after all edges gets what was read at %v, before %v", got.at, begin)
	}
}

// elsewhere is a remote source whose readings are let through one by one.
type elsewhere struct {
	counted
	reading chan struct{} // receives when one has begun
	through chan struct{} // lets it end
}

func (e *elsewhere) Remote() bool { return true }

func (e *elsewhere) Read() (Reading, error) {
	if e.reading != nil {
		e.reading <- struct{}{}
		<-e.through
	}
	return e.counted.Read()
}

// While another machine lets a reading wait, nothing else does: scrapes and Live go on, and an
// edge is the moment at which it was asked for.
func TestSamplerDoesNotWaitForAnotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		here := paced("here", began, 10)
		far := &elsewhere{counted: *paced("far", began, 10)}
		s := NewSampler(0)
		for name, src := range map[string]Source{"here": here, "far": Sum(far, paced("child", began, 10))} {
			if err := s.Watch(name, src); err != nil {
				t.Fatal(err)
			}
		}
		far.reading, far.through = make(chan struct{}), make(chan struct{})
		<-time.After(3 * time.Second)
		asked := time.Now()
		edge := make(chan time.Time)
		go func() {
			at, err := s.Edge()
			if err != nil {
				t.Error(err)
			}
			edge <- at
		}()
		<-far.reading
		left := len(here.readings)
		if got := s.next(); len(got.all) != 2 || len(here.readings) != left-1 {
			t.Errorf("a scrape handed on %+v, and left %d of %d readings of this machine", got.all, len(here.readings), left)
		}
		s.Live("far")
		<-time.After(2 * time.Second)
		far.through <- struct{}{}
		if at := <-edge; !at.Equal(asked) {
			t.Errorf("the edge is %v after it was asked for", at.Sub(asked))
		}
		if got := len(s.tracks["far"].lives[0].readings); got != 2 {
			t.Errorf("%d readings of the other machine, want 2: of Watch and of the edge", got)
		}
	})
}
