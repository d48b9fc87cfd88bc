package measure

import (
	"fmt"
	"time"
)

// Together returns the greatest needs of several components at the same time in [from, to):
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
	cores, memory, _ = peaksTogether(all, from, to, max(peakWindow, s.interval))
	return cores, memory, nil
}
