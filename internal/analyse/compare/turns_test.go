package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// inOrder gives runs the times of an order, as in ABBA.
func inOrder(order string, a, b []record.Run) {
	next := map[rune][]record.Run{'A': a, 'B': b}
	for i, side := range order {
		next[side][0].Started = time.Date(2026, 11, 21, 12, i, 0, 0, time.UTC)
		next[side] = next[side][1:]
	}
}

func TestInterleaved(t *testing.T) {
	for text, want := range map[string]bool{
		"ABABABABAB": true, "ABBAABBAAB": true, "ABBAABBA": true, "ABBABBABBABB": true,
		"AAAAABBBBB": false, "BBBBBAAAAA": false, "AABBAABB": false, "AABBBBAA": false, "ABAAAABBBB": false, "AAAAAA": false, "": false,
	} {
		if got := interleaved(text); got != want {
			t.Errorf("%q: interleaved %v", text, got)
		}
	}
	a, b := runs("a", 4, 1), runs("b", 4, 2)
	inOrder("ABBABAAB", a, b)
	if c := comparison(t, a, b, Options{}).Groups[0]; c.Order != "ABBABAAB" || !c.Interleaved {
		t.Errorf("order %q, interleaved %v", c.Order, c.Interleaved)
	}
	a[0].Started = time.Time{}
	if c := comparison(t, a, b, Options{}).Groups[0]; c.Order != "" || c.Interleaved || !strings.Contains(notInTurns(c.Order), "when they ran is not known") {
		t.Errorf("order %q, interleaved %v: %s", c.Order, c.Interleaved, notInTurns(c.Order))
	}
}

// A bound is neither kept nor missed where drift may be the difference, or hide it.
func TestBoundsWithoutTurns(t *testing.T) {
	for _, tt := range []struct {
		name, order, bound string
		factor             float64
		want               Outcome
	}{
		{"beyond, in turns", "ABBAABBAAB", "rollout.cores>+10%", 1.5, Beyond},
		{"beyond, one after the other", "AAAAABBBBB", "rollout.cores>+10%", 1.5, Undecided},
		{"inside, in turns", "ABBAABBAAB", "rollout.cores>+10%", 1, Inside},
		{"inside, one after the other", "AAAAABBBBB", "rollout.cores>+10%", 1, Undecided},
		{"the same in every run", "AAAAABBBBB", "rollout.restarts>+0", 1, Inside},
	} {
		bound, err := ParseBound(tt.bound)
		if err != nil {
			t.Fatal(err)
		}
		a, b := runs("a", 5, 1), runs("b", 5, 2, func(r *record.Run) { *r.ControlPlane.Rollout.Cores.Mean *= tt.factor })
		inOrder(tt.order, a, b)
		j := comparison(t, a, b, Options{Bounds: []Bound{bound}}).Bounds[0]
		if j.Outcome != tt.want || (j.Outcome == Undecided) != strings.Contains(j.Why, "were not interleaved (they ran as AAAAABBBBB)") || j.RunsToDecide != nil {
			t.Errorf("%s: %+v, want %s", tt.name, j, tt.want)
		}
	}
}

func TestEquivalence(t *testing.T) {
	noisy := runs("b", 5, 2)
	for i := range noisy {
		*noisy[i].ControlPlane.Rollout.Cores.Mean *= []float64{0.8, 0.9, 1, 1.1, 1.2}[i]
	}
	times := func(factor float64) []record.Run {
		return runs("b", 5, 2, func(r *record.Run) { *r.ControlPlane.Rollout.Cores.Mean *= factor })
	}
	for _, tt := range []struct {
		name  string
		b     []record.Run
		order string
		want  Equivalence
	}{
		{"the same", times(1), "", Equal},
		{"3 % more", times(1.03), "", Equal},
		{"at the margin", times(1.1), "", Open},
		{"half more", times(1.5), "", Different},
		{"half less", times(0.5), "", Different},
		{"not significantly different, and not known to be equal", noisy, "", Open},
		{"not in turns", times(1), "AAAAABBBBB", Open},
		{"too few", runs("b", 3, 2), "", Open},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := runs("a", len(tt.b), 1)
			if tt.order != "" {
				inOrder(tt.order, a, tt.b)
			}
			r := comparison(t, a, tt.b, Options{Figures: []string{"rollout.cores"}, EqualWithin: 0.1})
			f := r.Groups[0].Figures[0]
			if f.Name != "rollout.cores" || f.Equivalence != tt.want {
				t.Errorf("%s: %s, want %s", f.Name, f.Equivalence, tt.want)
			}
			one := comparison(t, a, tt.b, Options{Figures: []string{"controlPlane.rollout.cores.mean"}, EqualWithin: 0.1})
			if one.Fails() != (tt.want == Different) || one.Undecided() != (tt.want == Open) {
				t.Errorf("fails %v, undecided %v", one.Fails(), one.Undecided())
			}
			says := map[Equivalence]string{Equal: "", Different: "different by more than 10 %: rollout.cores", Open: "not decided whether equal within 10 %: rollout.cores"}[tt.want]
			if got := strings.Join(one.NotEqual(), "; "); !strings.HasPrefix(got, says) || (got == "") != (says == "") || strings.Contains(got, "were not interleaved") != (tt.order != "") {
				t.Errorf("it says %q, want %q", got, says)
			}
		})
	}
}

// Of figures that differ by the margin itself at most one in 40 is called equal, and of equal ones with
// the spread of processor time most are with eight runs.
func TestEquivalenceErrorRate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 8))
	const experiments = 4000
	rate := func(ratio, spread float64) float64 {
		equal := 0
		for range experiments {
			f := Figure{Unit: Cores}
			for range 8 {
				f.A.take(record.Value{Value: new(math.Exp(spread * random.NormFloat64()))})
				f.B.take(record.Value{Value: new(ratio * math.Exp(spread*random.NormFloat64()))})
			}
			f.describe()
			if f.equivalence(0.1, true) == Equal {
				equal++
			}
		}
		return float64(equal) / experiments
	}
	for _, ratio := range []float64{1.1, 1 / 1.1} {
		if got := rate(ratio, 0.04); got > 0.032 { // 2.5 % and three standard errors
			t.Errorf("a ratio of %.3f is called equal in %.3f of the experiments", ratio, got)
		}
	}
	if got := rate(1, 0.04); got < 0.95 {
		t.Errorf("what is equal is called so in %.3f of the experiments", got)
	}
}
