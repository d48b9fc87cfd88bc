package speed

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// Samples that take twice the processor time are of a processor of half the speed.
func TestOf(t *testing.T) {
	all := make([]Sample, 40)
	for i := range all {
		all[i].CPU = 2 * passes * pass
	}
	for i := range 4 {
		all[i].CPU *= 2 // the first part
	}
	got, err := Of(all)
	if err != nil {
		t.Fatal(err)
	}
	want := record.Speed{Work: Work, Speed: 40.0 / 88, Low: 0.25, High: 0.5, CPUSeconds: 88 * passes * PassSeconds}
	for _, v := range [][2]float64{{got.Speed, want.Speed}, {got.Low, want.Low}, {got.High, want.High}, {got.CPUSeconds, want.CPUSeconds}} {
		if math.Abs(v[0]-v[1]) > 1e-9 || got.Work != Work {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	few, err := Of(all[3:8]) // one of the first part, and four
	if err != nil || few.Low != 0.25 || few.High != 0.5 || math.Abs(few.Speed-5.0/12) > 1e-9 {
		t.Errorf("of five samples: %+v, %v", few, err)
	}
	if _, err := Of(all[:least-1]); err == nil {
		t.Error("a speed of too few samples")
	}
	if _, err := Of(make([]Sample, parts)); err == nil {
		t.Error("a speed of samples that took no time")
	}
}

// pass is the processor time of a pass on the reference processor.
const pass = time.Duration(PassSeconds * 1e9)

// read returns the samples that a child prints, in pieces of a few bytes.
func read(t *testing.T, text []byte) (all []Sample) {
	t.Helper()
	l := &lines{took: func(s Sample) { all = append(all, s) }}
	for piece := range slices.Chunk(text, 3) {
		if _, err := l.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// The work does what it says, and a speed follows from the processor time of its samples alone.
func TestDo(t *testing.T) {
	var ticks time.Duration
	var out bytes.Buffer
	if err := do(&out, 0, 20, func() (time.Duration, error) { ticks += passes * pass / 2; return ticks, nil }); err != nil {
		t.Fatal(err)
	}
	all := read(t, out.Bytes())
	got, err := Of(all)
	if err != nil || len(all) != 20 || math.Abs(got.Speed-2) > 1e-9 || got.Low != got.High {
		t.Errorf("%d samples of half the time are of speed %+v, %v, want 2", len(all), got, err)
	}
	out.Reset()
	if err := Do(&out, 0, parts); err != nil {
		t.Fatal(err)
	}
	real, err := Of(read(t, out.Bytes()))
	if err != nil || real.Work != Work || !(real.Low > 0) || real.Low > real.Speed || real.Speed > real.High || real.CPUSeconds <= 0 {
		t.Errorf("the speed of this machine is %+v, %v", real, err)
	}
}

// What is no number ends the measurement.
func TestLines(t *testing.T) {
	l := &lines{took: func(Sample) { t.Error("a sample") }}
	if _, err := l.Write([]byte("12x\n13\n")); err == nil {
		t.Error("no error")
	}
}

// Another program than scaler is not started again.
func TestMeasureInAnotherProgram(t *testing.T) {
	if _, err := Measure(t.Context()); err != ErrOtherProgram {
		t.Errorf("%v, want %v", err, ErrOtherProgram)
	}
}

func BenchmarkPass(b *testing.B) {
	w, err := newWork()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := w.pass(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSteal(t *testing.T) {
	if got := Steal(Times{10, 100}, Times{30, 200}); math.Abs(got-0.2) > 1e-9 {
		t.Errorf("20 of 100 s are %g, want 0.2", got)
	}
	if got := Steal(Times{10, 100}, Times{10, 100}); got != 0 {
		t.Errorf("in no time %g was stolen", got)
	}
	from, err := ReadTimes()
	if err != nil {
		t.Fatal(err)
	}
	to, err := ReadTimes()
	if err != nil {
		t.Fatal(err)
	}
	if from.all <= 0 || to.all < from.all || from.steal > from.all {
		t.Errorf("this machine's processors did %+v, then %+v", from, to)
	}
}

// BenchmarkParts measures a pass and each of its parts. The ratio of two kinds of processors differs from part to part.
func BenchmarkParts(b *testing.B) {
	w, err := newWork()
	if err != nil {
		b.Fatal(err)
	}
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"pass", w.pass}, {"messages", w.exchange}, {"map", w.index}, {"objects", func() error { w.replaceSome(); return nil }}, {"handshakes", w.connect},
	} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				if err := part.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
