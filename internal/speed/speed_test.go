package speed

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// Passes that take twice the processor time are of a processor of half the speed.
func TestSpeedOf(t *testing.T) {
	passes := make([]float64, 40)
	for i := range passes {
		passes[i] = 2 * PassSeconds
	}
	for i := range 4 {
		passes[i] = 4 * PassSeconds // the first part
	}
	got, err := speedOf(passes)
	if err != nil {
		t.Fatal(err)
	}
	want := record.Speed{Work: Work, Speed: 40.0 / 88, Low: 0.25, High: 0.5, CPUSeconds: 88 * PassSeconds}
	for _, v := range [][2]float64{{got.Speed, want.Speed}, {got.Low, want.Low}, {got.High, want.High}, {got.CPUSeconds, want.CPUSeconds}} {
		if math.Abs(v[0]-v[1]) > 1e-9 || got.Work != Work {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if _, err := speedOf(passes[:parts-1]); err == nil {
		t.Error("a speed of fewer passes than parts")
	}
	if _, err := speedOf(make([]float64, parts)); err == nil {
		t.Error("a speed of passes that took no time")
	}
}

// The work does what it says, and a speed follows from the processor time of its passes alone.
func TestDo(t *testing.T) {
	var ticks time.Duration
	got, err := do(0, func() (time.Duration, error) { ticks += 5 * time.Millisecond / 2; return ticks, nil })
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.Speed-2) > 1e-9 || got.Low != got.High {
		t.Errorf("passes of 5 ms are of speed %+v, want 2", got)
	}
	var out bytes.Buffer
	if err := Do(&out); err != nil {
		t.Fatal(err)
	}
	var real record.Speed
	if err := json.Unmarshal(out.Bytes(), &real); err != nil {
		t.Fatal(err)
	}
	if real.Work != Work || !(real.Low > 0) || real.Low > real.Speed || real.Speed > real.High || real.CPUSeconds <= 0 {
		t.Errorf("the speed of this machine is %+v", real)
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
