package measure

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestUsageTogether(t *testing.T) {
	// Each is busy, and large, at another moment.
	a := []life{{started: at(-1), readings: []Reading{look(0, 0, 0, 100, 100), look(1, 1, 0, 300, 350), look(2, 1, 0, 100, 350)}}}
	b := []life{{started: at(-1), readings: []Reading{look(0, 0, 0, 100, 100), look(1, 0, 0, 100, 100), look(2, 1, 0.5, 300, 350)}}}
	gone := []life{{started: at(-1), ended: at(1), readings: []Reading{look(0, 1, 0, 500, 500), look(1, 2, 0, 500, 500)}}}
	late := []life{{started: at(1), readings: []Reading{look(1, 0, 0, 50, 50), look(2, 0.25, 0, 50, 50)}}}
	later := []life{{started: at(3), readings: []Reading{look(3, 0, 0, 50, 50)}}}
	for _, test := range []struct {
		name string
		all  [][]life
		want Usage
	}{
		{"one after the other", [][]life{a, b}, Usage{
			CPUSeconds: 2, CoresMean: 1, CoresPeak: 1, MemoryMean: 350, MemoryPeak: 400, MemoryEnd: 400,
			Saturation: new(0.25), ThreadsPeak: 10, OpenFilesPeak: 14}},
		{"one ends, one begins, one is not there yet", [][]life{gone, late, later}, Usage{
			CPUSeconds: 1.25, CoresMean: 0.625, CoresPeak: 1, MemoryMean: 275, MemoryPeak: 500, MemoryEnd: 50,
			Saturation: new(0.0), ThreadsPeak: 10, OpenFilesPeak: 14}},
	} {
		got, err := usageTogether(test.all, at(0), at(2), peakWindow, false)
		if err != nil {
			t.Fatal(err)
		}
		if !sameUsage(got, test.want) {
			t.Errorf("%s: got  %+v, saturation %v\nwant %+v, saturation %v", test.name, got, show(got.Saturation), test.want, show(test.want.Saturation))
		}
	}
	if _, err := usageTogether(nil, at(0), at(2), peakWindow, false); !errors.Is(err, ErrNotWatched) {
		t.Errorf("of nothing: %v, want that nothing was watched", err)
	}
}

// What the sampler says of a group is of its components together.
func TestSamplerOfAGroup(t *testing.T) {
	s := NewSampler(0)
	s.Join("both", "one")
	s.Join("both", "two")
	s.Join("both", "never") // started
	for _, name := range []string{"one", "two"} {
		if err := s.Watch(name, Self()); err != nil {
			t.Fatal(err)
		}
	}
	from := edge(t, s)
	burn(t, 20*time.Millisecond)
	to := edge(t, s)
	together, err := s.Figures("both", from, to)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, name := range []string{"one", "two"} {
		u, err := s.Figures(name, from, to)
		if err != nil {
			t.Fatal(err)
		}
		sum += u.CPUSeconds
	}
	if sum <= 0 || math.Abs(together.CPUSeconds-sum) > 1e-9 {
		t.Errorf("together they used %v s, one by one %v s", together.CPUSeconds, sum)
	}
	for _, total := range s.next().all {
		if total.name == "both" && (!total.running || total.cpu <= 0) {
			t.Errorf("the group has used %+v", total)
		}
	}
}
