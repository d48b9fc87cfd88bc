package capacity

import (
	"errors"
	"slices"

	"scaler.mesh/scaler/pkg/record"
)

// Errors of OneMorePod.
var (
	// ErrSquare is in the error for a figure that grows with the square of the pods, or
	// with pods and the configuration of each: the cost of one more pod depends on their
	// number. The Cost has the model.
	ErrSquare = errors.New("grows with the square")
	// ErrRepeats is in the error for runs of which no size has repeats: noise cannot be
	// distinguished from a slope.
	ErrRepeats = errors.New("every size was run once")
	// ErrSizes is in the error for runs of fewer sizes than a line needs.
	ErrSizes = errors.New("too few sizes")
)

// Cost is the increase of a figure with one more pod, in the figure's base unit, with its
// 95 % confidence interval. All are 0 if the model has no such term: the figure does not
// grow.
type Cost struct {
	Value, Low, High float64
	Model            string // in words, as a plan prints it
}

// OneMorePod returns the slope of the model that a plan would use to forecast a figure.
// The runs are completed, and alike in all but size. path is that of the figure in the
// record. The model of a figure that plans do not forecast has a constant that is not
// negative, the pods and, if the runs show it, the bytes that all sidecars hold. The
// error is one of those above, or reports that the runs determine no model.
func OneMorePod(runs []*record.Run, path string) (Cost, error) {
	s := sample{runs: slices.Clone(runs)}
	slices.SortStableFunc(s.runs, func(a, b *record.Run) int { return a.PodCount() - b.PodCount() })
	if len(s.sizes()) < sizesNeeded {
		return Cost{}, ErrSizes
	}
	if !slices.ContainsFunc(s.sizes(), Size.repeated) {
		return Cost{}, ErrRepeats
	}
	target := s.largest()
	s.onePace(target, nil)
	f := figureAt(path)
	chosen, _ := f.choose(&s, target)
	used, seen, bases := f.observations(chosen, true)
	switch {
	case len(sizesOf(used)) < sizesNeeded:
		return Cost{}, ErrSizes
	case !slices.ContainsFunc(sizesOf(used), Size.repeated):
		return Cost{}, ErrRepeats
	}
	m, err := f.model(seen)
	if err != nil {
		return Cost{}, err
	}
	made := forecast{parts: m.parts(kindOf(used[0]))}
	made.raise(bases)
	cost := Cost{Model: Figure{Unit: f.unit(), Model: made.parts}.model()}
	for i, t := range m.terms {
		switch t.name {
		case configured.name, pairs.name:
			return Cost{Model: cost.Model}, ErrSquare
		case pods.name:
			half := m.slope(i)
			cost.Value, cost.Low, cost.High = m.Terms[i].Value, m.Terms[i].Value-half, m.Terms[i].Value+half
		}
	}
	return cost, nil
}

// figureAt returns the figure that is read at a path, of all replicas.
func figureAt(path string) figure {
	for _, f := range figures {
		f.each = false
		switch {
		case f.name == path:
			return f
		case slices.Contains(f.from, path):
			f.from = []string{path}
			return f
		}
	}
	return figure{name: path, terms: []term{constant, pods}, shown: &configured}
}

// slope returns half the width of the interval of a term. If sizes deviate from the line
// by more than repeats differ, the number of sizes counts as the number of observations.
func (m fitted) slope(at int) float64 {
	half := m.Terms[at].Value - m.Terms[at].Low
	if !m.astray || m.Sigma == 0 {
		return half
	}
	return m.ofSizes(half)
}
