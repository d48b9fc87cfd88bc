package recorder

import (
	"fmt"
	"time"
)

// Together are the greatest needs of several components at the same time in [from, to):
// cores as Usage.CoresPeak, of their sum, and the sum of their resident memory in bytes at one
// moment. The window is as that of [Sampler.Figures].
func (s *Sampler) Together(names []string, from, to time.Time) (cores, memory float64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []life
	for _, name := range names {
		lives, err := s.lives(name)
		if err == nil {
			err = covered(lives, from, to)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("computing the usage of %s: %w", name, err)
		}
		all = append(all, lives...)
	}
	cores, memory = togetherPeaks(all, from, to, max(peakWindow, s.interval))
	return cores, memory, nil
}

// togetherPeaks is Together of lives, whichever component they are of.
func togetherPeaks(lives []life, from, to time.Time, peak time.Duration) (cores, memory float64) {
	series := make([][]Reading, len(lives))
	edges := []time.Time{from, to}
	for i := range lives {
		series[i] = lives[i].points()
		for _, p := range series[i] {
			edges = append(edges, p.At)
		}
	}
	for _, at := range edges {
		if at.Before(from) || at.After(to) {
			continue
		}
		sum := 0.0
		for i, points := range series {
			if !at.Before(points[0].At) && (lives[i].ended.IsZero() || at.Before(lives[i].ended)) {
				sum += residentAt(points, at)
			}
		}
		memory = max(memory, sum)
	}
	return peakCores(series, edges, from, to, peak), memory
}
