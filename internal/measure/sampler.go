package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/timeseries"
	"scaler.mesh/scaler/pkg/record"
)

// defaultInterval is the time between two scrapes and between two readings.
const defaultInterval = time.Second

// sameEdge is the time within which two edges are one to the TSDB.
const sameEdge = 20 * time.Millisecond

// Sampler reads what components use: at a steady interval while Run runs, and at
// each Edge. A component is known by its name; its lives may follow one another,
// each with a [Source] of its own. Methods may be called by several goroutines.
type Sampler struct {
	// fixed at the start
	interval time.Duration
	store    *record.SampleLog // nil: all readings stay in memory
	base     time.Time         // moment 0 of the samples in store
	slowdown float64           // by which time is slowed down; 0 = 1
	briefly  []string          // names of components that are read more often, for brief
	limited  string            // name of the component that has limits
	limits   *ProcessorLimits
	brief    brief

	mu       sync.Mutex
	realTime []span                 // in which time was not slowed down
	pending  []record.ComponentRead // that store does not have yet
	history  *History               // of store, as it was last read; nil before
	tracks   map[string]*track
	groups   map[string][]string // names of the components of each
	edges    []totals            // that Collect has not yet handed on, oldest first
	exported time.Time           // moment of the last that it has
}

// resident is the number of readings of a component that stay in memory where there is a store:
// more than Live needs.
const resident = 32

// NewSampler makes a Sampler that watches nothing yet. An interval of 0 means
// 1 s.
func NewSampler(interval time.Duration) *Sampler {
	if interval == 0 {
		interval = defaultInterval
	}
	return &Sampler{interval: interval, tracks: map[string]*track{}, groups: map[string][]string{}, brief: brief{interval: BriefInterval}}
}

// NewStoredSampler makes a Sampler that writes all readings to store as they are made,
// and keeps only the latest in memory. [Sampler.Figures] reads the store.
func NewStoredSampler(interval time.Duration, store *record.SampleLog) *Sampler {
	s := NewSampler(interval)
	s.store, s.base = store, time.Now()
	return s
}

// SlowDown states that time is slowed down by a factor k, at least 1, so that this machine
// models one with k times the processors. A processor of that machine takes k times
// as long for what a thread does: a thread that waits here for k-1 times the processor
// time that it uses itself is done no later than there. It is called before Watch.
func (s *Sampler) SlowDown(k float64) {
	s.slowdown = k
	s.brief.interval = time.Duration(float64(BriefInterval) * max(1, k))
}

// Limit states the limits of a component. Where it uses all that it may of a machine that has more, its waits for a processor are no part of
// [Usage.Saturation]. It is called before Watch.
func (s *Sampler) Limit(name string, limits *ProcessorLimits) { s.limited, s.limits = name, limits }

// span is the time in [from, to).
type span struct{ from, to time.Time }

// RealTime states that time was not slowed down in [from, to), also after SlowDown. It is called before
// Figures of windows in it. Peaks are still means over k times the length, because readings are k times as far from
// each other.
func (s *Sampler) RealTime(from, to time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.realTime = append(s.realTime, span{from, to})
}

// slowed reports whether time was slowed down in [from, to). The caller holds mu.
func (s *Sampler) slowed(from, to time.Time) bool {
	return s.slowdown > 1 && !slices.ContainsFunc(s.realTime, func(r span) bool { return !from.Before(r.from) && !to.After(r.to) })
}

// Watch adds a life of a component and reads it at once. After a restart the same
// name is watched again with the new life's source; what the ended one used stays
// in the figures. It is an error if the life is over. A life that is watched
// already stays as it is.
func (s *Sampler) Watch(name string, src Source) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	started, err := src.Started()
	if err != nil {
		return fmt.Errorf("watching %s, %s: %w", name, src.ID(), err)
	}
	t := s.tracks[name]
	if t == nil {
		t = &track{}
	}
	if t.live != nil && t.live.ID() == src.ID() {
		return nil
	}
	if src, ok := src.(slowable); ok {
		src.slowDown(s.slowdown)
	}
	first, err := src.Read()
	if err != nil {
		return fmt.Errorf("watching %s, %s: %w", name, src.ID(), err)
	}
	s.end(name, t, first.At)
	t.live = src
	next := life{id: src.ID(), started: started}
	if s.limited == name {
		next.limits = s.limits
	}
	t.lives = append(t.lives, next)
	s.tracks[name] = t
	s.took(name, t, len(t.lives)-1, first)
	if slices.Contains(s.briefly, name) {
		s.brief.watch(name, src)
	}
	return s.flush(time.Now(), false)
}

// Ended reports that the life src reads has ended; src need not be the Source that
// was given to Watch. Its ExitCPU becomes the life's processor time. Without that,
// or without this call, the last reading counts, which misses what was used after
// it. Ended does nothing for a life that is not watched.
func (s *Sampler) Ended(name string, src Source) {
	// What cannot be written is written with the next readings; Run reports it.
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tracks[name]
	if t == nil {
		return
	}
	for i, l := range slices.Backward(t.lives) {
		if l.id != src.ID() {
			continue
		}
		if i == len(t.lives)-1 {
			s.end(name, t, time.Now())
		}
		cpu, _ := src.ExitCPU()
		s.settle(name, t, i, cpu)
		_ = s.flush(time.Now(), false)
		return
	}
}

// Edge reads every component now and returns the moment that the readings hold
// for: take it as the edge of a phase. For an edge that was learned of late,
// such as a convergence a moment ago, call Edge all the same: the figures then
// interpolate between it and the reading before.
func (s *Sampler) Edge() (time.Time, error) {
	at := time.Now()
	s.brief.edge(at)
	s.mu.Lock()
	err := s.readHere()
	sums, remote := s.sums(at), s.remote()
	s.mu.Unlock()
	if len(remote) > 0 {
		err = errors.Join(err, s.readRemote(remote))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(remote) > 0 {
		sums = s.sums(at)
	}
	s.edges = append(s.edges, sums)
	return at, errors.Join(err, s.flush(at, true))
}

// Run reads every component at the interval until ctx is done, then returns nil.
// It returns early when a component that lives cannot be read.
func (s *Sampler) Run(ctx context.Context) error {
	if len(s.briefly) > 0 {
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(ctx)
		defer func() { cancel(); <-done }()
		go func() { defer close(done); s.brief.run(ctx) }()
	}
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.mu.Lock()
			err := s.readHere()
			remote := s.remote()
			s.mu.Unlock()
			err = errors.Join(err, s.readRemote(remote))
			s.mu.Lock()
			err = errors.Join(err, s.flush(time.Now(), false))
			s.mu.Unlock()
			if err != nil {
				return err
			}
		}
	}
}

// Figures returns the usage of a component in [from, to). The component must have been watched
// all that time, and a reading must follow its end: see [Sampler.Edge]. A
// component that ended keeps its figures. Usage.Heap is nil.
func (s *Sampler) Figures(name string, from, to time.Time) (Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var u Usage
	all, err := s.members(name)
	if err != nil {
		return Usage{}, err
	}
	peak, slowed := max(peakWindow, s.interval), s.slowed(from, to)
	if _, group := s.groups[name]; group {
		u, err = usageTogether(all, from, to, peak, slowed)
	} else {
		u, err = usage(all[0], from, to, peak, slowed)
	}
	if err != nil {
		return Usage{}, fmt.Errorf("computing the usage of %s: %w", name, err)
	}
	u.CoresPeakBrief = s.brief.peak(name, from, to)
	return u, nil
}

// Live returns the present usage of a component, to show while a run goes on: cores
// over the last interval and resident memory in bytes, as of its last reading.
// False means that it is not running or has not been watched for so long.
func (s *Sampler) Live(name string) (cores, memory float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	members, group := s.groups[name]
	if !group {
		return s.live(name)
	}
	for _, one := range members {
		c, m, running := s.live(one)
		cores, memory, ok = cores+c, memory+m, ok || running
	}
	return cores, memory, ok
}

// Late returns for how long the component had a thread that waited for a processor since a moment, as
// [Usage.Saturation] counts it, and the moment of the last reading, until which that is known. It looks at the readings
// in memory alone, so that only the last few may lie after since. Of a group it is the sum of its
// components. False means that it is not known.
func (s *Sampler) Late(name string, since time.Time) (late time.Duration, until time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, group := s.groups[name]
	if !group {
		names = []string{name}
	}
	for _, one := range names {
		t := s.tracks[one]
		if t == nil || t.live == nil {
			continue
		}
		to := t.lives[len(t.lives)-1].last().At
		u, err := usage(recent(t.lives, since), since, to, peakWindow, s.slowed(since, to))
		if err != nil || u.Saturation == nil {
			continue
		}
		late += time.Duration(*u.Saturation * float64(to.Sub(since)))
		until, ok = timeseries.Later(until, to), true
	}
	return late, until, ok
}

// live does the work of Live for a component that is no group. The caller holds mu.
func (s *Sampler) live(name string) (cores, memory float64, ok bool) {
	t := s.tracks[name]
	if t == nil || t.live == nil {
		return 0, 0, false
	}
	to := t.lives[len(t.lives)-1].last().At
	from := to.Add(-s.interval)
	u, err := usage(recent(t.lives, from), from, to, peakWindow, false)
	if err != nil {
		return 0, 0, false
	}
	return u.CoresMean, u.MemoryEnd, true
}

// total holds the counters of a component, summed over its lives.
type total struct {
	name     string
	cpu      time.Duration
	waited   time.Duration // negative where the kernel keeps no run delays
	restarts int
	running  bool
	now      Reading // of the last process
}

// totals holds the counters of all components at one moment.
type totals struct {
	at  time.Time
	all []total
}

// next returns the totals for the next scrape: those of the oldest edge that was not exported yet, else
// of all components read again, and of remote sources as they were read last: a
// scrape does not wait for other machines. So the TSDB holds the counters as they were at the
// very edges of phases, wherever its scrapes fell. Where one phase follows
// another at once, one edge serves both: each takes the place of a scrape.
func (s *Sampler) next() totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.edges) > 0 {
		edge := s.edges[0]
		s.edges = s.edges[1:]
		if edge.at.Sub(s.exported) > sameEdge {
			s.exported = edge.at
			return edge
		}
	}
	// What cannot be read stands as it was; Run reports it.
	s.exported = time.Now()
	_ = s.readHere()
	return s.sums(s.exported)
}

// sums adds up the processes of each component. The caller holds mu.
func (s *Sampler) sums(at time.Time) totals {
	sums := totals{at: at}
	for name, t := range s.tracks {
		sum := total{name: name, restarts: len(t.lives) - 1, running: t.live != nil}
		for _, l := range t.lives {
			sum.now = l.last()
			sum.cpu += sum.now.CPU
			sum.waited += sum.now.Waited
		}
		sums.all = append(sums.all, sum)
	}
	for name, members := range s.groups {
		sums.all = append(sums.all, together(name, members, sums.all))
	}
	return sums
}

// readHere adds a reading to every component that runs on this machine. The caller holds mu.
func (s *Sampler) readHere() error {
	var errs []error
	for name, t := range s.tracks {
		if t.live == nil || isRemote(t.live) {
			continue
		}
		r, err := t.live.Read()
		errs = append(errs, s.add(name, t, r, err))
	}
	return errors.Join(errs...)
}

// reading is a reading that is made while mu is not held.
type reading struct {
	name  string
	track *track
	life  int // its index
	from  Source
}

// remote returns the readings of components that run elsewhere. The caller holds mu.
func (s *Sampler) remote() []reading {
	var all []reading
	for name, t := range s.tracks {
		if t.live != nil && isRemote(t.live) {
			all = append(all, reading{name, t, len(t.lives) - 1, t.live})
		}
	}
	return all
}

// readRemote makes these readings at the same time and adds them. It does not hold mu while it
// waits for other machines, so that nothing else does.
func (s *Sampler) readRemote(all []reading) error {
	errs := make([]error, len(all))
	var made sync.WaitGroup
	for i, one := range all {
		made.Go(func() {
			one.track.turn.Lock() // readings of a life are made, and added, one after another
			defer one.track.turn.Unlock()
			r, err := one.from.Read()
			s.mu.Lock()
			defer s.mu.Unlock()
			if one.track.live != nil && len(one.track.lives)-1 == one.life {
				errs[i] = s.add(one.name, one.track, r, err)
			}
		})
	}
	made.Wait()
	return errors.Join(errs...)
}

// add adds what a reading of a component's last life came to. The caller holds mu.
func (s *Sampler) add(name string, t *track, r Reading, err error) error {
	switch {
	case errors.Is(err, ErrEnded):
		s.end(name, t, time.Now())
	case err != nil:
		return fmt.Errorf("reading %s, %s: %w", name, t.live.ID(), err)
	default:
		s.took(name, t, len(t.lives)-1, r)
	}
	return nil
}
