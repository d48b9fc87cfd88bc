package limits

import (
	"math/rand/v2"
	"testing"
)

// find follows Next to its end, with a limit up to and including which all is met.
func find(t *testing.T, s Scale, limit float64) (Bracket, []Try) {
	t.Helper()
	var tries []Try
	for range 200 {
		v, done := s.Next(tries)
		if done {
			return s.Bracket(tries), tries
		}
		for _, before := range tries {
			if before.Value == v {
				t.Fatalf("%+v: %v is tried twice: %v", s, v, tries)
			}
		}
		if v < s.Min || v > s.Max {
			t.Fatalf("%+v: %v is tried", s, v)
		}
		tries = append(tries, Try{v, !s.harder(v, limit)})
	}
	t.Fatalf("%+v: no end after %d tries", s, len(tries))
	return Bracket{}, nil
}

// Wherever the limit lies, it is in the bracket, whose ends differ by the resolution or
// by one step at most, in no more tries than were announced.
func TestSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, s := range []Scale{
		{Min: 0.1, Max: 1000, Start: 1, Resolution: 0.1, Harder: true},
		{Min: 10, Max: 5000, Start: 200, Resolution: 0.1, Step: 1, Harder: true},
		{Min: 64 << 20, Max: 16 << 30, Start: 512 << 20, Resolution: 0.1, Step: 1 << 20},
		{Min: 1, Max: 8, Start: 8, Resolution: 0.01, Step: 1},
		{Min: 1, Max: 2, Start: 2, Resolution: 0.1, Step: 1},
		{Min: 5, Max: 5, Start: 5, Resolution: 0.1, Harder: true},
	} {
		most := s.Most(nil)
		for range 40 {
			limit := s.Min/2 + random.Float64()*random.Float64()*s.Max*1.5
			b, tries := find(t, s, limit)
			for n := range tries {
				if left := s.Most(tries[:n]); len(tries)-n > left && n%3 == 1 {
					t.Errorf("%+v: %d tries after %v, %d were announced", s, len(tries)-n, tries[:n], left)
				}
			}
			if len(tries) > most {
				t.Errorf("%+v: %d tries for %v, %d were announced", s, len(tries), limit, most)
			}
			easiest, hardest := s.Min, s.Max
			if !s.Harder {
				easiest, hardest = s.Max, s.Min
			}
			switch {
			case s.harder(easiest, limit): // nothing is met
				if b.Passes != nil || b.Fails == nil || *b.Fails != easiest {
					t.Errorf("%+v, limit %v: %v", s, limit, tries)
				}
			case !s.harder(hardest, limit): // everything is
				if b.Fails != nil || b.Passes == nil || *b.Passes != hardest {
					t.Errorf("%+v, limit %v: %v", s, limit, tries)
				}
			default:
				if b.Passes == nil || b.Fails == nil || s.harder(*b.Passes, limit) || !s.harder(*b.Fails, limit) {
					t.Fatalf("%+v, limit %v: %+v", s, limit, tries)
				}
				low, high := min(*b.Passes, *b.Fails), max(*b.Passes, *b.Fails)
				if high > low*(1+s.Resolution)*(1+1e-6) && high-low > s.Step*(1+1e-6) {
					t.Errorf("%+v, limit %v: from %v to %v", s, limit, low, high)
				}
			}
		}
	}
}

// An objective that was met by chance beyond a value that missed it is not believed.
func TestBracketOfNoise(t *testing.T) {
	s := Scale{Min: 1, Max: 100, Harder: true}
	b := s.Bracket([]Try{{10, true}, {40, true}, {20, false}, {80, false}})
	if *b.Passes != 10 || *b.Fails != 20 {
		t.Errorf("from %v to %v, want 10 to 20", *b.Passes, *b.Fails)
	}
}
