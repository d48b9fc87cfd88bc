package measure

import (
	"slices"
	"time"
)

// Join makes a component, which is watched under its own name, part of a group, such as
// the replicas of one control plane. What [Sampler.Figures] and [Sampler.Live] return for
// the name of a group is of all its components together:
//
//   - Processor time, waiting and restarts are summed. CoresPeak is the peak of the sum.
//   - Memory is that of the sum: its mean over the window, in which a component that does
//     not run has none, its peak and its end. The peak is the greatest sum at a moment
//     when one of them was read. The kernel's high-water marks are not in it, since it is
//     not known whether two of them were at the same moment; so it is at most the sum of
//     the components' own peaks.
//   - Saturation is the sum of theirs, at most 1: an upper bound of the share in which one
//     of them waited.
//   - ThreadsPeak and OpenFilesPeak are sums of peaks. CoresPeakBrief is nil.
func (s *Sampler) Join(group, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.groups[group], name) {
		s.groups[group] = append(s.groups[group], name)
	}
}

// members returns the lives of each watched component of a group, or of a single
// component. The caller holds mu.
func (s *Sampler) members(name string) ([][]life, error) {
	names, ok := s.groups[name]
	if !ok {
		names = []string{name}
	}
	var all [][]life
	for _, one := range names {
		lives, err := s.lives(one)
		if err != nil {
			return nil, err
		}
		if lives != nil || !ok {
			all = append(all, lives)
		}
	}
	return all, nil
}

// together adds up the counters of the components of a group.
func together(name string, members []string, all []total) total {
	sum := total{name: name}
	for _, t := range all {
		if !slices.Contains(members, t.name) {
			continue
		}
		sum.cpu += t.cpu
		sum.waited += t.waited
		sum.restarts += t.restarts
		if t.running {
			sum.running = true
			sum.now.Resident += t.now.Resident
			sum.now.Threads += t.now.Threads
			sum.now.Files += t.now.Files
		}
	}
	return sum
}

// usageTogether computes the figures of [from, to) of several components together; see
// [Sampler.Join].
func usageTogether(all [][]life, from, to time.Time, peak time.Duration, slowed bool) (Usage, error) {
	if len(all) == 0 {
		return Usage{}, ErrNotWatched
	}
	length := to.Sub(from).Seconds()
	var sum Usage
	var working WorkingSet
	var every []life
	counted, delays := true, true
	var saturation, waited float64
	for _, lives := range all {
		u, err := usage(lives, from, to, peak, slowed)
		if err != nil {
			return Usage{}, err
		}
		every = append(every, lives...)
		sum.CPUSeconds += u.CPUSeconds
		sum.MemoryMean += u.MemoryMean * u.Ran / length
		sum.MemoryEnd += u.MemoryEnd
		sum.Ran = max(sum.Ran, u.Ran)
		sum.Restarts += u.Restarts
		sum.ThreadsPeak += u.ThreadsPeak
		sum.OpenFilesPeak += u.OpenFilesPeak
		if u.Saturation == nil {
			delays = false
		} else {
			saturation, waited = saturation+*u.Saturation, waited+*u.Waited
		}
		switch {
		case u.WorkingSet != nil:
			working.Mean += u.WorkingSet.Mean * u.Ran / length
			working.End += u.WorkingSet.End
		case u.Ran > 0:
			counted = false
		}
	}
	sum.CoresMean = sum.CPUSeconds / length
	sum.CoresPeak, sum.MemoryPeak, working.Peak = peaksTogether(every, from, to, peak)
	sum.CoresPeak = max(sum.CoresPeak, sum.CoresMean)
	if counted {
		sum.WorkingSet = &working
	}
	if delays {
		sum.Saturation, sum.Waited = new(min(1, saturation)), &waited
	}
	return sum, nil
}

// peaksTogether returns the peaks, in [from, to], of sums over lives of any components: cores over a
// window, and the memory of the running ones at one moment, resident and as their control groups
// count it, in bytes.
func peaksTogether(lives []life, from, to time.Time, window time.Duration) (cores, resident, working float64) {
	series := make([][]Reading, len(lives))
	var edges []time.Time
	for i := range lives {
		series[i] = lives[i].points()
		for _, p := range series[i] {
			edges = append(edges, p.At)
		}
	}
	cores = peakCores(series, edges, from, to, window)
	for _, at := range append(edges, from, to) {
		if at.Before(from) || at.After(to) {
			continue
		}
		var r, w float64
		for i, points := range series {
			if ended := lives[i].ended; !at.Before(points[0].At) && (ended.IsZero() || at.Before(ended)) {
				r += memoryAt(points, at, residentOf)
				w += memoryAt(points, at, workingSetOf)
			}
		}
		resident, working = max(resident, r), max(working, w)
	}
	return cores, resident, working
}
